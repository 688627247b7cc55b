-- Gives gates back. given: gates, a list of {gate, wait (ms until it may send; -1: not known), done (nothing is due
-- there)}.
for _, each in ipairs(given.gates) do
  local gate, wait, done = each[1], each[2], each[3]
  if redis.call('HGET', key('gates'), gate) == me then
    redis.call('HDEL', key('gates'), gate)
    redis.call('HDEL', key('in_flight'), gate)
    if wait >= 0 then
      redis.call('HSET', key('wakes'), gate, now + wait)
    end
    if done then
      redis.call('HSET', key('done'), gate, now)
    end
  end
end
note_sizes()
return cjson.encode({now = now})
