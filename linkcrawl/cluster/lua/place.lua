-- Records which gate each host belongs to, the same for all workers. given: hosts, a list of {host, registered domain,
-- address, group}: the address is empty where the name has none, and false to be told only what is recorded; group is the
-- gate of the host's policy group, else empty; few, the number of registered domains up to which an address is one gate;
-- policies, the digest of the file that the groups are of. A host that is at another address than before moves, unless
-- another session leases its gate. Gives found, by host {gate, address}; new, the hosts that nothing is recorded of;
-- closing, gates of this session that have to be given back before a host has its gate; and moves, the number of the
-- last move (take.lua). Running it twice changes nothing.
local WANTED = 5000 -- ms that a gate is reserved for the session that wants it, unless it asks again
local found, new, closing = {}, {}, {}
local function domains_at(address)
  return tonumber(redis.call('HGET', key('domains'), address) or '0')
end
local function move(what) -- workers forget what they know of it before they lease another gate
  redis.call('ZADD', key('moves'), redis.call('HINCRBY', key('state'), 'moves', 1), what)
end
local function representative_at(address, host, domain)
  local count = domains_at(address)
  if count <= given.few and redis.call('HSETNX', key('domains'), address .. ' ' .. domain, 1) == 1 then
    count = redis.call('HINCRBY', key('domains'), address, 1)
  end
  if count > given.few then
    return host
  end
  redis.call('HSETNX', key('representatives'), address, host)
  return redis.call('HGET', key('representatives'), address)
end
local function group_at(address)
  return redis.call('HGET', key('groups'), given.policies .. ' ' .. address)
end
-- Have the hosts at an address come into a group's gate. False while a session leases the gate that they are in: it has
-- to give it back first, for what it sends and the group's requests go to one server.
local function bring_group(address, group, representative)
  local owner = redis.call('HGET', key('gates'), representative)
  if owner == me then
    closing[#closing + 1] = representative
    return false
  elseif alive(owner) then
    local wanter = redis.call('GET', key('wanted:' .. representative))
    if not wanter or wanter == me or not alive(wanter) then
      redis.call('SET', key('wanted:' .. representative), me, 'PX', WANTED)
    end
    redis.call('SADD', key('notifications:' .. owner), representative)
    keep_alive('notifications:' .. owner)
    return false
  end
  redis.call('HSET', key('groups'), given.policies .. ' ' .. address, group)
  move('gate ' .. representative)
  return true
end
for _, each in ipairs(given.hosts) do
  local host, domain, address, group = each[1], each[2], each[3], each[4]
  local representative = redis.call('HGET', key('places'), host)
  local at = redis.call('HGET', key('addresses'), host) or ''
  if not representative and not address then
    new[#new + 1] = host
  else
    if not representative then
      at, representative = address, address == '' and host or representative_at(address, host, domain)
      redis.call('HSET', key('places'), host, representative)
      redis.call('HSET', key('addresses'), host, at)
    elseif address and address ~= '' and address ~= at then
      local owner = redis.call('HGET', key('gates'), group ~= '' and group or group_at(at) or representative)
      if owner == me or not alive(owner) then
        at, representative = address, representative_at(address, host, domain)
        redis.call('HSET', key('places'), host, representative)
        redis.call('HSET', key('addresses'), host, at)
        move('host ' .. host)
      end
    end
    local waits = false
    if group ~= '' and at ~= '' and domains_at(at) <= given.few and not group_at(at) then
      waits = not bring_group(at, group, representative)
    end
    if not waits then
      local gate = group ~= '' and group or at ~= '' and domains_at(at) <= given.few and group_at(at) or representative
      found[host] = {gate, at}
    end
  end
end
note_sizes()
return cjson.encode({
  found = found, new = new, closing = closing, moves = tonumber(redis.call('HGET', key('state'), 'moves') or '0'),
})
