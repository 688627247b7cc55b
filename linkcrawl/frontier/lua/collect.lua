-- The hops that wait for gates of this session. given: gates. Gives a list of hops (JSON texts), and the gates that
-- another worker wants.
local hops, wanted = {}, {}
for _, gate in ipairs(given.gates) do
  if redis.call('HGET', key('gates'), gate) == me then
    for _, hop in ipairs(redis.call('LRANGE', key('hops:' .. gate), 0, -1)) do
      hops[#hops + 1] = hop
    end
    redis.call('DEL', key('hops:' .. gate))
    redis.call('SREM', key('hopgates'), gate)
    if alive(redis.call('HGET', key('wanted'), gate)) then
      wanted[#wanted + 1] = gate
    end
  end
end
return cjson.encode({hops = hops, wanted = wanted})
