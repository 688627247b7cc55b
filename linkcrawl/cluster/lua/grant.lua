-- A check wants to start that has to clear clocks, all or none. given: clocks, a list of {name, delay (ms), most a day
-- or 0}; today (days since 1970, UTC); grant, the name of what is asked for. Gives the wait in ms; 0: go, and nobody
-- else does until struck.lua says when.
local wait, mine = 0, me .. ' ' .. given.grant
for _, each in ipairs(given.clocks) do
  local name, delay, most = each[1], each[2], each[3]
  local ready = redis.call('HGET', key('clocks'), name)
  if not ready then -- nobody knows when it struck last
    ready = now + delay
    redis.call('HSET', key('clocks'), name, ready)
  end
  wait = math.max(wait, tonumber(ready) - now)
  local striking = redis.call('HGET', key('striking'), name)
  if striking and striking ~= mine then
    if not alive(string.match(striking, '^%S+')) then -- it died, and its check may have begun just now
      redis.call('HDEL', key('striking'), name)
      redis.call('HSET', key('clocks'), name, now + delay)
    end
    wait = math.max(wait, delay, 1)
  end
  local count = redis.call('HGET', key('counts:' .. given.today), name)
  if most > 0 and tonumber(count or '0') >= most then
    wait = math.max(wait, (given.today + 1) * DAY - now)
  end
end
if wait == 0 then
  for _, each in ipairs(given.clocks) do
    redis.call('HSET', key('striking'), each[1], mine)
    redis.call('HINCRBY', key('counts:' .. given.today), each[1], 1)
    lasting('counts:' .. given.today)
  end
end
return cjson.encode({wait = wait})
