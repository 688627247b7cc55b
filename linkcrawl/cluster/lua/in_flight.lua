-- Records what is in flight, so that a link that kills its worker is found out. given: in_flight, link ids by gate.
for gate, link in pairs(given.in_flight) do
  if redis.call('HGET', key('gates'), gate) == me then
    redis.call('HSET', key('in_flight'), gate, link)
  end
end
return cjson.encode({now = now})
