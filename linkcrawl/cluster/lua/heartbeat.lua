-- Renews the session, and with it every lease that it holds. given: lease (ms), busy, load (gates with work), policies.
-- Gives how the others are, and the gates of this session that others have something for (collect.lua answers that).
redis.call('ZADD', key('workers'), now + given.lease, me)
redis.call('HSET', key('busy'), me, given.busy and '1' or '0')
redis.call('HSET', key('load'), me, given.load)
redis.call('HSET', key('policies'), me, given.policies)
local others, busy, load, agreed = 0, 0, 0, true
for _, session in ipairs(redis.call('ZRANGEBYSCORE', key('workers'), '(' .. now, '+inf')) do
  if session ~= me then
    others = others + 1
    if redis.call('HGET', key('busy'), session) == '1' then
      busy = busy + 1
    end
    load = load + tonumber(redis.call('HGET', key('load'), session) or '0')
    agreed = agreed and redis.call('HGET', key('policies'), session) == given.policies
  end
end
local notifications = redis.call('SMEMBERS', key('notifications:' .. me))
for _, name in ipairs({
  'workers', 'gates', 'wakes', 'done', 'in_flight', 'places', 'limits', 'permits', 'transfer_gates',
}) do
  keep_alive(name)
end
return cjson.encode({
  now = now, others = others, busy = busy, load = load, agreed = agreed, notifications = notifications,
})
