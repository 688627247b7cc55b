-- Renews the session, and with it every lease that it holds. given: lease (ms), busy, load (gates with work), policies,
-- held (some of the gates that it leases), idle (it has made no key since it said so before). Gives how the others are,
-- the gates of this session that others have something for (collect.lua answers that), and which of `held` are not its
-- own here.
redis.call('ZADD', key('workers'), now + given.lease, me)
redis.call('HSET', key('busy'), me, given.busy and '1' or '0')
redis.call('HSET', key('load'), me, given.load)
redis.call('HSET', key('policies'), me, given.policies)
local others, busy, load, agreed, paces = 0, 0, 0, true, {}
for _, session in ipairs(redis.call('ZRANGEBYSCORE', key('workers'), '(' .. now, '+inf')) do
  if session ~= me then
    others = others + 1
    if redis.call('HGET', key('busy'), session) == '1' then
      busy = busy + 1
    end
    load = load + tonumber(redis.call('HGET', key('load'), session) or '0')
    agreed = agreed and redis.call('HGET', key('policies'), session) == given.policies
    paces[redis.call('HGET', key('pace'), session)] = true
  end
end
local different = {}
for pace in pairs(paces) do
  different[#different + 1] = pace
end
local notifications = redis.call('SMEMBERS', key('notifications:' .. me))
local missing = {}
for _, gate in ipairs(given.held) do
  if redis.call('HGET', key('gates'), gate) ~= me then
    missing[#missing + 1] = gate
  end
end
-- Every key that lasts longer than one visit of a gate: otherwise a crawl of weeks loses it. They expire together.
local lasting = {
  'state', 'workers', 'about', 'busy', 'load', 'policies', 'pace', 'protocol', 'gates', 'wakes', 'done', 'in_flight',
  'places', 'addresses', 'representatives', 'domains', 'groups', 'moves', 'limits', 'permits', 'transfer_gates',
}
if not given.idle or redis.call('PTTL', key('state')) < 2 * DAY then
  for _, name in ipairs(lasting) do
    keep_alive(name)
  end
end
return cjson.encode({
  now = now, others = others, busy = busy, load = load, agreed = agreed, paces = different,
  notifications = notifications, missing = missing,
})
