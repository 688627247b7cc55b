-- Leases gates for the session. given: gates, a list of {gate, looked (ms: what is due there was seen then), due (how
-- many links that were)}; wanted: take it before others do. Gives for each gate its standing and, where it is leased now, all that belongs to it; hops
-- stay where they are until out.lua takes them in.
local taken = {}
local WANTED = 5000 -- ms that a gate is kept for who wants it, unless it says so again
-- Who leased gates before this generation may use them until its leases are over, for it may not know of it.
if redis.call('EXISTS', key('shut')) == 1 then
  for i in ipairs(given.gates) do
    taken[i] = {standing = 'shut'}
  end
  return cjson.encode(taken)
end
for i, each in ipairs(given.gates) do
  local gate, looked, due = each[1], each[2], each[3]
  local owner = redis.call('HGET', key('gates'), gate)
  local wanter = redis.call('GET', key('wanted:' .. gate))
  local done = redis.call('HGET', key('done'), gate)
  local hops = redis.call('LLEN', key('hops:' .. gate))
  local out = redis.call('ZCOUNT', key('out:' .. gate), now, '+inf') -- links that are due until their checks have ended
  if owner == me then
    taken[i] = {standing = 'mine'}
  elseif alive(owner) then
    taken[i] = {standing = 'held'}
    if given.wanted then
      if not wanter or wanter == me or not alive(wanter) then
        redis.call('SET', key('wanted:' .. gate), me, 'PX', WANTED)
      end
      redis.call('SADD', key('bell:' .. owner), gate)
      lasting('bell:' .. owner)
    end
  elseif wanter and wanter ~= me and alive(wanter) then
    taken[i] = {standing = 'held'}
  elseif not owner and hops == 0 and not given.wanted
    and (done and tonumber(done) >= looked or out > 0 and due <= out) then
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
    redis.call('HSET', key('busy'), me, '1') -- at once: others must not take the work for done
    redis.call('HDEL', key('wakes'), gate)
    redis.call('HDEL', key('done'), gate)
    redis.call('HDEL', key('flying'), gate)
    redis.call('DEL', key('wanted:' .. gate))
    taken[i] = {
      standing = 'taken',
      wait = wake and math.max(0, tonumber(wake) - now) or -1,
      hops = redis.call('LRANGE', key('hops:' .. gate), 0, -1),
      out = redis.call('ZRANGEBYSCORE', key('out:' .. gate), now, '+inf'),
      deaths = redis.call('HGETALL', key('deaths:' .. gate)),
    }
  end
end
return cjson.encode(taken)
