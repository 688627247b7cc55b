-- Stands before every script but reset.lua. KEYS[1]: prefix of all keys. ARGV: session, generation, one JSON value.
-- Time is Redis' own, in milliseconds. A session that is not alive any more gets "lost", and changes nothing.
local prefix, me, generation = KEYS[1], ARGV[1], ARGV[2]
local given = cjson.decode(ARGV[3])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local DAY = 86400000
local function key(name)
  return prefix .. generation .. ':' .. name
end
local function alive(session)
  local till = session and redis.call('ZSCORE', key('workers'), session)
  return till and tonumber(till) > now
end
local function keep_alive(name)
  redis.call('PEXPIRE', key(name), 3 * DAY)
end
