-- Checks that go on away from their home. given: keep (ms); arrived, a list of {gate, hop}, taken in by the session that
-- leases the gate; renewed and ended, lists of {home, token} that this session works on or has stored; watched, those
-- that it only asks about. Gives which of the arrived are its to take in, and which of the renewed and of the watched
-- are (still) out, as lists of booleans. Running it twice changes nothing: its answer may get lost.
local function is_out(each)
  local till = redis.call('ZSCORE', key('out:' .. each[1]), each[2])
  return till and tonumber(till) > now or false
end
local arrived, renewed, watched = {}, {}, {}
for i, each in ipairs(given.arrived) do
  local gate, hop = each[1], each[2]
  arrived[i] = redis.call('HGET', key('gates'), gate) == me
  if arrived[i] then
    redis.call('LREM', key('hops:' .. gate), 1, hop)
    if redis.call('LLEN', key('hops:' .. gate)) == 0 then
      redis.call('SREM', key('hopgates'), gate)
    end
  end
end
for i, each in ipairs(given.renewed) do
  renewed[i] = is_out(each)
  if renewed[i] then
    redis.call('ZADD', key('out:' .. each[1]), now + given.keep, each[2])
    lasting('out:' .. each[1])
  end
end
for i, each in ipairs(given.watched) do
  watched[i] = is_out(each)
end
for _, each in ipairs(given.ended) do
  redis.call('ZREM', key('out:' .. each[1]), each[2])
end
return cjson.encode({arrived = arrived, renewed = renewed, watched = watched})
