-- A new session. given: lease (ms), about (JSON text shown to people), policies (fingerprint), pace (JSON text of the
-- settings that pace requests), protocol (the layout of these keys and of the checks in them), known (the highest number
-- of a generation that this worker knows of), void (the generation whose leases it found missing; or empty). Gives the
-- generation and Redis' run id; or, while workers of another protocol are alive, what one of them says of itself.
generation = redis.call('GET', prefix .. 'generation') or ''
if (tonumber(generation) or 0) < given.known or generation == given.void or fault_of_generation() then
  begin_generation(given.known, given.lease)
end
note_sizes()
redis.call('ZREMRANGEBYSCORE', key('workers'), '-inf', now - DAY)
local told = {'about', 'policies', 'pace', 'protocol', 'busy', 'load'}
for _, name in ipairs(told) do
  for _, session in ipairs(redis.call('HKEYS', key(name))) do
    if not redis.call('ZSCORE', key('workers'), session) then
      redis.call('HDEL', key(name), session)
    end
  end
end
for _, session in ipairs(redis.call('ZRANGEBYSCORE', key('workers'), '(' .. now, '+inf')) do
  if redis.call('HGET', key('protocol'), session) ~= given.protocol then
    note_sizes()
    return cjson.encode({
      now = now,
      about = redis.call('HGET', key('about'), session) or '{}',
      protocol = redis.call('HGET', key('protocol'), session) or '',
    })
  end
end
redis.call('ZADD', key('workers'), now + given.lease, me)
for _, name in ipairs({'about', 'policies', 'pace', 'protocol'}) do
  redis.call('HSET', key(name), me, given[name])
end
redis.call('HSET', key('busy'), me, '1')
redis.call('HSET', key('load'), me, '0')
local longest = tonumber(redis.call('HGET', key('state'), 'lease') or '') or 0
redis.call('HSET', key('state'), 'lease', math.max(longest, given.lease))
for _, name in ipairs({'workers', 'state', unpack(told)}) do
  keep_alive(name)
end
note_sizes()
return cjson.encode({now = now, generation = generation, run_id = run_id()})
