-- Leases gates for the session. given: gates, a list of {gate, looked (ms: what is due there was seen then)}; wanted:
-- take it before others do. Gives for each gate its standing and, where it is leased now, all that belongs to it.
local taken = {}
for i, each in ipairs(given.gates) do
  local gate, looked = each[1], each[2]
  local owner = redis.call('HGET', key('gates'), gate)
  local wanter = redis.call('HGET', key('wanted'), gate)
  local done = redis.call('HGET', key('done'), gate)
  local hops = redis.call('LLEN', key('hops:' .. gate))
  if owner == me then
    taken[i] = {standing = 'mine'}
  elseif alive(owner) then
    taken[i] = {standing = 'held'}
    if given.wanted then
      redis.call('HSET', key('wanted'), gate, me)
      lasting('wanted')
      redis.call('SADD', key('bell:' .. owner), gate)
      lasting('bell:' .. owner)
    end
  elseif wanter and wanter ~= me and alive(wanter) then
    taken[i] = {standing = 'held'}
  elseif not owner and done and tonumber(done) >= looked and hops == 0 and not given.wanted then
    taken[i] = {standing = 'empty'}
  else
    local wake = redis.call('HGET', key('wakes'), gate)
    if owner then
      local link = redis.call('HGET', key('flying'), gate)
      if link then -- what the session was at when it died
        redis.call('HINCRBY', key('deaths:' .. gate), link, 1)
        redis.call('PEXPIRE', key('deaths:' .. gate), DAY)
      end
      wake = false
    end
    redis.call('HSET', key('gates'), gate, me)
    redis.call('HDEL', key('wakes'), gate)
    redis.call('HDEL', key('done'), gate)
    redis.call('HDEL', key('flying'), gate)
    redis.call('HDEL', key('wanted'), gate)
    taken[i] = {
      standing = 'taken',
      wait = wake and math.max(0, tonumber(wake) - now) or -1,
      hops = redis.call('LRANGE', key('hops:' .. gate), 0, -1),
      out = redis.call('ZRANGEBYSCORE', key('out:' .. gate), now, '+inf'),
      deaths = redis.call('HGETALL', key('deaths:' .. gate)),
    }
    redis.call('DEL', key('hops:' .. gate))
    redis.call('SREM', key('hopgates'), gate)
  end
end
return cjson.encode(taken)
