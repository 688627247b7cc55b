-- Redis' clock has been set: sessions, leases and waits were timed by the old one. A new generation of keys makes all of
-- them void, as after a restart (reset.lua). given: lease (ms).
local new = redis.call('INCR', prefix .. 'generation')
redis.call('SET', prefix .. new .. ':shut', 1, 'PX', given.lease)
return cjson.encode({now = now})
