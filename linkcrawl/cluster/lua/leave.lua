-- Ends the session; every gate has been given back before.
redis.call('ZREM', key('workers'), me)
for _, name in ipairs({'about', 'policies', 'pace', 'protocol', 'busy', 'load'}) do
  redis.call('HDEL', key(name), me)
end
redis.call('DEL', key('notifications:' .. me))
note_sizes()
return cjson.encode({now = now})
