-- What a batch changed goes back to the server, with the TTL of what forgets by itself.

-- The instant from which the budget is as good as new, if nothing but what is known now happens to it.
local function idle_ms(cell)
  local limits, last_ms = cell.limits, max(book.now_ms, cell.until_ms, cell.promised_ms)
  if limits.kind == LEASES then return max(last_ms + limits.hold_ms, book.birth_ms + limits.lease_ms) end
  if limits.kind == COUNTER then return forgotten_at_ms(limits, slice_at(limits, last_ms)) end
  if cell.drain == 0 then return EXACT end
  local cold_ms = book.birth_ms + ceil(limits.burst * cell.scale / cell.drain)
  return max(cold_ms, last_ms + ceil((cell.level + cell.pending * cell.scale) / cell.drain))
end

local function keep(cell)
  local needed_ms = min(EXACT, idle_ms(cell) + MARGIN_MS)
  local renewed = needed_ms > cell.keep_ms
  if renewed then
    cell.keep_ms = min(EXACT, needed_ms + KEEP_MS)
    call('HSET', cell.key, 'keep_ms', cell.keep_ms)
    if cell.keep_ms == EXACT then call('PERSIST', cell.key) else call('PEXPIRE', cell.key, cell.keep_ms - book.now_ms) end
  end
  -- Leases that were all gone have lost their TTL; those of a budget that never idles end by their expiry.
  if (renewed or cell.until_ms > 0) and cell.keep_ms < EXACT then
    call('PEXPIRE', cell.leases, cell.keep_ms - book.now_ms)
  end
end

local function write_cell(cell)
  write_leases(cell)
  call('HSET', cell.key, 'level', cell.level, 'pending', cell.pending, 'firm', cell.firm, 'at_ms', cell.at_ms, 'due_ms',
    cell.due_ms, 'promised_ms', cell.promised_ms)
  if cell.slices then
    local text = {}
    for slice, units in pairs(cell.slices) do text[#text + 1] = string.format('%.0f %.0f', slice, units) end
    call('HSET', cell.key, 'slices', table.concat(text, ' '))
  end
  keep(cell)
end

local function write_line(line)
  local flat, row, last_ms = {}, {}, 0
  for ticket, it in pairs(line.told) do
    row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8] =
      it.ready_ms, it.due_ms, it.expires_ms, it.kind, it.cost, it.reserve, it.at, it.tier
    flat[#flat + 1], flat[#flat + 2] = ticket, cmsgpack.pack(row)
    last_ms = max(last_ms, it.expires_ms)
  end
  if last_ms == 0 then return end
  local keep_ms = max(last_ms + KEEP_MS, tonumber(call('HGET', line.entries, '') or 0))
  call('HSET', line.entries, '', keep_ms, unpack(flat))
  call('PEXPIRE', line.entries, keep_ms - book.now_ms)
  call('PEXPIRE', line.order, keep_ms - book.now_ms)
end

local function close_book()
  for _, cell in pairs(cells) do
    if cell then write_cell(cell) end
  end
  for _, line in pairs(lines) do write_line(line) end
  call('HSET', KEYS[1], 'run', run, 'birth_ms', book.birth_ms, 'now_ms', book.now_ms, 'offset_ms', book.offset_ms,
    'clock_steps', book.clock_steps, 'sequence', book.sequence)
end
