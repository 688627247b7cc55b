-- A Redis that doesn't know our scripts was restarted: what it holds may be older than what its workers did since.
-- A new generation of keys makes all of it void, leases first; workers begin anew, from the store.
return redis.call('INCR', KEYS[1] .. 'generation')
