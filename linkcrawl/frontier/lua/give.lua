-- Gives gates back. given: gates, a list of {gate, wait (ms until it may send; -1: not known), done (nothing is due there), hops, out
-- (tokens of checks that go on elsewhere)}; keep (ms that a token holds).
for _, each in ipairs(given.gates) do
  local gate, wait, done, hops, out = each[1], each[2], each[3], each[4], each[5]
  if redis.call('HGET', key('gates'), gate) == me then
    redis.call('HDEL', key('gates'), gate)
    redis.call('HDEL', key('flying'), gate)
    if wait >= 0 then
      redis.call('HSET', key('wakes'), gate, now + wait)
    end
    if done then
      redis.call('HSET', key('done'), gate, now)
    end
    for _, hop in ipairs(hops) do
      redis.call('RPUSH', key('hops:' .. gate), hop)
      redis.call('SADD', key('hopgates'), gate)
      lasting('hops:' .. gate)
    end
    for _, token in ipairs(out) do
      redis.call('ZADD', key('out:' .. gate), now + given.keep, token)
      lasting('out:' .. gate)
    end
  end
end
return cjson.encode({now = now})
