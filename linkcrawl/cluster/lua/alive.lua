-- Stands before every script but join.lua, after common.lua.
if redis.call('GET', prefix .. 'generation') ~= generation or not alive(me) then
  return 'lost'
end
