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
  local added = min(units * cell.limits.scale, EXACT - 1 - cell.level)
  cell.level = cell.level + added
  count(cell, added, now_ms)
end

-- What a lease holds (nil = nothing) and whether it ends exactly at its instant.
local function held_by(cell, lease)
  local amount = tonumber(call('HGET', cell.key, '=' .. lease) or nil)
  if amount then return math.abs(amount), amount < 0 end
end

local function set_hold(cell, lease, amount, was_firm, firm)
  call('HSET', cell.key, '=' .. lease, firm and -amount or amount)
  cell.firm = cell.firm - (was_firm and 1 or 0) + (firm and 1 or 0)
end

local function set_expiry(cell, lease, expires_ms)
  call('ZADD', cell.leases, expires_ms, lease)
  cell.due_ms = min(cell.due_ms, expires_ms)
  cell.until_ms = max(cell.until_ms, expires_ms)
end

local function hold(cell, lease, units, expires_ms)
  if call('HSETNX', cell.key, '=' .. lease, units) == 0 then
    local held, firm = held_by(cell, lease)
    set_hold(cell, lease, held + units, firm, false)
  end
  set_expiry(cell, lease, expires_ms)
  cell.pending = cell.pending + units
end

local function drop(cell, lease, amount, firm)
  call('HDEL', cell.key, '=' .. lease)
  call('ZREM', cell.leases, lease)
  cell.pending = cell.pending - amount
  cell.firm = cell.firm - (firm and 1 or 0)
end

local function end_hold(cell, lease, now_ms)
  local amount, firm = held_by(cell, lease)
  if not amount or firm then return end
  if cell.limits.hold_ms > 0 then
    set_hold(cell, lease, amount, false, true)
    set_expiry(cell, lease, now_ms + cell.limits.hold_ms)
  else
    drop(cell, lease, amount)
  end
end

local function expire(cell, now_ms)
  local ended = call('ZRANGEBYSCORE', cell.leases, '-inf', now_ms, 'WITHSCORES', 'LIMIT', 0, EXPIRE_AT_MOST)
  cell.due_ms = EXACT
  for at = 1, #ended, 2 do
    local lease, at_ms = ended[at], max(cell.at_ms, tonumber(ended[at + 1]))
    touch(cell, at_ms)
    local amount, firm = held_by(cell, lease)
    drop(cell, lease, amount, firm)
    if cell.limits.kind ~= LEASES then charge(cell, amount, at_ms) end
  end
  local first = call('ZRANGE', cell.leases, 0, 0, 'WITHSCORES')
  cell.due_ms = tonumber(first[2]) or EXACT
end

touch = function(cell, now_ms)
  if cell.due_ms <= now_ms then expire(cell, now_ms) end
  if cell.limits.drain > 0 then
    cell.level = max(0, cell.level - cell.limits.drain * (now_ms - cell.at_ms))
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
