-- Checks that go on away from their home. given: keep (ms); renewed and ended, lists of {home, token} that this session
-- works on or has stored; watched, those that it only asks about. Gives which of the renewed and of the watched are
-- (still) out, as lists of booleans.
local function is_out(each)
  local till = redis.call('ZSCORE', key('out:' .. each[1]), each[2])
  return till and tonumber(till) > now or false
end
local renewed, watched = {}, {}
for i, each in ipairs(given.renewed) do
  renewed[i] = is_out(each)
  if renewed[i] then
    redis.call('ZADD', key('out:' .. each[1]), now + given.keep, each[2])
    lasting('out:' .. each[1])
  end
end
for i, each in ipairs(given.watched) do
  watched[i] = is_out(each)
end
for _, each in ipairs(given.ended) do
  redis.call('ZREM', key('out:' .. each[1]), each[2])
end
return cjson.encode({renewed = renewed, watched = watched})
