-- What a script has besides Lua's own words. The names that it uses itself are kept where no script can change them.
local ask, say, array = ...
local error, tostring, select, type, concat = error, tostring, select, type, table.concat

function call(tool, args)
  local came = ask({ { tool, args or {} } })[1]
  if not came.ok then error(came.error, 2) end
  return came
end

function try(tool, args)
  local came = ask({ { tool, args or {} } })[1]
  if came.ok then return true, came end
  return false, came.error, came
end

function all(calls)
  if type(calls) ~= "table" then error("all takes a list of {tool, args}", 2) end
  return ask(calls)
end

function print(...)
  local parts = {}
  for at = 1, select("#", ...) do parts[at] = tostring((select(at, ...))) end
  say(concat(parts, "\t"))
end

json.array = array
for _, name in ipairs({ "load", "loadstring", "loadfile", "dofile", "require", "collectgarbage", "warn", "package", "io", "os", "debug" }) do
  _G[name] = nil
end
string.dump = nil
