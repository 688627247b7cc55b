-- Answers this session's notifications. given: gates. Gives a list of {gate, check (JSON text)} of the checks that wait
-- there, which stay where they are until tickets.lua takes them in, and a list of {gate, whether that session comes
-- before this one} of the gates that another session wants.
local checks, wanted = {}, {}
for _, gate in ipairs(given.gates) do
  redis.call('SREM', key('notifications:' .. me), gate)
  if redis.call('HGET', key('gates'), gate) == me then
    for _, check in ipairs(redis.call('LRANGE', key('transfers:' .. gate), 0, -1)) do
      checks[#checks + 1] = {gate, check}
    end
    local wanter = redis.call('GET', key('wanted:' .. gate))
    if alive(wanter) then
      wanted[#wanted + 1] = {gate, wanter < me}
    end
  end
end
return cjson.encode({checks = checks, wanted = wanted})
