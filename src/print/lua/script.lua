
-- What follows is the same for all tables.

local reader = {}
reader.__index = reader

-- Reads LEB128 numbers from a string. `number` gives numbers up to 2^53 exactly; `wide` gives the low and the high 32 bits.
local function new_reader(bytes)
  return setmetatable({ bytes = bytes, at = 1 }, reader)
end

function reader:byte()
  local byte = self.bytes:byte(self.at)
  if byte == nil then error("the packed tree is cut off") end
  self.at = self.at + 1
  return byte
end

function reader:number()
  local value, factor = 0, 1
  repeat
    local byte = self:byte()
    value = value + (byte % 128) * factor
    factor = factor * 128
  until byte < 128
  return value
end

function reader:wide()
  local low, high, shift = 0, 0, 0
  repeat
    local byte = self:byte()
    local bits = byte % 128
    if shift < 28 then
      low = low + bits * 2 ^ shift
    elseif shift == 28 then
      low = low + (bits % 16) * 2 ^ 28
      high = math.floor(bits / 16)
    else
      high = high + bits * 2 ^ (shift - 32)
    end
    shift = shift + 7
  until byte < 128
  return low, high % 2 ^ 32
end

function reader:signed()
  local number = self:number()
  if number % 2 == 1 then return -(number + 1) / 2 end
  return number / 2
end

function reader:text()
  local length = self:number()
  local text = self.bytes:sub(self.at, self.at + length - 1)
  self.at = self.at + length
  return text
end

-- The kinds of values, by number.
local STRUCT, LIST, NULL, UNSIGNED, SIGNED, UNSIGNED64, SIGNED64, F32, F64, BOOL = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
local UUID, UUID_BE, IPV4, BYTES, NUMBER, UNDECODED, UTF8, LATIN1, UTF16 = 10, 11, 12, 13, 14, 15, 16, 17, 18
local INVERTED8, INVERTED16, INVERTED_LATIN1, OWNED = 19, 20, 21, 22

local ORIGINS = { [0] = "Decompressed", "Decrypted", "Expanded", "Reassembled" }

-- A whole number without a decimal point, whichever kind of number it is.
local function whole(number)
  return math.floor(number)
end

-- A number of up to 53 bits as Wireshark takes one of 64; nothing for nothing.
local function wide(number)
  return number and UInt64.new(whole(number % 2 ^ 32), whole(number / 2 ^ 32))
end

local function float(low, high, double)
  local exponent, fraction, negative
  if double then
    negative, exponent = high >= 2 ^ 31, math.floor(high / 2 ^ 20) % 2048
    fraction = (high % 2 ^ 20) * 2 ^ 32 + low
    if exponent == 2047 then return fraction == 0 and (negative and -math.huge or math.huge) or 0 / 0 end
    local value = exponent == 0 and fraction * 2 ^ -1074 or (1 + fraction / 2 ^ 52) * 2 ^ (exponent - 1023)
    return negative and -value or value
  end
  negative, exponent, fraction = low >= 2 ^ 31, math.floor(low / 2 ^ 23) % 256, low % 2 ^ 23
  if exponent == 255 then return fraction == 0 and (negative and -math.huge or math.huge) or 0 / 0 end
  local value = exponent == 0 and fraction * 2 ^ -149 or (1 + fraction / 2 ^ 23) * 2 ^ (exponent - 127)
  return negative and -value or value
end

-- Reads the head of a packed tree.
local function read_head(from)
  local head = { flags = 0 }
  from.at = 13
  head.flags = from:byte()
  head.stream, head.record, head.offset = from:number(), from:number(), from:number()
  head.service, head.name, head.info = from:text(), from:text(), from:text()
  if head.flags % 8 >= 4 then
    local low, high = from:wide()
    head.number = low + high * 2 ^ 32
  end
  if head.flags % 16 >= 8 then
    head.reply, head.nanos = from:number(), from:signed()
  end
  return head
end

local function read_nodes(from)
  local names = {}
  for place = 1, from:number() do
    local static = from:number()
    names[place] = { static = static > 0, text = from:text() }
  end
  local nodes, before = {}, 0
  for index = 1, from:number() do
    local node = { name = names[from:number()] }
    from:number()
    node.kind, node.marks, node.buffer = from:byte(), from:byte(), from:number()
    before = before + from:signed()
    node.start, node.bits = before, from:number()
    node.last = index + from:number()
    if node.kind == NUMBER or node.kind == OWNED then
      node.text = from:text()
    elseif node.kind >= BYTES or node.kind == UUID or node.kind == UUID_BE then
      node.at, node.length = from:number(), from:number()
    else
      node.low, node.high = from:wide()
    end
    local label = from:number()
    if label > 0 then node.label = names[label].text end
    nodes[index] = node
  end
  return nodes
end

local function read_problems(from)
  local problems = {}
  for _ = 1, from:number() do
    local problem = { severity = from:byte(), node = from:number() + 1, text = from:text() }
    -- The lowest bit says whether bytes follow.
    if from:number() % 2 == 1 then
      from:number() from:number() from:number()
    end
    problems[problem.node] = problems[problem.node] or {}
    table.insert(problems[problem.node], problem)
  end
  return problems
end

-- The buffers that nodes lie in: the packet's own bytes are number 0.
local function read_buffers(from, tvb)
  local buffers = { [0] = tvb }
  for place = 1, from:number() do
    local origin = ORIGINS[from:byte()] or "Made"
    local bytes = from:text()
    if #bytes > 0 then buffers[place] = ByteArray.new(bytes, true):tvb(origin) end
  end
  return buffers
end

-- The bytes of a buffer from a byte on; as many of them as there are. Nothing where there is none.
local function range_of(tvb, at, length)
  if tvb == nil or at >= tvb:len() then return nil end
  return tvb:range(at, math.min(length, tvb:len() - at))
end

local function inverted(range)
  local bytes = {}
  for place = 1, range:len() do bytes[place] = string.char(255 - range(place - 1, 1):uint()) end
  return table.concat(bytes)
end

local function text_of(node, tvb)
  if node.text then return node.text end
  local range = range_of(tvb, node.at, node.length)
  if node.length == 0 or range == nil then return "" end
  if node.kind == UTF16 then return range:string(ENC_UTF_16 + ENC_LITTLE_ENDIAN) end
  if node.kind == LATIN1 then return range:string(ENC_ISO_8859_1) end
  if node.kind == UTF8 then return range:string(ENC_UTF_8) end
  local bytes = inverted(range)
  if node.kind == INVERTED16 then
    return ByteArray.new(bytes, true):tvb("Inverted"):range():string(ENC_UTF_16 + ENC_LITTLE_ENDIAN)
  end
  return bytes
end

-- A node's value in the form that its field takes; nothing for what has no value of its own.
local function value_of(node, tvb, kind)
  if node.kind >= UTF8 or node.kind == NUMBER then return text_of(node, tvb) end
  if node.kind == F32 or node.kind == F64 then return float(node.low, node.high, node.kind == F64) end
  if node.kind == IPV4 then
    local v = node.low
    return Address.ip(string.format("%d.%d.%d.%d", whole(v / 2 ^ 24), whole(v / 2 ^ 16) % 256, whole(v / 2 ^ 8) % 256, v % 256))
  end
  if node.low == nil then return nil end
  if kind == "u64" then return UInt64.new(whole(node.low), whole(node.high)) end
  if kind == "i64" then return Int64.new(whole(node.low), whole(node.high)) end
  local low = node.low
  if kind == "i32" and low >= 2 ^ 31 then low = low - 2 ^ 32 end
  if kind == "bool" then return low ~= 0 end
  return whole(low)
end

-- The sort of field that a kind of value goes into.
local SORTS = {
  [UNSIGNED] = "number", [SIGNED] = "number", [UNSIGNED64] = "number", [SIGNED64] = "number", [BOOL] = "bool",
  [F32] = "float", [F64] = "float", [UUID] = "uuid", [UUID_BE] = "uuid", [IPV4] = "ipv4", [BYTES] = "bytes", [UNDECODED] = "bytes",
  [NUMBER] = "text", [UTF8] = "text", [LATIN1] = "text", [UTF16] = "text", [INVERTED8] = "text", [INVERTED16] = "text",
  [INVERTED_LATIN1] = "text", [OWNED] = "text",
}

local function field_of(protocol, node, name)
  local sort = SORTS[node.kind]
  if sort == nil or name == "" then return nil end
  local span = node.marks % 2 == 1 and "spans." or ""
  local fields = protocol.fields[span .. name]
  return fields and fields[sort]
end

-- Adds one node below `tree`.
local function add_node(protocol, tree, node, name, tvb)
  local at = whole(node.start / 8)
  local range = range_of(tvb, at, math.max(math.ceil((node.start + node.bits) / 8) - at, 0))
  local field = field_of(protocol, node, name)
  local shown = name == "" and "value" or name
  if field == nil then
    local text = shown
    if node.text or (node.kind >= UTF8 and node.at) then text = text .. ": " .. text_of(node, tvb) end
    if node.low and node.kind >= UNSIGNED then text = text .. ": " .. tostring(value_of(node, tvb, "u64")) end
    if range then return tree:add(range, text) end
    return tree:add(text)
  end
  local item
  if node.kind == UUID and range then
    item = tree:add_le(field.field, range)
  elseif (node.kind == UUID_BE or node.kind == BYTES or node.kind == UNDECODED) and range and range:len() > 0 then
    item = tree:add(field.field, range)
  elseif node.kind == BYTES or node.kind == UNDECODED or node.kind == UUID or node.kind == UUID_BE then
    item = tree:add(shown .. ": (empty)")
  elseif range then
    item = tree:add(field.field, range, value_of(node, tvb, field.kind))
  else
    item = tree:add(field.field, value_of(node, tvb, field.kind))
  end
  if node.label then item:append_text(" (" .. node.label .. ")") end
  return item
end

-- Adds all nodes below the message's.
local function add_nodes(protocol, tree, nodes, problems, buffers)
  -- The items that are open: each with the last node below it and the name that elements of a list take from it.
  local open = { { item = tree, last = #nodes, name = "" } }
  for index, node in ipairs(nodes) do
    while open[#open].last < index do table.remove(open) end
    local above = open[#open]
    local item
    if index == 1 then
      item = tree
    else
      local name = node.name.text
      if name == "" then name = above.name end
      local tvb = buffers[node.buffer]
      item = add_node(protocol, above.item, node, name, tvb)
      above = { name = name }
    end
    for _, problem in ipairs(problems[index] or {}) do
      item:add_proto_expert_info(experts[problem.severity], problem.text)
    end
    if node.last > index then table.insert(open, { item = item, last = node.last, name = above.name or "" }) end
  end
end

-- The packed tree of the packet at hand: the tags of a number that Wireshark does not know, from the one that begins as a tree does.
local function packed_tree()
  local pieces
  for _, info in ipairs({ unknown_tags() }) do
    local bytes = info.range:raw()
    if pieces == nil and bytes:sub(1, 4) == "MSn1" then
      pieces = {}
    end
    if pieces then table.insert(pieces, bytes) end
  end
  return pieces and table.concat(pieces)
end

-- Whether the nodes are asked for: the tree is shown, or a filter, a column or a tap names one of the protocol's fields.
local function is_asked_for(protocol, tree)
  if tree.visible then return true end
  protocol.dissector = protocol.dissector or Dissector.get(protocol.name)
  return tree:referenced(protocol.dissector)
end

local function show(protocol, name, tvb, pinfo, tree)
  pinfo.cols.protocol:set(protocol.title)
  local packed = packed_tree()
  if packed == nil then
    pinfo.cols.info:set(name .. ", " .. tvb:len() .. " bytes")
    return tree:add(protocol.proto, tvb:range()):append_text(" without its fields")
  end
  local from = new_reader(packed)
  local head = read_head(from)
  pinfo.cols.protocol:set(protocol.title .. " " .. head.service)
  local line = head.name .. (head.info == "" and "" or " " .. head.info)
  pinfo.cols.info:set((line:gsub("%c", " ")))
  local top = tvb:len() > 0 and tree:add(protocol.proto, tvb:range()) or tree:add(protocol.proto)
  top:append_text(" " .. head.service .. " " .. head.name)
  local own = {
    { "record", wide(head.record) }, { "message", head.name }, { "service", head.service }, { "offset", wide(head.offset) },
    { "from", head.flags % 2 == 1 and "server" or "client" }, { "stream", whole(head.stream) },
    { "type", wide(head.number) }, { "reply_to", wide(head.reply) },
  }
  for _, entry in ipairs(own) do
    if entry[2] then top:add(record_fields[entry[1]], entry[2]):set_generated() end
  end
  -- Problems are told of every message, those behind its nodes.
  if head.flags % 64 >= 32 and not is_asked_for(protocol, tree) then return end
  local nodes = read_nodes(from)
  local buffers = read_buffers(from, tvb)
  add_nodes(protocol, top, nodes, read_problems(from), buffers)
end

for _, entry in ipairs(dissectors) do
  local protocol, name = entry.protocol, entry.name
  entry.proto.dissector = function(tvb, pinfo, tree)
    local done, why = pcall(show, protocol, name, tvb, pinfo, tree)
    if not done then tree:add(protocol.proto, "not shown: " .. tostring(why)) end
    return tvb:len()
  end
end
