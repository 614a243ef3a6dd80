-- Why not now, and when (the twin of core/denial.py).
local ASK_AGAIN_MS, ASK_AGAIN_AT_MOST_MS, SENT_AWAY_AT_MOST_MS = 250, 5000, 20000
local cell_of -- kernel.lua

local function possible(cell, rank, need, now_ms)
  local missing = cell.level + need * cell.scale - cell.caps[rank]
  if missing > 0 and cell.drain > 0 then return now_ms + drained_ms(cell, missing) end
  return now_ms
end

local function certain(cell, rank, need, now_ms)
  if cell.due_ms <= now_ms then return EXACT end -- more is overdue than one step may end
  local limits = cell.limits
  local last_ms = tonumber(leases_by_expiry(cell, -1, -1)[2])
  local ends_ms = last_ms or now_ms
  if limits.kind == LEASES then return last_ms and last_ms + limits.hold_ms or now_ms end
  if limits.kind == COUNTER then return forgotten_at_ms(limits, slice_at(limits, ends_ms)) end
  if cell.drain == 0 then return EXACT end
  local level = max(0, cell.level - cell.drain * (ends_ms - now_ms)) + cell.pending * cell.scale
  return ends_ms + max(0, drained_ms(cell, level + need * cell.scale - cell.caps[rank]))
end

-- A guess when the caller's turn comes, as if everybody before it needed as much.
local function turn(cell, request, need, now_ms)
  local place = floor(position(cell.line, request.score) / cell.limits.sharing)
  if place == 0 or cell.drain == 0 then return now_ms end
  local ahead = cell.pending + (place + 1) * need
  return now_ms + max(0, drained_ms(cell, cell.level + ahead * cell.scale - cell.caps[request.rank]))
end

-- What does not fit, when its turn may come, and whether nobody knows, so that it has to ask now and then; nil if it fits.
local function blocker(cell, request, demands, cost, reserve, now_ms)
  if cell.at_ms ~= now_ms then touch(cell, now_ms) end -- what take saw must still block
  local limits, rank, need = cell.limits, request.rank, cost + reserve
  local cap = cell.caps[rank]
  local kind, turn_ms
  local at_ms = earliest(cell, rank, cost, reserve, now_ms)
  local certain_ms = at_ms
  if cap < 0 then
    kind, at_ms, certain_ms = EVENT, now_ms, EXACT
  elseif need * cell.scale > cap then
    kind, at_ms, certain_ms = NEVER, EXACT, EXACT
  elseif not at_ms then
    kind, at_ms, certain_ms = EVENT, possible(cell, rank, need, now_ms), certain(cell, rank, need, now_ms)
  elseif at_ms > now_ms then
    kind = TIME
  elseif cell.behind == demands or holds_back(cell, request, cost, reserve, now_ms) then
    kind, turn_ms = LINE, passes_ms(cell, request, cost, reserve, now_ms)
  else
    return nil
  end
  local remaining = max(0, floor((cap - cell.level) / cell.scale) - cell.pending)
  local told = {
    cell.index, kind, at_ms, certain_ms, remaining,
    cap < 0 and 0 or limits.quota > 0 and limits.quota or limits.burst,
    limits.window_ms, limits.revision, limits.tier,
  }
  if turn_ms then return told, turn_ms, false end
  return told, turn(cell, request, need, now_ms), kind ~= TIME
end

local function examine(request, chosen, now_ms)
  local case = {
    chosen = chosen, kind = TIME, ready_ms = now_ms, turn_ms = now_ms, certain_ms = now_ms, polls = false,
    blockers = {}, blocked = {},
  }
  local demands = request.alternatives[chosen]
  for at = 1, #demands, 3 do
    local cell, cost, reserve = cell_of(demands[at]), demands[at + 1], demands[at + 2]
    local told, turn_ms, polls = blocker(cell, request, demands, cost, reserve, now_ms)
    if told then
      case.blockers[#case.blockers + 1] = told
      case.blocked[#case.blocked + 1] = { cell = cell, cost = cost, reserve = reserve }
      case.turn_ms, case.polls = max(case.turn_ms, turn_ms), case.polls or polls
      case.kind = max(case.kind, told[2])
      case.ready_ms = max(case.ready_ms, told[3])
      case.certain_ms = max(case.certain_ms, told[4])
    end
  end
  return case
end

-- Nobody knows when an event comes: it counts from when its ticket asks again.
local function fits_ms(case)
  return case.ready_ms + (case.kind == EVENT and ASK_AGAIN_MS or 0)
end

local function fits_before(one, other)
  if (one.kind == NEVER) ~= (other.kind == NEVER) then return other.kind == NEVER end
  if fits_ms(one) ~= fits_ms(other) then return fits_ms(one) < fits_ms(other) end
  return one.kind < other.kind
end

local function due(case, place, now_ms)
  local latest_ms = now_ms + ASK_AGAIN_AT_MOST_MS
  if case.kind == TIME or case.kind == NEVER then return max(case.ready_ms, min(case.turn_ms, latest_ms)) end
  local soon_ms = case.polls and now_ms + ASK_AGAIN_MS * (1 + place) or now_ms
  return min(max(soon_ms, case.ready_ms, case.turn_ms), latest_ms)
end

-- The place that the ticket has already if the answer that told it was lost, else the last of its class.
local function first_place(request, case, now_ms)
  for _, blocked in ipairs(case.blocked) do
    local score = call('ZSCORE', blocked.cell.line.order, request.ticket)
    if score then return tonumber(score) end
  end
  book.sequence = max(book.sequence + 1, now_ms * 1000)
  return request.rank * CLASS_STEP + book.sequence
end

local function note(indices, index) -- in the order of first sight; there are few
  for at = 1, #indices do
    if indices[at] == index then return end
  end
  indices[#indices + 1] = index
end

-- The earliest tier of what blocks until nobody knows when, or, where all is time, of what blocks for longest.
local function held_up_at(case)
  local tier = WAYS
  for _, told in ipairs(case.blockers) do
    local lasts = told[2] ~= TIME
    if case.kind == TIME then lasts = told[3] == case.ready_ms end
    if lasts then tier = min(tier, told[9]) end
  end
  return tier
end

local function stand(request, case, score, due_ms)
  local standing, tier = {}, held_up_at(case)
  for _, index in ipairs(request.standing) do note(standing, index) end
  for _, blocked in ipairs(case.blocked) do
    local line = blocked.cell.line
    local entry = join(line, request.ticket, score, true)
    entry.at, entry.cost, entry.reserve = budget_names[blocked.cell.index], blocked.cost, blocked.reserve
    note(standing, line.index)
  end
  for _, index in ipairs(standing) do
    local entry = join(line_at(index), request.ticket, score)
    entry.ready_ms, entry.due_ms, entry.kind, entry.tier = case.ready_ms, due_ms, case.kind, tier
    entry.expires_ms = due_ms + request.expires_after_ms
  end
  return standing
end

-- When the caller should come back: one call after the last who was sent away, and standing in no line.
local function send_away(request, case, from_ms)
  for _, index in ipairs(request.standing) do leave(line_at(index), request.ticket) end
  local last, last_ms
  for number, told in ipairs(case.blockers) do
    if not last or told[3] > last_ms then last, last_ms = case.blocked[number], told[3] end
  end
  local cell, need = last.cell, last.cost + last.reserve
  local gap_ms = cell.drain > 0 and drained_ms(cell, need * cell.scale) or ASK_AGAIN_MS
  if from_ms < cell.promised_ms and cell.promised_ms <= from_ms + SENT_AWAY_AT_MOST_MS then from_ms = cell.promised_ms end
  cell.promised_ms = from_ms + gap_ms
  return from_ms
end

-- How many stand before the caller, and how many at all, in the fullest line that blocks it.
local function place_of(case, score)
  local fullest
  for _, blocked in ipairs(case.blocked) do
    local line = blocked.cell.line
    if not fullest or depth(line) > depth(fullest) then fullest = line end
  end
  return position(fullest, score), depth(fullest)
end

-- What every alternative takes, by budget.
local function common_of(alternatives)
  local common, first = {}, alternatives[1]
  for at = 1, #first, 3 do common[first[at]] = { first[at + 1], first[at + 2] } end
  for other = 2, #alternatives do
    local demands, same = alternatives[other], {}
    for at = 1, #demands, 3 do
      local was = common[demands[at]]
      if was and was[1] == demands[at + 1] and was[2] == demands[at + 2] then same[demands[at]] = was end
    end
    common = same
  end
  return common
end

-- The alternative that will fit first; where nothing blocks but what blocks all of them, none that follows fits sooner.
local function first_case(request, now_ms)
  if #request.alternatives == 1 then return examine(request, 1, now_ms) end
  local case
  local common = common_of(request.alternatives)
  for chosen = 1, #request.alternatives do
    local one = examine(request, chosen, now_ms)
    if not case or fits_before(one, case) then case = one end
    local is_common = true
    for _, told in ipairs(one.blockers) do is_common = is_common and common[told[1]] end
    if is_common then break end
  end
  return case
end

local function deny(request, now_ms)
  local case = first_case(request, now_ms)
  local score, lines = request.score, request.standing
  local place, tickets = place_of(case, score)
  local not_before_ms = max(case.ready_ms, min(case.turn_ms, now_ms + SENT_AWAY_AT_MOST_MS))
  local due_ms = not_before_ms
  if case.kind ~= NEVER then
    if score == request.rank * CLASS_STEP + CLASS_STEP - 1 then
      score = first_place(request, case, now_ms)
    end
    if request.waits then
      due_ms = due(case, place, now_ms)
      lines = stand(request, case, score, due_ms)
    else
      not_before_ms = send_away(request, case, not_before_ms)
      due_ms, lines = not_before_ms, {}
    end
  end
  return { 'denied', case.kind, not_before_ms, max(case.certain_ms, not_before_ms), due_ms, case.chosen - 1,
    case.blockers, score, lines, place, tickets }
end
