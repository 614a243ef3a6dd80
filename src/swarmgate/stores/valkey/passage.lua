-- What the passing of time does to a budget, and the two ways to fill it (the twin of core/passage.py).
local EXPIRE_AT_MOST = 100
local touch

local function count(cell, units, now_ms)
  if cell.slices then
    local slice = slice_at(cell.limits, now_ms)
    cell.slices[slice] = (cell.slices[slice] or 0) + units
  end
end

local function charge(cell, units, now_ms)
  local added = min(units * cell.scale, EXACT - 1 - cell.level)
  cell.level = cell.level + added
  count(cell, added, now_ms)
end

-- Reserve on top of what the lease holds: who asks again after a lost answer must not leak the first.
local function hold(cell, lease, units, expires_ms)
  local held = held_by(cell, lease)
  put(cell, lease, { amount = units + (held and held.amount or 0), firm = false, expires_ms = expires_ms })
end

local function end_hold(cell, lease, now_ms)
  local held = held_by(cell, lease)
  if not held or held.firm then return end
  local hold_ms = cell.limits.hold_ms
  put(cell, lease, hold_ms > 0 and { amount = held.amount, firm = true, expires_ms = now_ms + hold_ms })
end

local function expire(cell, now_ms)
  write_leases(cell)
  local ended = call('ZRANGEBYSCORE', cell.leases, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0, EXPIRE_AT_MOST)
  cell.due_ms = EXACT
  for at = 1, #ended, 2 do
    local lease, at_ms = ended[at], max(cell.at_ms, tonumber(ended[at + 1]))
    touch(cell, at_ms)
    local held = held_by(cell, lease)
    local free_ms = tonumber(ended[at + 1]) + (held.firm and 0 or cell.limits.hold_ms)
    if free_ms > now_ms then -- its owner fell silent: the hold begins where the lease ended
      put(cell, lease, { amount = held.amount, firm = true, expires_ms = free_ms })
    else
      put(cell, lease, false)
      if cell.limits.kind ~= LEASES then charge(cell, held.amount, at_ms) end
    end
  end
  cell.due_ms = tonumber(leases_by_expiry(cell, 0, 0)[2]) or EXACT
end

touch = function(cell, now_ms)
  if cell.due_ms <= now_ms then expire(cell, now_ms) end
  if cell.drain > 0 then
    cell.level = max(0, cell.level - cell.drain * (now_ms - cell.at_ms))
  elseif cell.slices then
    for slice, units in pairs(cell.slices) do
      if forgotten_at_ms(cell.limits, slice) <= now_ms then
        cell.level = cell.level - units
        cell.slices[slice] = nil
      end
    end
  end
  cell.at_ms = now_ms
end
