-- Stands before every script. KEYS[1]: prefix of all keys. ARGV: session, generation, one JSON value.
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
-- Which server this is: it is another one after each restart, and where a replica has taken over. Empty where the login
-- may not ask; then only what is missing tells.
local function run_id()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
end
-- How much the keys hold that nobody may lease a gate without: who is alive, who leases what, which host is where.
local function sizes()
  return redis.call('ZCARD', key('workers')) .. ' ' .. redis.call('HLEN', key('gates')) .. ' '
    .. redis.call('HLEN', key('places')) .. ' ' .. redis.call('HLEN', key('addresses')) .. ' '
    .. redis.call('HLEN', key('representatives')) .. ' ' .. redis.call('HLEN', key('groups')) .. ' '
    .. redis.call('ZCARD', key('moves'))
end
-- Stands at the end of every script that changes one of these keys; and before every script's work, for a Redis that is
-- full refuses here, and nothing has changed.
local function note_sizes()
  redis.call('HSET', key('state'), 'sizes', sizes())
end
-- Why the generation is void: what Redis holds of it is not what its workers did last. Nil where it stands.
local function fault_of_generation()
  if redis.call('GET', prefix .. 'generation') ~= generation then
    return 'another generation has begun'
  end
  local state = redis.call('HMGET', key('state'), 'run_id', 'sizes')
  if state[1] ~= run_id() then
    return 'Redis was restarted, or is another one'
  end
  if state[2] ~= sizes() then
    return 'Redis has lost keys'
  end
end
-- A generation of keys makes all of before void, leases first; workers begin anew, from the store. Its number was never
-- used, also where Redis has forgotten all numbers. least: it is higher than this. Until the longest lease of before is
-- over nobody leases anything, for its holder may not have noticed.
local function begin_generation(least, lease)
  local before = tonumber(redis.call('GET', prefix .. 'generation') or '') or 0
  generation = string.format('%.0f', before)
  lease = math.max(lease, tonumber(redis.call('HGET', key('state'), 'lease') or '') or 0)
  generation = string.format('%.0f', math.max(now, before + 1, least + 1))
  redis.call('SET', prefix .. 'generation', generation)
  redis.call('HSET', key('state'), 'run_id', run_id(), 'lease', lease, 'shut', now + lease)
  keep_alive('state')
  note_sizes()
end
