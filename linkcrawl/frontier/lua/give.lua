-- Gives gates back. given: gates, a list of {gate, wait (ms until it may send; -1: not known), done (nothing is due
-- there)}; again (ms until one with checks that go on elsewhere is worth a look: their links are still due).
for _, each in ipairs(given.gates) do
  local gate, wait, done = each[1], each[2], each[3]
  if redis.call('HGET', key('gates'), gate) == me then
    redis.call('HDEL', key('gates'), gate)
    redis.call('HDEL', key('flying'), gate)
    if wait >= 0 then
      redis.call('HSET', key('wakes'), gate, now + wait)
    end
    if done then
      local out = redis.call('ZCOUNT', key('out:' .. gate), now, '+inf') > 0
      redis.call('HSET', key('done'), gate, now + (out and given.again or 0))
    end
  end
end
return cjson.encode({now = now})
