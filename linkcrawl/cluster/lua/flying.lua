-- What is in flight, so that a link that kills its worker is found out. given: flying, link ids by gate.
for gate, link in pairs(given.flying) do
  if redis.call('HGET', key('gates'), gate) == me then
    redis.call('HSET', key('flying'), gate, link)
  end
end
return cjson.encode({now = now})
