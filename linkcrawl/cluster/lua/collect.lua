-- What the bells of this session were rung for. given: gates. Gives lists of {gate, hop (a JSON text)}, which stay where
-- they are until out.lua takes them in, and of {gate, whether that session comes before this one} that another wants.
local hops, wanted = {}, {}
for _, gate in ipairs(given.gates) do
  redis.call('SREM', key('bell:' .. me), gate)
  if redis.call('HGET', key('gates'), gate) == me then
    for _, hop in ipairs(redis.call('LRANGE', key('hops:' .. gate), 0, -1)) do
      hops[#hops + 1] = {gate, hop}
    end
    local wanter = redis.call('GET', key('wanted:' .. gate))
    if alive(wanter) then
      wanted[#wanted + 1] = {gate, wanter < me}
    end
  end
end
return cjson.encode({hops = hops, wanted = wanted})
