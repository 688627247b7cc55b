-- A new session. given: lease (ms), about (JSON text shown to people), policies (fingerprint).
if redis.call('GET', prefix .. 'generation') ~= generation then
  return 'lost'
end
redis.call('ZREMRANGEBYSCORE', key('workers'), '-inf', now - DAY)
redis.call('ZADD', key('workers'), now + given.lease, me)
redis.call('HSET', key('about'), me, given.about)
redis.call('HSET', key('policies'), me, given.policies)
redis.call('HSET', key('busy'), me, '1')
redis.call('HSET', key('load'), me, '0')
for _, name in ipairs({'about', 'policies', 'busy', 'load'}) do
  for _, session in ipairs(redis.call('HKEYS', key(name))) do
    if not redis.call('ZSCORE', key('workers'), session) then
      redis.call('HDEL', key(name), session)
    end
  end
  keep_alive(name)
end
return cjson.encode({now = now})
