-- What was granted has begun, a moment ago, or won't. given: clocks, a list of {name, delay (ms)}; grant; begun; today.
-- Running it twice puts a clock off a little: its answer may get lost.
for _, each in ipairs(given.clocks) do
  local name, delay = each[1], each[2]
  local mine = redis.call('HGET', key('striking'), name) == me .. ' ' .. given.grant
  if given.begun then
    redis.call('HSET', key('clocks'), name, now + delay)
  elseif mine then
    redis.call('HINCRBY', key('counts:' .. given.today), name, -1)
  end
  if mine then
    redis.call('HDEL', key('striking'), name)
  end
end
return cjson.encode({now = now})
