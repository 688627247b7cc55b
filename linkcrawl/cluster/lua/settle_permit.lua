-- Ends a permit: its check has started a moment ago (used), or won't. given: limits, windows and permit as in
-- acquire_permit.lua; used. Running it twice delays the next start a little, as an answer that got lost does.
for _, limit in ipairs(given.limits) do
  local name, delay = limit[1], limit[2]
  local mine = redis.call('HGET', key('permits'), name) == me .. ' ' .. given.permit
  if given.used then
    redis.call('HSET', key('limits'), name, now + delay)
  elseif mine then
    for _, window in ipairs(given.windows) do
      redis.call('HINCRBY', key('counts:' .. window[1] .. ':' .. window[2]), name, -1)
    end
  end
  if mine then
    redis.call('HDEL', key('permits'), name)
  end
end
return cjson.encode({now = now})
