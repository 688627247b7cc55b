-- Records which gate each host belongs to, the same for all workers. given: hosts, a list of {host, registered domain,
-- address}; an empty address where the name has none; and few, the number of registered domains up to which an address is
-- one gate. Gives the gate by host.
local found = {}
for _, each in ipairs(given.hosts) do
  local host, domain, address = each[1], each[2], each[3]
  local gate = redis.call('HGET', key('places'), host)
  if not gate then
    gate = host
    if address ~= '' then
      local count = tonumber(redis.call('HGET', key('domains'), address) or '0')
      if count <= given.few and redis.call('HSETNX', key('domains'), address .. ' ' .. domain, 1) == 1 then
        count = redis.call('HINCRBY', key('domains'), address, 1)
      end
      if count <= given.few then
        redis.call('HSETNX', key('representatives'), address, host)
        gate = redis.call('HGET', key('representatives'), address)
      end
    end
    redis.call('HSET', key('places'), host, gate)
  end
  found[host] = gate
end
note_sizes()
return cjson.encode(found)
