-- What was granted has begun, a moment ago, or won't. given: clocks, a list of {name, delay (ms)}; begun; today.
for _, each in ipairs(given.clocks) do
  if given.begun then
    redis.call('HSET', key('clocks'), each[1], now + each[2])
  else
    redis.call('HINCRBY', key('counts:' .. given.today), each[1], -1)
  end
  if redis.call('HGET', key('striking'), each[1]) == me then
    redis.call('HDEL', key('striking'), each[1])
  end
end
return cjson.encode({now = now})
