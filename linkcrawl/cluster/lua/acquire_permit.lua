-- Grants a permit to start a check under shared limits: under all of them, or none. given: limits, a list of {name,
-- delay (ms), most starts in each window (0: any number)}; windows, a list of {name, number, end (ms)} in the same order;
-- permit, the name of what is asked for. Gives the wait of each limit in ms. All 0: granted, and nobody else gets a permit
-- under these limits until settle_permit.lua has run.
local mine, waits, granted = me .. ' ' .. given.permit, {}, true
local function counts(window)
  return key('counts:' .. window[1] .. ':' .. window[2])
end
for index, limit in ipairs(given.limits) do
  local name, delay, most = limit[1], limit[2], limit[3]
  local ready = redis.call('HGET', key('limits'), name)
  if not ready then -- nobody knows when the last one started
    ready = now + delay
    redis.call('HSET', key('limits'), name, ready)
  end
  local wait = math.max(0, tonumber(ready) - now)
  local holder = redis.call('HGET', key('permits'), name)
  if holder and holder ~= mine then
    if not alive(string.match(holder, '^%S+')) then -- it died, and its check may have started just now
      redis.call('HDEL', key('permits'), name)
      redis.call('HSET', key('limits'), name, now + delay)
    end
    wait = math.max(wait, delay, 1)
  end
  for number, window in ipairs(given.windows) do
    local count = redis.call('HGET', counts(window), name)
    if most[number] > 0 and tonumber(count or '0') >= most[number] then
      wait = math.max(wait, window[3] - now)
    end
  end
  waits[index] = wait
  granted = granted and wait == 0
end
if granted then
  for _, limit in ipairs(given.limits) do
    redis.call('HSET', key('permits'), limit[1], mine)
    for _, window in ipairs(given.windows) do
      redis.call('HINCRBY', counts(window), limit[1], 1)
      redis.call('PEXPIRE', counts(window), math.floor(math.max(0, window[3] - now)) + DAY) -- for clocks that differ
    end
  end
end
return cjson.encode({waits = waits})
