-- Leases gates for the session. given: gates, a list of {gate, seen (ms: when its due links were counted), due (how many
-- links that were)}; wanted: reserve the gate for this session where another leases it; lapsing (ms): a ticket that ends so soon is
-- renewed by nobody; moves, the number of the last move (place.lua) that this worker knows of. Gives as taken for each gate its standing
-- and, where it is leased now, all that belongs to it; checks stay where they are until tickets.lua takes them in. Gives
-- as moved what has moved since, and as moves the number of the last move: what this worker knows of these hosts, and of
-- the hosts of these gates, does not hold any more.
local taken = {}
local function reply()
  return cjson.encode({
    taken = taken,
    moved = redis.call('ZRANGEBYSCORE', key('moves'), '(' .. given.moves, '+inf'),
    moves = tonumber(redis.call('HGET', key('state'), 'moves') or '0'),
  })
end
local WANTED = 5000 -- ms that a gate is reserved for the session that wants it, unless it asks again
-- Who leased gates before this generation may use them until its leases are over, for it may not know of it.
if tonumber(redis.call('HGET', key('state'), 'shut')) > now then
  for i in ipairs(given.gates) do
    taken[i] = {standing = 'shut'}
  end
  return reply()
end
for i, each in ipairs(given.gates) do
  local gate, seen, due = each[1], each[2], each[3]
  local owner = redis.call('HGET', key('gates'), gate)
  local wanter = redis.call('GET', key('wanted:' .. gate))
  local done = redis.call('HGET', key('done'), gate)
  local transfers = redis.call('LLEN', key('transfers:' .. gate))
  local tickets = redis.call('ZCOUNT', key('tickets:' .. gate), now, '+inf') -- their links are due until checks end
  if owner == me then
    taken[i] = {standing = 'mine'}
  elseif alive(owner) then
    taken[i] = {standing = 'held'}
    if given.wanted then
      if not wanter or wanter == me or not alive(wanter) then
        redis.call('SET', key('wanted:' .. gate), me, 'PX', WANTED)
      end
      redis.call('SADD', key('notifications:' .. owner), gate)
      keep_alive('notifications:' .. owner)
    end
  elseif wanter and wanter ~= me and alive(wanter) then
    taken[i] = {standing = 'held'}
  elseif not owner and transfers == 0 and not given.wanted
    and (done and tonumber(done) >= seen or tickets > 0 and due <= tickets) then
    local lapsing = redis.call('ZCOUNT', key('tickets:' .. gate), '(' .. now, now + given.lapsing)
    taken[i] = {standing = lapsing > 0 and 'lapsing' or 'empty'}
  else
    local wake = redis.call('HGET', key('wakes'), gate)
    if owner then
      local link = redis.call('HGET', key('in_flight'), gate)
      if link then -- the session died over it
        redis.call('HINCRBY', key('deaths:' .. gate), link, 1)
        redis.call('PEXPIRE', key('deaths:' .. gate), DAY)
      end
      wake = false
    end
    redis.call('HSET', key('gates'), gate, me)
    redis.call('HSET', key('busy'), me, '1') -- at once: others must not take the work for done
    redis.call('HDEL', key('wakes'), gate)
    redis.call('HDEL', key('done'), gate)
    redis.call('HDEL', key('in_flight'), gate)
    redis.call('DEL', key('wanted:' .. gate))
    taken[i] = {
      standing = 'taken',
      wait = wake and math.max(0, tonumber(wake) - math.min(now, given.now)) or -1,
      transfers = redis.call('LRANGE', key('transfers:' .. gate), 0, -1),
      tickets = redis.call('ZRANGEBYSCORE', key('tickets:' .. gate), now, '+inf'),
      deaths = redis.call('HGETALL', key('deaths:' .. gate)),
    }
  end
end
note_sizes()
return reply()
