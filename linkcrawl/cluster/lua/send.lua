-- Passes a check on, whose next hop goes to a gate that another worker leases, or nobody. given: gate; check (JSON text);
-- home_gate, the gate of the check's link; token, of its ticket; keep (ms); idempotency_key: the same one passes on once,
-- for an answer may get lost. Notifies whoever leases the gate.
if redis.call('SET', key('sent:' .. given.idempotency_key), 1, 'NX', 'PX', given.keep) then
  redis.call('RPUSH', key('transfers:' .. given.gate), given.check)
  keep_alive('transfers:' .. given.gate)
  redis.call('SADD', key('transfer_gates'), given.gate)
end
redis.call('ZADD', key('tickets:' .. given.home_gate), now + given.keep, given.token)
keep_alive('tickets:' .. given.home_gate)
local owner = redis.call('HGET', key('gates'), given.gate)
if alive(owner) then
  redis.call('SADD', key('notifications:' .. owner), given.gate)
  keep_alive('notifications:' .. owner)
end
return cjson.encode({now = now})
