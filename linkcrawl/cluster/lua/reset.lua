-- A Redis that doesn't know our scripts was restarted: what it holds may be older than what its workers did since.
-- A new generation of keys makes all of it void, leases first; workers begin anew, from the store. ARGV[1]: ms that a
-- lease of before may last, for its holder may not have noticed; until then nobody leases anything.
local generation = redis.call('INCR', KEYS[1] .. 'generation')
redis.call('SET', KEYS[1] .. generation .. ':shut', 1, 'PX', ARGV[1])
return generation
