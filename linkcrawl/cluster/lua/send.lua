-- A check whose next hop goes to a gate that another worker leases, or nobody. given: gate, hop (JSON text), home (the
-- gate of the check's link), token, keep (ms), journey (names this passing on: said twice, as its answer may get lost,
-- it passes on once). Rings at whoever leases the gate.
if redis.call('SET', key('sent:' .. given.journey), 1, 'NX', 'PX', given.keep) then
  redis.call('RPUSH', key('hops:' .. given.gate), given.hop)
  lasting('hops:' .. given.gate)
  redis.call('SADD', key('hopgates'), given.gate)
end
redis.call('ZADD', key('out:' .. given.home), now + given.keep, given.token)
lasting('out:' .. given.home)
local owner = redis.call('HGET', key('gates'), given.gate)
if alive(owner) then
  redis.call('SADD', key('bell:' .. owner), given.gate)
  lasting('bell:' .. owner)
end
return cjson.encode({now = now})
