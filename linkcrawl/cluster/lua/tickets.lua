-- Tickets of checks that are under way at another worker than the one that leases their links' gate. given: keep (ms);
-- arrived, a list of {gate, check (JSON text)} to be taken in by the session that leases the gate; renewed and ended,
-- lists of {home gate, token} that this session works on or has stored; watched, those that it only asks about. Gives,
-- as lists of booleans, which of the arrived are this session's, and which of the renewed and of the watched are valid.
-- Running it twice changes nothing: its answer may get lost.
local function is_valid(ticket)
  local till = redis.call('ZSCORE', key('tickets:' .. ticket[1]), ticket[2])
  return till and tonumber(till) > now or false
end
local arrived, renewed, watched = {}, {}, {}
for i, each in ipairs(given.arrived) do
  local gate, check = each[1], each[2]
  arrived[i] = redis.call('HGET', key('gates'), gate) == me
  if arrived[i] then
    redis.call('LREM', key('transfers:' .. gate), 1, check)
    if redis.call('LLEN', key('transfers:' .. gate)) == 0 then
      redis.call('SREM', key('transfer_gates'), gate)
    end
  end
end
for i, ticket in ipairs(given.renewed) do
  renewed[i] = is_valid(ticket)
  if renewed[i] then
    redis.call('ZADD', key('tickets:' .. ticket[1]), now + given.keep, ticket[2])
    keep_alive('tickets:' .. ticket[1])
  end
end
for i, ticket in ipairs(given.watched) do
  watched[i] = is_valid(ticket)
end
for _, ticket in ipairs(given.ended) do
  redis.call('ZREM', key('tickets:' .. ticket[1]), ticket[2])
end
return cjson.encode({arrived = arrived, renewed = renewed, watched = watched})
