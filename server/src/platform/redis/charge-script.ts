import { RING, SUBWINDOWS } from "../../../../engine/src/rules/strict-window.ts";
import { LIMIT_MAX } from "../../../../engine/src/rules/window.ts";

/**
 * The Lua script that decides a batch of calls at one instant of Redis' clock. It implements `engine/src/rules/window.ts`
 * and `engine/src/rules/strict-window.ts` in the same doubles and with the same chunks of 12 bits, so that both give the
 * same results.
 *
 * The value of a counter is a list of doubles: end, current and previous. Of a strict counter: the index of its newest
 * sub-window, and the counts of it and of the sub-windows before it, as long as they count.
 *
 * KEYS: the epoch, then each counter of the batch and each receipt once. A receipt is written with the charges of a call,
 * and says what the call has consumed of each counter, as doubles: the end of the counter, its duration and the amount. Of
 * a strict counter: the index of the sub-window, 0 and the amount.
 *
 * ARGV:
 * 1. deadline: the script decides nothing after it, in ms of Redis' clock
 * 2. the epoch of the node, or an empty string
 * 3. a name for a new epoch
 * 4. the latest time of this Redis that the node has received; 0 for none
 * 5. 1 if windows that began before a loss of data count as full
 * 6. the calls as one list in JSON: per call the number of its charges, and 0 if it must not consume, 1 if it may, or the
 *    index in KEYS of the receipt that it writes then, followed by how long the receipt lasts in ms; per charge the index
 *    of its counter (from 1), limit, duration, cost, and a sum of 1 if it commits, 2 if the limit is strict and 4 if it is
 *    forced
 * 7. in tests only: the time
 *
 * The reply is a list: 1 (or 0: too late, followed by the time only), the time, the name of the epoch, the time of the
 * loss (0: none); then per charge the remaining amount, the reset, and the wait (0: allowed, −1: never). After the wait of
 * a denied call with one charge: end, current and previous of the counter; of a strict one the index of the first
 * sub-window that counts at the start of the current one, the number of sub-windows, and their counts.
 *
 * The value of the epoch is its name, the time of the loss before it (0: none), and the latest time of Redis, updated each
 * second. Data was lost if the epoch is missing, if its name differs from that of the node, or if its time is far before
 * the time that the node has received (an old copy was restored).
 */
export const chargeScript = `
local LIMIT_MAX, SUBWINDOWS, RING = ${LIMIT_MAX}, ${SUBWINDOWS}, ${RING}
local floor, max, min = math.floor, math.max, math.min

local function multiply_divide(count, by, divisor, addend)
  local product = count * by
  if product < 9007199254740992 then return floor((product + addend) / divisor) end
  local quotient, remainder, unit = 0, 0, 68719476736
  while unit >= 1 do
    local chunk = floor(count / unit) % 4096
    local dividend = remainder * 4096 + chunk * by
    if unit == 1 then dividend = dividend + addend end
    local digit = floor(dividend / divisor)
    remainder = dividend - digit * divisor
    quotient = quotient * 4096 + digit
    unit = unit / 4096
  end
  return quotient
end

local simulated = tonumber(ARGV[7])
local now = simulated
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
end
if now > tonumber(ARGV[1]) then return {0, now} end

local node_epoch, node_time = ARGV[2], tonumber(ARGV[4])
local epoch, lost, seen
local stored = redis.call('GET', KEYS[1])
if stored then
  epoch, lost, seen = string.match(stored, '^(%S+) (%d+) (%d+)$')
  lost, seen = tonumber(lost), tonumber(seen)
end
local is_changed = false
if not epoch then
  epoch, lost, seen, is_changed = ARGV[3], 0, 0, true
  if node_epoch ~= '' then lost = now end
elseif seen < node_time - 3000 then
  epoch, lost, is_changed = ARGV[3], now, true
elseif node_epoch ~= '' and node_epoch ~= epoch and lost == 0 then
  lost, is_changed = now, true
end
if is_changed or now - seen >= 1000 then
  seen = max(seen, now)
  redis.call('SET', KEYS[1], string.format('%s %.0f %.0f', epoch, lost, seen))
end
local full_before = ARGV[5] == '1' and lost or 0

local calls = cjson.decode(ARGV[6])
local windows = {}

local function open_window(key, duration)
  local window = {key = key, behind = 0, current = 0, previous = 0, ahead = 0, is_changed = false}
  local start = floor(now / duration) * duration
  window.start, window.rest = start, start + duration - now
  local state = redis.call('GET', KEYS[key + 1])
  if state then
    local ending, current, previous = struct.unpack('<ddd', state)
    local windows_ago = start + 2 * duration - ending
    if windows_ago == 0 then
      window.current, window.previous = current, previous
    elseif windows_ago == duration then
      window.previous = current
    elseif windows_ago < 0 then
      window.current, window.previous = current, previous
      local behind = ending - 2 * duration - now
      if behind > duration then
        -- Too far ahead: move the counts to the current window.
        window.is_changed, window.ending = true, start + 2 * duration
      else
        start = ending - 2 * duration
        window.start, window.rest, window.behind = start, duration, behind
      end
    end
  end
  window.carried = window.previous == 0 and 0 or multiply_divide(window.previous, window.rest, duration, 0)
  windows[key] = window
  return window
end

local function release(index, window)
  return (index + 1) * window.length - 1 + window.duration
end

-- The first sub-window that counts at the start of the current one. If the clock steps back to there, it counts again.
local function oldest_at_start(window)
  return floor((window.current * window.length + 1 - window.duration) / window.length)
end

local function open_strict(key, duration)
  local length = math.ceil(duration / SUBWINDOWS)
  local window = {key = key, is_strict = true, duration = duration, length = length, ahead = 0, is_changed = false}
  local counts, newest = {}, -1
  local time, current = now, floor(now / length)
  local state = redis.call('GET', KEYS[key + 1])
  if state then
    local numbers = {struct.unpack('<' .. string.rep('d', #state / 8), state)}
    newest = numbers[1]
    local oldest, moved = 0, 0
    if newest > current then
      -- The clock stepped back. Too far ahead: move the counts by whole rings.
      oldest = floor((newest * length + 1 - duration) / length)
      moved = floor((newest - current - 1) / RING) * RING
      window.is_changed = moved > 0
      current = max(current, newest - moved)
      time = max(now, current * length)
    end
    for i = 2, #numbers - 1 do
      local index = newest - i + 2
      if index >= oldest then counts[index - moved] = numbers[i] end
    end
  end
  window.counts, window.current = counts, current
  window.oldest = floor((time + 1 - duration) / length)
  window.used = 0
  for index = window.oldest, current do window.used = window.used + (counts[index] or 0) end
  windows[key] = window
  return window
end

-- The counts that hold for one charge, and their sum. The charges before a loss are unknown, so their sub-window is full.
local function strict_counts(window, limit)
  local lost_at = floor(full_before / window.length)
  if full_before == 0 or lost_at < window.oldest then return window.counts, window.used end
  local counts = {}
  for index, count in pairs(window.counts) do counts[index] = count end
  lost_at = min(lost_at, window.current)
  local before = counts[lost_at] or 0
  counts[lost_at] = max(before, limit)
  return counts, window.used - before + counts[lost_at]
end

-- When the oldest charge stops counting, or would if it were made now.
local function strict_reset(window, counts)
  local index = window.oldest
  while index < window.current and (counts[index] or 0) == 0 do index = index + 1 end
  return release(index, window)
end

local function strict_wait(window, counts, used, limit, cost)
  local index = window.oldest
  while index < window.current do
    used = used - (counts[index] or 0)
    if used + cost <= limit then break end
    index = index + 1
  end
  return release(index, window) - now
end

local reply = {1, now, epoch, lost}
local size = 4
local at, last = 1, #calls
while at < last do
  local count, receipt = calls[at], calls[at + 1]
  at = at + 2
  local life
  if receipt > 1 then
    life = calls[at]
    at = at + 1
  end
  local allowed = true
  local entries = {}
  for i = 1, count do
    local key, limit, duration, cost = calls[at], calls[at + 1], calls[at + 2], calls[at + 3]
    local flags = calls[at + 4]
    local window, used, counts
    local current, previous = 0, 0
    if flags % 4 >= 2 then
      window = windows[key] or open_strict(key, duration)
      counts, used = strict_counts(window, limit)
    else
      window = windows[key] or open_window(key, duration)
      local carried
      current, previous, carried = window.current, window.previous, window.carried
      if window.start - duration < full_before then
        -- The charges before the loss are unknown, so the windows count as full.
        if window.start < full_before then current = max(current, limit) end
        previous = max(previous, limit)
        carried = previous == 0 and 0 or multiply_divide(previous, window.rest, duration, 0)
      end
      used = current + carried
    end
    local before = window.ahead
    local own = flags % 2 == 1 and cost or 0
    local fits = flags >= 4 or limit > 0 and used + before + cost <= limit
    if not fits then allowed = false end
    window.ahead = before + own
    entries[i] = {window, limit, duration, before + cost, before + own, used, current, previous, fits, counts}
    at = at + 5
  end
  local consumes = allowed and receipt > 0
  local consumed_amounts = ''
  for i = 1, count do
    local window, limit, duration, cost, consumed, used, current, previous, fits, counts = unpack(entries[i])
    if fits then
      reply[size + 1] = max(0, limit - used - (consumes and consumed or 0))
      if window.is_strict then reply[size + 2] = strict_reset(window, counts)
      else reply[size + 2] = window.start + duration end
      reply[size + 3] = 0
      size = size + 3
    elseif window.is_strict then
      reply[size + 1] = max(0, limit - used)
      reply[size + 2] = strict_reset(window, counts)
      reply[size + 3] = limit > 0 and cost <= limit and strict_wait(window, counts, used, limit, cost) or -1
      size = size + 3
      if count == 1 then
        local oldest = oldest_at_start(window)
        reply[size + 1] = oldest
        reply[size + 2] = window.current - oldest + 1
        size = size + 2
        for index = oldest, window.current do
          size = size + 1
          reply[size] = counts[index] or 0
        end
      end
    else
      local wait = -1
      if limit > 0 and cost <= limit then
        local room = limit - cost - current
        wait = window.behind + window.rest
        if room >= 0 then wait = wait - multiply_divide(room + 1, duration, previous, -1)
        else wait = wait + duration - multiply_divide(limit - cost + 1, duration, current, -1) end
      end
      reply[size + 1] = max(0, limit - used)
      reply[size + 2] = window.start + duration
      reply[size + 3] = wait
      size = size + 3
      if count == 1 then
        reply[size + 1] = window.start + 2 * duration
        reply[size + 2] = current
        reply[size + 3] = previous
        size = size + 3
      end
    end
  end
  for i = 1, count do
    local window = entries[i][1]
    if not consumes then
      window.ahead = 0
    elseif window.ahead > 0 and entries[i][5] > 0 then
      window.is_changed = true
      local charged, duration = window.current, 0
      if window.is_strict then
        local before = window.counts[charged] or 0
        window.counts[charged] = min(LIMIT_MAX, before + window.ahead)
        window.used = window.used - before + window.counts[charged]
      else
        window.current = min(LIMIT_MAX, window.current + window.ahead)
        window.ending = window.start + 2 * entries[i][3]
        charged, duration = window.ending, entries[i][3]
      end
      if receipt > 1 then
        consumed_amounts = consumed_amounts .. struct.pack('<ddd', charged, duration, window.ahead)
      end
      window.ahead = 0
    end
  end
  if consumed_amounts ~= '' then redis.call('SET', KEYS[receipt], consumed_amounts, 'PX', life) end
end

for key, window in pairs(windows) do
  if window.is_changed then
    local state
    if window.is_strict then
      local packed, size = {}, 0
      for index = window.current, oldest_at_start(window), -1 do
        local count = window.counts[index] or 0
        packed[#packed + 1] = struct.pack('<d', count)
        if count > 0 then size = #packed end
      end
      state = struct.pack('<d', window.current) .. table.concat(packed, '', 1, size)
      window.ending = release(window.current, window)
    else
      state = struct.pack('<ddd', window.ending, window.current, window.previous)
    end
    if simulated then redis.call('SET', KEYS[key + 1], state, 'PX', 600000)
    else redis.call('SET', KEYS[key + 1], state, 'PXAT', string.format('%.0f', window.ending)) end
  end
end
return reply
`;

/**
 * The Lua script that gives back some of what a call has consumed, once: it removes the receipt of the call.
 *
 * KEYS: the epoch, the receipt, then the counters that the call has consumed from, each once and in the order of the charges
 * that first consumed from them.
 * ARGV: the deadline, which is ignored, because a late return does no harm; then how much of the amount of each counter
 * stays consumed. So nobody gets back more than the receipt says. The reply is 1, the time, the name of the epoch or an empty
 * string, and 1 if there was a receipt; then for each counter 1 if it got the rest back, or 2 if it is also still in
 * the window of the call.
 *
 * The rest is subtracted from the window or sub-window in which it was charged: the current or an earlier one. If that has
 * ended, or the clock was set and the counter was moved, it stays. So does a count at its maximum, which may stand for more.
 * A receipt is replicated with its charges, so after a failover both are there or neither is.
 */
export const giveBackScript = `
local LIMIT_MAX = ${LIMIT_MAX}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local epoch = string.match(redis.call('GET', KEYS[1]) or '', '^%S+') or ''
local receipt = redis.call('GET', KEYS[2])
if not receipt or #receipt ~= 24 * (#KEYS - 2) then return {1, now, epoch, 0} end
redis.call('DEL', KEYS[2])

local function reduce(count, amount)
  if count >= LIMIT_MAX then return count end
  return math.max(0, count - amount)
end

local reply = {1, now, epoch, 1}
for i = 3, #KEYS do
  local charged, duration, consumed = struct.unpack('<ddd', receipt, 24 * (i - 3) + 1)
  local amount = consumed - tonumber(ARGV[i - 1])
  local state = amount > 0 and redis.call('GET', KEYS[i])
  local is_returned = amount <= 0
  if state then
    if duration == 0 then
      local at = 8 * (struct.unpack('<d', state) - charged + 1)
      if at >= 8 and at < #state then
        local given = struct.pack('<d', reduce(struct.unpack('<d', state, at + 1), amount))
        redis.call('SET', KEYS[i], state:sub(1, at) .. given .. state:sub(at + 9), 'KEEPTTL')
        is_returned = true
      end
    else
      local ending, current, previous = struct.unpack('<ddd', state)
      is_returned = ending == charged or ending == charged + duration
      if ending == charged then current = reduce(current, amount)
      elseif is_returned then previous = reduce(previous, amount) end
      if is_returned then redis.call('SET', KEYS[i], struct.pack('<ddd', ending, current, previous), 'KEEPTTL') end
    end
  end
  reply[i + 2] = is_returned and (duration > 0 and charged - duration > now and 2 or 1) or 0
end
return reply
`;
