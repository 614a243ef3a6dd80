-- What leases hold of a budget: read when asked for, written together before anybody reads them in order.

-- { amount, firm = it ends exactly at its instant, expires_ms if set in this batch }, or false.
local function held_by(cell, lease)
  local held = cell.held[lease]
  if held == nil then
    local amount = tonumber(call('HGET', cell.key, '=' .. lease) or nil)
    held = amount and { amount = math.abs(amount), firm = amount < 0 } or false
    cell.held[lease] = held
  end
  return held
end

local function put(cell, lease, held)
  local before = held_by(cell, lease)
  if before then
    cell.pending = cell.pending - before.amount
    cell.firm = cell.firm - (before.firm and 1 or 0)
    if held then held.expires_ms = held.expires_ms or before.expires_ms end
  end
  if held then
    cell.pending = cell.pending + held.amount
    cell.firm = cell.firm + (held.firm and 1 or 0)
    if held.expires_ms then
      cell.due_ms = min(cell.due_ms, held.expires_ms)
      cell.until_ms = max(cell.until_ms, held.expires_ms)
    end
  end
  cell.held[lease] = held
  cell.changed[lease] = true
end

local function write_leases(cell)
  if not next(cell.changed) then return end
  local amounts, expiries, fields, gone = {}, {}, {}, {}
  for lease in pairs(cell.changed) do
    local held, field = cell.held[lease], '=' .. lease
    if held then
      amounts[#amounts + 1], amounts[#amounts + 2] = field, held.firm and -held.amount or held.amount
    else
      fields[#fields + 1], gone[#gone + 1] = field, lease
    end
    if held and held.expires_ms then
      expiries[#expiries + 1], expiries[#expiries + 2] = held.expires_ms, lease
    end
  end
  if amounts[1] then call('HSET', cell.key, unpack(amounts)) end
  if expiries[1] then call('ZADD', cell.leases, unpack(expiries)) end
  if gone[1] then
    call('HDEL', cell.key, unpack(fields))
    call('ZREM', cell.leases, unpack(gone))
  end
  cell.changed = {}
end

-- Leases by expiry from place `first` to `last`, as lease, expires_ms, lease, expires_ms ...
local function leases_by_expiry(cell, first, last)
  write_leases(cell)
  return call('ZRANGE', cell.leases, first, last, 'WITHSCORES')
end
