-- Take, settle, release, renew, revise, and the batch of this call (the twin of core/kernel.py).
local CLOCK_STEP_MS, ADOPTED_MS = 1000, 60000
local COLD = 'cold'

local function advance()
  local now_ms = raw_ms + book.offset_ms
  if now_ms >= book.now_ms then
    book.now_ms = now_ms
  elseif book.now_ms - now_ms > CLOCK_STEP_MS then
    book.offset_ms = book.offset_ms + book.now_ms - now_ms
    book.clock_steps = book.clock_steps + 1
  end
end

-- A budget that may have been forgotten since the birth holds what could have been used, and holds are awaited.
local function chill(cell)
  local limits, since_ms = cell.limits, cell.at_ms - book.birth_ms
  if limits.kind == LEVEL then
    cell.level = max(cell.level, limits.burst * cell.scale - cell.drain * since_ms)
  elseif limits.kind == LEASES and limits.lease_ms > since_ms and limits.burst > 0 then
    put(cell, COLD, { amount = limits.burst, firm = true, expires_ms = book.birth_ms + limits.lease_ms })
  end
end

-- The cell of a budget, nil if it is not defined; one that is older than the birth is brought behind it.
local function known(index)
  local cell = cells[index]
  if cell == nil then
    cell = read_cell(index)
    cells[index] = cell
    if cell and cell.at_ms < book.birth_ms then
      touch(cell, book.birth_ms)
      chill(cell)
    end
  end
  return cell or nil
end

-- The cell that an admission needs; errors end that operation only, with an answer that says what the caller must do.
cell_of = function(index)
  local cell = cells[index]
  if cell and cell.checked then return cell end
  cell = known(index)
  if not cell then error({ 'undefined', index }, 0) end
  local line = cell.limits.line == '' and budget_names[index] or cell.limits.line
  if line ~= line_names[line_of[index]] then error({ 'elsewhere', index, line }, 0) end
  cell.checked = true
  return cell
end

local operate = {}

function operate.define(index, text)
  local found = known(index)
  if found then -- a copy of a store may have missed the last revision
    if limits_of(text).revision > found.limits.revision then operate.revise(index, found.limits.revision, text) end
  else
    local cell = new_cell(index, text)
    cell.slices = cell.limits.kind == COUNTER and {} or nil
    call('HSET', cell.key, 'limits', text)
    cells[index] = cell
    chill(cell)
  end
  return { 'done', 0 }
end

local function commit(request, chosen, now_ms)
  local expires_ms, demands = now_ms + request.lease_ms, request.alternatives[chosen]
  for at = 1, #demands, 3 do
    local cell, cost, reserve = cells[demands[at]], demands[at + 1], demands[at + 2]
    if cost > 0 then
      cell.level = cell.level + cost * cell.scale
      count(cell, cost, now_ms)
    end
    if reserve > 0 then hold(cell, request.lease, reserve, expires_ms) end
  end
  for _, index in ipairs(request.standing) do leave(line_at(index), request.ticket) end
  return { 'granted', chosen - 1, expires_ms }
end

local function fits(request, demands, now_ms)
  local rank = request.rank
  for at = 1, #demands, 3 do
    local cell, cost, reserve = cell_of(demands[at]), demands[at + 1], demands[at + 2]
    if cell.at_ms ~= now_ms then touch(cell, now_ms) end
    if cell.level + (cell.pending + cost + reserve) * cell.scale > cell.caps[rank] then return false end
    if not cell.line.empty and holds_back(cell, request, cost, reserve, now_ms) then
      cell.behind = demands -- the denial need not look again
      return false
    end
  end
  return true
end

function operate.take(ticket, lease, rank, score, alternatives, lease_ms, standing, waits, expires_after_ms)
  local request = {
    ticket = ticket, lease = lease, rank = rank, score = score, alternatives = alternatives, lease_ms = lease_ms,
    standing = standing, waits = waits, expires_after_ms = expires_after_ms,
  }
  for chosen, demands in ipairs(alternatives) do
    if fits(request, demands, book.now_ms) then return commit(request, chosen, book.now_ms) end
  end
  return deny(request, book.now_ms)
end

local function settle_one(cell, lease, reserved, used, last)
  if cell.at_ms ~= book.now_ms then touch(cell, book.now_ms) end
  if cell.limits.kind == LEASES then
    if used > 0 and not held_by(cell, lease) then -- granted without this store: held from now on
      local room = EXACT - 1 - cell.pending
      if room > 0 then hold(cell, lease, min(used, room), book.now_ms + ADOPTED_MS) end -- nothing is no hold
      return 0
    end
    end_hold(cell, lease, book.now_ms)
    return 0
  end
  local held = held_by(cell, lease)
  local over = max(0, used - (held and held.amount or reserved))
  charge(cell, held and used or over, book.now_ms)
  if held then put(cell, lease, not last and { amount = held.amount - min(held.amount, used), firm = false }) end
  return over
end

function operate.settle(lease, usage, last)
  local debt = 0
  for _, told in ipairs(usage) do
    local cell = known(told[1])
    if cell then debt = min(EXACT - 1, debt + settle_one(cell, lease, told[2], told[3], last)) end
  end
  return { 'done', debt }
end

local function each_hold(lease, indices, change)
  for _, index in ipairs(indices) do
    local cell = known(index)
    if cell then
      touch(cell, book.now_ms)
      local held = held_by(cell, lease)
      if held and not held.firm then change(cell, held) end
    end
  end
  return { 'done', 0 }
end

function operate.release(lease, indices)
  return each_hold(lease, indices, function(cell) put(cell, lease, false) end)
end

function operate.renew(lease, indices, lease_ms)
  local expires_ms = book.now_ms + lease_ms
  return each_hold(lease, indices, function(cell, held)
    put(cell, lease, { amount = held.amount, firm = false, expires_ms = expires_ms })
  end)
end

function operate.leave(ticket, indices)
  for _, index in ipairs(indices) do leave(line_at(index), ticket) end
  return { 'done', 0 }
end

local function same_shape(one, other)
  return one.kind == other.kind and one.line == other.line and one.slices == other.slices
    and one.anchor_ms == other.anchor_ms and (one.kind ~= COUNTER or one.window_ms == other.window_ms)
end

function operate.revise(index, expected, text)
  local cell = known(index)
  if not cell or cell.limits.revision ~= expected then
    return { 'revised', false, cell and cell.limits.revision or 0 }
  end
  local old, new = cell.limits, limits_of(text)
  if not same_shape(old, new) then return { 'revised', false, expected } end
  touch(cell, book.now_ms)
  if old.scale ~= new.scale then
    local units = floor(cell.level / old.scale)
    local rest = cell.level - units * old.scale
    cell.level = min(EXACT - 1, units * new.scale + ceil(rest * new.scale / old.scale))
  end
  apply(cell, new)
  cell.keep_ms = EXACT -- what was revised stands nowhere else: it never expires
  call('HSET', cell.key, 'limits', text, 'keep_ms', EXACT)
  call('PERSIST', cell.key)
  call('PERSIST', cell.leases)
  return { 'revised', true, new.revision }
end

local function answer(operation)
  local done, told = pcall(operate[operation[1]], unpack(operation, 2))
  if not done and not (type(told) == 'table' and told[1]) then error(told, 0) end
  return told
end

if raw_ms < 0 then
  local time = call('TIME')
  raw_ms = time[1] * 1000 + floor(time[2] / 1000)
end
open_book()
advance()
if book.run and book.run ~= run then
  book.now_ms = book.now_ms + 1 -- what is older than the birth is told by its own instant
  book.birth_ms = book.now_ms
end
local answers = {}
for number, operation in ipairs(operations) do answers[number] = answer(operation) end
close_book()
return cmsgpack.pack({ book.now_ms, book.birth_ms, book.clock_steps, answers })
