-- Stands before every script but join.lua, after common.lua.
local fault = fault_of_generation() or not alive(me) and 'the session is over'
if fault then
  return 'lost: ' .. fault
end
note_sizes()
