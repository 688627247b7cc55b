-- Moves a batch of seeds from a key that people push to (a list, from its right end; a set; or a sorted set, highest score
-- first) to the reader's own list, and returns that list.
-- KEYS: the key, the reader's batch, the readers by the time of their last call. ARGV: the reader, the seeds of a batch,
-- the seconds after which a reader that doesn't call counts as dead.
-- The batch of a dead reader goes back to the key first. A batch that this reader has not acknowledged is returned again.
local now = tonumber(redis.call('TIME')[1])
for _, reader in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - tonumber(ARGV[3]))) do
  local left = KEYS[1] .. ':taking:' .. reader
  while redis.call('LLEN', left) > 0 do
    local seed = redis.call('LPOP', left)
    local kind = redis.call('TYPE', KEYS[1])['ok']
    if kind == 'set' then
      redis.call('SADD', KEYS[1], seed)
    elseif kind == 'zset' then
      redis.call('ZADD', KEYS[1], 0, seed)
    else
      redis.call('RPUSH', KEYS[1], seed)
    end
  end
  redis.call('ZREM', KEYS[3], reader)
end
redis.call('ZADD', KEYS[3], now, ARGV[1])
while redis.call('LLEN', KEYS[2]) < tonumber(ARGV[2]) do
  local kind, seed = redis.call('TYPE', KEYS[1])['ok'], false
  if kind == 'list' then
    seed = redis.call('RPOP', KEYS[1])
  elseif kind == 'set' then
    seed = redis.call('SPOP', KEYS[1])
  elseif kind == 'zset' then
    seed = redis.call('ZPOPMAX', KEYS[1])[1]
  elseif kind ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' is a ' .. kind .. '; a list, set or sorted set would work')
  end
  if not seed then
    break
  end
  redis.call('RPUSH', KEYS[2], seed)
end
return redis.call('LRANGE', KEYS[2], 0, -1)
