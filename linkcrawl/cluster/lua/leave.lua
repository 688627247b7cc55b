-- Ends the session; every gate has been given back before.
redis.call('ZREM', key('workers'), me)
for _, name in ipairs({'about', 'policies', 'busy', 'load'}) do
  redis.call('HDEL', key(name), me)
end
redis.call('DEL', key('notifications:' .. me))
return cjson.encode({now = now})
