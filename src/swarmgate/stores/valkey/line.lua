-- Who goes first: lines of waiting tickets, and the rule when a worse one may pass (the twin of core/line.py).
local CLASS_STEP = 2 ^ 51
local UNCLAIMED_MS = 250
local LOOK_AT_MOST = 256
local SCAN_AT_MOST = 512
local PAGE = 32
local IDLE_RANK = 2

local function entry_of(line, ticket)
  local entry = line.known[ticket]
  if entry ~= nil then return entry end
  entry = false
  local text = call('HGET', line.entries, ticket)
  if text then
    entry = {}
    entry.ready_ms, entry.due_ms, entry.expires_ms, entry.kind, entry.cost, entry.reserve, entry.at, entry.tier =
      unpack(cmsgpack.unpack(text))
    entry.tier = entry.tier or WAYS -- see limits_of
  end
  line.known[ticket] = entry
  return entry
end

-- The places of one page, as { ticket, score }; read once until the order changes.
local function page_of(line, number)
  local page = line.pages[number]
  if not page then
    page = {}
    local flat = call('ZRANGE', line.order, number * PAGE, number * PAGE + PAGE - 1, 'WITHSCORES')
    for at = 1, #flat, 2 do page[#page + 1] = { flat[at], tonumber(flat[at + 1]) } end
    line.pages[number] = page
  end
  return page
end

-- How many stand before that score, and how many at all.
local function position(line, score)
  if line.asked ~= score then
    line.asked, line.place = score, call('ZCOUNT', line.order, '-inf', score - 1)
  end
  return line.place
end

local function depth(line)
  line.depth = line.depth or call('ZCARD', line.order)
  return line.depth
end

-- The order has changed: what was read of it is forgotten.
local function changed(line)
  line.pages, line.empty, line.asked, line.depth = {}, nil, nil, nil
end

local function join(line, ticket, score, anew)
  local entry = line.known[ticket]
  if entry == nil and anew then -- nothing that it said counts any longer
    entry = call('HEXISTS', line.entries, ticket) == 1 and { ready_ms = 0, due_ms = 0, expires_ms = 0 }
    line.known[ticket] = entry
  elseif entry == nil then
    entry = entry_of(line, ticket)
  end
  if not entry then
    entry = { ready_ms = 0, due_ms = 0, expires_ms = 0, kind = TIME, cost = 0, reserve = 0, at = '', tier = WAYS }
    line.known[ticket] = entry
    call('ZADD', line.order, score, ticket)
    changed(line)
  end
  line.told[ticket] = entry
  return entry
end

local function leave(line, ticket)
  if not entry_of(line, ticket) then return end
  call('HDEL', line.entries, ticket)
  call('ZREM', line.order, ticket)
  line.known[ticket], line.told[ticket] = false, nil
  changed(line)
end

local function after_holds(cell, missing)
  local from, left = 0, cell.firm
  while left > 0 do
    local leases = leases_by_expiry(cell, from, from + PAGE - 1)
    for at = 1, #leases, 2 do
      local held = held_by(cell, leases[at])
      if held.firm then
        missing, left = missing - held.amount, left - 1
        if missing <= 0 then return tonumber(leases[at + 1]) end
      end
    end
    from = from + PAGE
  end
end

-- When so much is forgotten; `first`, which would be taken now, goes with the last slice.
local function after_slices(cell, missing, first, now_ms)
  local order = {}
  for slice in pairs(cell.slices) do order[#order + 1] = slice end
  table.sort(order)
  for _, slice in ipairs(order) do
    missing = missing - cell.slices[slice]
    if missing <= 0 then return forgotten_at_ms(cell.limits, slice) end
  end
  if missing <= first then return forgotten_at_ms(cell.limits, slice_at(cell.limits, now_ms)) end
end

local function drained_ms(cell, amount)
  return ceil(min(amount, EXACT) / cell.drain)
end

-- The first instant with room for (cost, reserve) of that class if only (first_cost, first_reserve) is taken, now;
-- nil = not by time alone.
local function earliest(cell, rank, cost, reserve, now_ms, first_cost, first_reserve)
  local limits = cell.limits
  local cap = cell.caps[rank]
  local pending = cell.pending + (first_reserve or 0)
  local missing = cell.level + (pending + (first_cost or 0) + cost + reserve) * cell.scale - cap
  if missing <= 0 then return now_ms end
  if limits.kind == LEASES then return after_holds(cell, missing) end
  if (pending + cost + reserve) * cell.scale > cap then return nil end
  if cell.slices then return after_slices(cell, missing, first_cost or 0, now_ms) end
  if cell.drain > 0 then return now_ms + drained_ms(cell, missing) end
end

-- When the ticket could start here, alone and behind the caller. Neighbours in a line mostly need the same, so `caller`
-- remembers the last answer.
local function starts(cell, entry, better, caller, now_ms)
  local cost, reserve = entry.cost, entry.reserve
  if caller.better ~= better or caller.its_cost ~= cost or caller.its_reserve ~= reserve then
    caller.better, caller.its_cost, caller.its_reserve = better, cost, reserve
    caller.alone_ms = earliest(cell, better, cost, reserve, now_ms)
    caller.after_ms = earliest(cell, better, cost, reserve, now_ms, caller.cost, caller.reserve)
  end
  return caller.alone_ms, caller.after_ms
end

local function stands_aside(cell, entry)
  return entry.tier < cell.limits.tier and entry.kind ~= TIME
end

local function may_pass(cell, entry, better, caller, now_ms)
  local is_aside = entry.tier < cell.limits.tier
  if caller.rank == IDLE_RANK and better < IDLE_RANK and not is_aside then return false end
  if entry.kind == EVENT then
    local taken = cell.pending + caller.cost + caller.reserve + entry.cost + entry.reserve
    return cell.level + taken * cell.scale <= cell.caps[better]
  end
  local alone_ms, after_ms = starts(cell, entry, better, caller, now_ms)
  local elsewhere = cell.limits.line ~= '' and budget_names[cell.index] ~= entry.at
  if elsewhere and now_ms < entry.ready_ms and entry.ready_ms <= (alone_ms or EXACT) then return true end
  if not after_ms then return is_aside end -- what the caller reserves may last
  return after_ms <= entry.ready_ms or after_ms == alone_ms
end

-- When the ticket that holds the caller back lets it pass by time alone: there is room for both; nil = nobody knows.
-- Whoever stands between them is taken to need as much as the caller.
local function passes_ms(cell, request, cost, reserve, now_ms)
  local entry, better = cell.ahead, cell.better
  if entry.kind ~= EVENT or (request.rank == IDLE_RANK and better < IDLE_RANK) then return nil end
  local place = max(1, floor(position(cell.line, request.score) / cell.limits.sharing))
  local first_cost, first_reserve = min(place * cost, EXACT), min(place * reserve, EXACT)
  return earliest(cell, better, entry.cost, entry.reserve, now_ms, first_cost, first_reserve)
end

-- Whether a better live ticket, from now on `ahead` of class `better`, stands before the caller, who needs so much; drops
-- expired ones on the way.
local function holds_back(cell, request, cost, reserve, now_ms)
  local line, score, own, known = cell.line, request.score, request.ticket, cell.line.known
  local caller = { rank = request.rank, cost = cost, reserve = reserve }
  local dead, looked, found, ended = {}, 0, false, false
  for number = 0, SCAN_AT_MOST / PAGE - 1 do
    local page = page_of(line, number)
    for place = 1, #page do
      local ticket, its_score = page[place][1], page[place][2]
      ended = its_score >= score or ticket == own or looked >= LOOK_AT_MOST
      if ended then break end
      local entry = known[ticket] or entry_of(line, ticket)
      if entry.expires_ms <= now_ms then
        dead[#dead + 1] = ticket
      elseif entry.due_ms + UNCLAIMED_MS >= now_ms and not stands_aside(cell, entry) then
        looked = looked + 1
        local better = floor(its_score / CLASS_STEP)
        found = not may_pass(cell, entry, better, caller, now_ms)
        if found then
          cell.ahead, cell.better = entry, better
          break
        end
      end
    end
    if ended or found or #page < PAGE then break end
  end
  line.empty = #page_of(line, 0) == 0
  for _, ticket in ipairs(dead) do leave(line, ticket) end
  return found
end
