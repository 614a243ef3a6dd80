--[[
The budgets and lines of one deployment as they lie in Valkey >= 8 or Redis >= 7 (the twin of core/book.py).

One call decides a batch of operations at one instant. Contract (its other half: wire.py):

KEYS    meta, then two per budget (hash, leases), then two per line (order, entries); all with one hash tag.
ARGV[1] msgpack [now_ms or -1 = this server's TIME, run id of this server process, budget names, the line of each
        budget (index), line names, operations]; a budget or line is named by its index from 1.
Answer  msgpack [now_ms, birth_ms, clock_steps, answers]; an answer is [verb, ...], in the order of the operations.

meta     hash    run birth_ms now_ms offset_ms clock_steps sequence; without TTL: its absence means that all was lost.
budget   hash    limits (JSON of core/limits.py) level pending firm at_ms due_ms promised_ms keep_ms slices ("index units ...");
                 "=<lease>" -> amount, negative if the hold is firm (`firm` of them are).
leases   zset    lease -> expires_ms
order    zset    ticket -> score
entries  hash    ticket -> msgpack [ready_ms, due_ms, expires_ms, kind, cost, reserve, budget, tier]; "" -> keep_ms

Every number is an integer below 2^53 and goes to the server as a number or through %.0f: tostring and .. would cut
it to 14 digits. Equal scores are ordered by bytes, which is Python's order of strings. A cell is read and written
once per batch; what forgets by itself has a TTL behind the instant at which it is as good as new (keep_ms).
]]
local EXACT = 2 ^ 51 -- amounts and instants end here; for an instant it means never
local LEVEL, LEASES, COUNTER = 0, 1, 2
local TIME, LINE, EVENT, NEVER = 0, 1, 2, 3 -- what blocks
local TARGETS, WAYS = 1, 2 -- whose a budget is; 0 = a caller's
local MARGIN_MS, KEEP_MS = 1000, 60000 -- a TTL is renewed only when it would end within the margin

local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local raw_ms, run, budget_names, line_of, line_names, operations = unpack(cmsgpack.unpack(ARGV[1]))
local cells, lines, book = {}, {}, nil

local function open_book()
  local meta = call('HMGET', KEYS[1], 'birth_ms', 'now_ms', 'offset_ms', 'clock_steps', 'sequence', 'run')
  local known = meta[1] and meta[6]
  book = {
    run = meta[6],
    birth_ms = known and tonumber(meta[1]) or raw_ms,
    now_ms = known and tonumber(meta[2]) or raw_ms,
    offset_ms = known and tonumber(meta[3]) or 0,
    clock_steps = known and tonumber(meta[4]) or 0,
    sequence = known and tonumber(meta[5]) or 0,
  }
end

local function limits_of(text)
  local it = cjson.decode(text)
  it.scale = it.kind == LEVEL and it.window_ms or 1
  it.drain = it.kind == LEVEL and it.quota or 0
  it.caps = {}
  for rank = 0, 2 do it.caps[rank] = it.paused and -1 or (it.burst - it.floors[rank + 1]) * it.scale end
  it.slice_ms = ceil(it.window_ms / it.slices)
  it.tier = it.tier or TARGETS -- a process of an older version does not tell it
  return it
end

local function slice_at(limits, now_ms)
  return floor((now_ms - limits.anchor_ms) / limits.slice_ms)
end

local function forgotten_at_ms(limits, index)
  local kept = limits.slices > 1 and limits.slices or 0
  return limits.anchor_ms + (index + kept + 1) * limits.slice_ms
end

local function line_at(index)
  local line = lines[index]
  if not line then
    local key = 2 * (#budget_names + index)
    line = { index = index, order = KEYS[key], entries = KEYS[key + 1], known = {}, told = {}, pages = {} }
    lines[index] = line
  end
  return line
end

local function apply(cell, limits)
  cell.limits, cell.scale, cell.drain, cell.caps = limits, limits.scale, limits.drain, limits.caps
end

local function new_cell(index, text)
  local cell = {
    index = index, key = KEYS[2 * index], leases = KEYS[2 * index + 1], line = line_at(line_of[index]),
    level = 0, pending = 0, firm = 0, at_ms = book.now_ms, due_ms = EXACT, promised_ms = 0, keep_ms = 0, until_ms = 0,
    held = {}, changed = {},
  }
  apply(cell, limits_of(text))
  return cell
end

local function read_cell(index)
  local limits, level, pending, firm, at_ms, due_ms, promised_ms, keep_ms, slices = unpack(call('HMGET',
    KEYS[2 * index], 'limits', 'level', 'pending', 'firm', 'at_ms', 'due_ms', 'promised_ms', 'keep_ms', 'slices'))
  if not limits then return false end
  local cell = new_cell(index, limits)
  cell.level, cell.pending, cell.firm = tonumber(level), tonumber(pending), tonumber(firm)
  cell.at_ms, cell.due_ms = tonumber(at_ms), tonumber(due_ms)
  cell.promised_ms, cell.keep_ms = tonumber(promised_ms), tonumber(keep_ms)
  if slices then
    cell.slices = {}
    for slice, units in string.gmatch(slices, '(%-?%d+) (%d+)') do cell.slices[tonumber(slice)] = tonumber(units) end
  end
  return cell
end
