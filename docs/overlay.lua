-- A Wireshark dissector of what nodes of the overlay send to each other over wires, field by field as docs/overlay.md has it.
--
--   wireshark -X lua_script:docs/overlay.lua FILE      tshark -X lua_script:docs/overlay.lua -r FILE -Y overlay
--
-- Nodes whose links are SLIQ connections (cat = "sliq") need the script of SLIQ before it:
--
--   tshark -X lua_script:docs/sliq.lua -X lua_script:docs/overlay.lua -r FILE -Y overlay
--
-- What packets carry is shown where they are plain (seal = "none"), and in captures of the simulator, which seals by length alone. Packets that
-- are really encrypted keep their content to those who have the keys: `weir sliq decode` opens captures of nodes that have logged theirs. Real
-- nodes put nothing before a packet, the simulator 20 bytes of its own:
--
--   tshark -X lua_script:docs/sliq.lua -X lua_script:docs/overlay.lua -o overlay.notes:FALSE -o overlay.port:7770 -r FILE -Y overlay
--
-- It reads UDP port 22999, which weir's labs use, or the port of the preference `overlay.port`. The length of a destination vector follows from the
-- flow's context, so packets of a group are read whole from the first packet of their flow on that carries one.

local overlay = Proto("overlay", "Overlay")

local PORT = 22999
overlay.prefs.port = Pref.uint("UDP port", PORT, "The port of the nodes' packets")
overlay.prefs.notes = Pref.bool("Notes of the simulator", true, "Whether 20 bytes of the simulator stand before each packet over SLIQ")
local messages = {
    [0x10] = "depths", [0x11] = "hello", [0x13] = "links", [0x14] = "groups", [0x15] = "report",
    [0x30] = "capacity", [0x38] = "known", [0x39] = "unknown",
}

local f = {
    bits = ProtoField.uint8("overlay.bits", "Packet", base.HEX),
    ecn = ProtoField.uint8("overlay.ecn", "ECN", base.DEC, nil, 0xc0),
    hops = ProtoField.uint8("overlay.hops", "Links passed", base.DEC, nil, 0x3f),
    source = ProtoField.uint8("overlay.flow.source", "Flow: source node"),
    generation = ProtoField.uint8("overlay.flow.generation", "Flow: generation"),
    number = ProtoField.uint16("overlay.flow.number", "Flow: number"),
    sequence = ProtoField.uint24("overlay.sequence", "Sequence"),
    checksum = ProtoField.uint16("overlay.checksum", "Inner UDP checksum", base.HEX),
    to_go = ProtoField.uint32("overlay.to_go", "Time to go (us)"),
    visited = ProtoField.uint8("overlay.visited", "Visited node"),
    context = ProtoField.uint8("overlay.context", "Context", base.HEX),
    to_node = ProtoField.uint8("overlay.context.node", "Node"),
    to_group = ProtoField.ipv4("overlay.context.group", "Group"),
    receiver = ProtoField.uint8("overlay.context.receiver", "Receiver of the flow"),
    inner_source = ProtoField.ipv4("overlay.inner.source", "Inner source"),
    inner_destination = ProtoField.ipv4("overlay.inner.destination", "Inner destination"),
    inner_source_port = ProtoField.uint16("overlay.inner.source_port", "Inner source port"),
    inner_destination_port = ProtoField.uint16("overlay.inner.destination_port", "Inner destination port"),
    inner_protocol = ProtoField.uint8("overlay.inner.protocol", "Inner protocol"),
    inner_dscp = ProtoField.uint8("overlay.inner.dscp", "Inner DSCP"),
    vector = ProtoField.bytes("overlay.vector", "Destination vector"),
    payload = ProtoField.bytes("overlay.payload", "Payload"),
    notes = ProtoField.bytes("overlay.notes", "The simulator's own (when it was sent, how long it has waited)"),
    message = ProtoField.uint8("overlay.message", "Message", base.HEX, messages),
    epoch = ProtoField.uint32("overlay.epoch", "Boot epoch"),
    heard = ProtoField.uint32("overlay.heard", "The neighbour's epoch"),
    stamp = ProtoField.uint32("overlay.stamp", "Number of the message"),
    first = ProtoField.uint64("overlay.depths.first", "First name"),
    last = ProtoField.uint64("overlay.depths.last", "Last name"),
    group = ProtoField.uint32("overlay.group", "Group", base.HEX),
    node = ProtoField.uint8("overlay.node", "Node"),
    depth = ProtoField.uint64("overlay.depth", "Depth (bytes)"),
    sensitive = ProtoField.uint64("overlay.sensitive", "Sensitive depth (bytes)"),
    k = ProtoField.uint8("overlay.k", "Exponent of K", base.DEC, nil, 0x7f),
    drained = ProtoField.bool("overlay.drained", "Drained", 8, nil, 0x80),
    delay = ProtoField.uint16("overlay.delay", "Mean delay (100 us)"),
    deviation = ProtoField.uint16("overlay.deviation", "Deviation of the delay (100 us)"),
    capacity = ProtoField.uint64("overlay.capacity", "Capacity (kbit/s)"),
    queue_delay = ProtoField.uint16("overlay.queue_delay", "Delay in queues (100 us)"),
    passed = ProtoField.uint8("overlay.report.passed", "Links passed"),
    highest = ProtoField.uint64("overlay.report.highest", "Packets of which the fate is known"),
    in_time = ProtoField.uint64("overlay.report.in_time", "Of these, in time"),
    bytes = ProtoField.uint64("overlay.report.bytes", "Bytes in time"),
    estimate = ProtoField.uint24("overlay.estimate", "Capacity of the link (kbit/s)"),
}
for _, field in pairs(f) do
    overlay.fields[#overlay.fields + 1] = field
end

-- The receivers of each flow whose context was seen: how many there are.
local receivers = {}
function overlay.init() receivers = {} end

-- Reads on from a place; every function fails, and so ends the reading, where bytes are missing.
local Reader = {}
Reader.__index = Reader

local function reader(bytes, at) return setmetatable({ bytes = bytes, at = at }, Reader) end

function Reader:take(count)
    if self.at + count > self.bytes:len() then error("short") end
    local range = self.bytes(self.at, count)
    self.at = self.at + count
    return range
end

function Reader:add(tree, field, count)
    local range = self:take(count)
    tree:add(field, range)
    return range
end

-- A number in groups of seven bits, lowest first.
function Reader:varint()
    local from, value, scale = self.at, 0, 1
    repeat
        local byte = self:take(1):uint()
        value = value + (byte % 128) * scale
        scale = scale * 128
    until byte < 128
    return value, self.bytes(from, self.at - from)
end

-- A depth: five bits of exponent, eleven of mantissa.
local function short(code)
    local exponent, mantissa = math.floor(code / 2048), code % 2048
    if exponent == 0 then return mantissa end
    return (2048 + mantissa) * 2 ^ (exponent - 1)
end

function Reader:short(tree, field)
    local range = self:take(2)
    tree:add(field, range, UInt64(short(range:uint())))
end

-- A set of nodes: a list, or a bitmap, the bit of node 0 lowest. Returns the numbers of the nodes.
function Reader:set(tree, field)
    local first, nodes = self:take(1):uint(), {}
    if first < 128 then
        for _ = 1, first do nodes[#nodes + 1] = self:add(tree, field, 1):uint() end
        table.sort(nodes)
        return nodes
    end
    for byte = 0, first - 129 do
        local range = self:take(1)
        for bit = 0, 7 do
            if range:bitfield(7 - bit, 1) == 1 then
                nodes[#nodes + 1] = 8 * byte + bit
                tree:add(field, range, 8 * byte + bit)
            end
        end
    end
    return nodes
end

-- Which nodes of a set have a bit.
function Reader:subset(nodes)
    local range, chosen = self:take(math.ceil(#nodes / 8)), {}
    for rank = 0, #nodes - 1 do
        local byte = math.floor(rank / 8)
        chosen[rank + 1] = range:bitfield(8 * byte + 7 - rank % 8, 1) == 1
    end
    return chosen
end

function Reader:flow(tree)
    local at = self.at
    self:add(tree, f.source, 1)
    self:add(tree, f.generation, 1)
    self:add(tree, f.number, 2)
    return self.bytes(at, 4):uint()
end

function Reader:stamp(tree)
    self:add(tree, f.epoch, 4)
    self:add(tree, f.stamp, 4)
end

-- A set of nodes with a depth each, and a second one for those that have sensitive traffic.
function Reader:depths(tree)
    local nodes = self:set(tree, f.node)
    local sensitive = {}
    if #nodes > 0 then sensitive = self:subset(nodes) end
    for rank = 1, #nodes do
        self:short(tree, f.depth)
        if sensitive[rank] then self:short(tree, f.sensitive) end
    end
end

local function read_context(read, tree)
    local kind, count = read:add(tree, f.context, 1):uint(), 1
    if kind % 2 == 0 then
        read:add(tree, f.to_node, 1)
        count = 0
    else
        read:add(tree, f.to_group, 4)
        count = #read:set(tree, f.receiver)
    end
    for _, field in ipairs({
        { "inner_source", 4 }, { "inner_destination", 4 }, { "inner_source_port", 2 }, { "inner_destination_port", 2 },
        { "inner_protocol", 1 }, { "inner_dscp", 1 },
    }) do
        read:add(tree, f[field[1]], field[2])
    end
    return count
end

local function read_packet(read, tree)
    local bits = read:add(tree, f.bits, 1):uint() % 16
    local mixed = read:take(1)
    tree:add(f.ecn, mixed)
    tree:add(f.hops, mixed)
    local flow = read:flow(tree)
    read:add(tree, f.sequence, 3)
    read:add(tree, f.checksum, 2)
    if bits % 2 == 1 then
        local range = read:take(2)
        local code = range:uint()
        local micros = code < 0x8000 and math.floor(code * 1000000 / 32767) or 1000000 + 1000 * (code - 0x8000)
        tree:add(f.to_go, range, micros)
    end
    if math.floor(bits / 2) % 2 == 1 then read:set(tree, f.visited) end
    if bits >= 8 then receivers[flow] = read_context(read, tree) end
    if math.floor(bits / 4) % 2 == 1 then
        if not receivers[flow] then return "packet of an unknown flow" end
        read:add(tree, f.vector, math.ceil(receivers[flow] / 8))
    end
    if read.at < read.bytes:len() then tree:add(f.payload, read.bytes(read.at)) end
    read.at = read.bytes:len()
    return "packet"
end

local contents = {
    [0x10] = function(read, tree)
        read:stamp(tree)
        for _, field in ipairs({ "first", "last" }) do
            local value, range = read:varint()
            tree:add(f[field], range, UInt64(value))
        end
        read:depths(tree)
        read:depths(tree)
        local last = 0
        for _ = 1, (read:varint()) do
            local step, range = read:varint()
            last = (last + step) % 0x100000000
            tree:add(f.group, range, last)
            if read.bytes(read.at, 1):uint() == 0x40 then
                read:take(1)
                read:short(tree, f.depth)
            else
                read:depths(tree)
            end
        end
    end,
    [0x11] = function(read, tree)
        read:add(tree, f.node, 1)
        read:add(tree, f.epoch, 4)
        if read:take(1):uint() == 1 then read:add(tree, f.heard, 4) end
    end,
    [0x13] = function(read, tree)
        read:add(tree, f.node, 1)
        read:stamp(tree)
        tree:add(f.drained, read:add(tree, f.k, 1))
        for _ = 1, #read:set(tree, f.node) do
            read:add(tree, f.delay, 2)
            read:add(tree, f.deviation, 2)
            read:short(tree, f.capacity)
        end
        for _ = 1, #read:set(tree, f.node) do read:add(tree, f.queue_delay, 2) end
    end,
    [0x14] = function(read, tree)
        read:add(tree, f.node, 1)
        read:stamp(tree)
        local last = 0
        for _ = 1, (read:varint()) do
            local step, range = read:varint()
            last = last + step
            tree:add(f.group, range, last)
        end
    end,
    [0x15] = function(read, tree)
        read:flow(tree)
        read:add(tree, f.node, 1)
        read:add(tree, f.passed, 1)
        for _, field in ipairs({ f.highest, f.in_time, f.bytes }) do
            local count, range = read:varint()
            tree:add(field, range, UInt64.new(count % 4294967296, math.floor(count / 4294967296)))
        end
    end,
    [0x30] = function(read, tree) read:add(tree, f.estimate, 3) end,
    [0x38] = function(read, tree) read:flow(tree) end,
    [0x39] = function(read, tree) read:flow(tree) end,
}

-- What stands in a datagram or in a SLIQ message, from a place on. Returns the names of what is there.
local function read_all(bytes, at, part)
    local read, told = reader(bytes, at), {}
    if bytes(at, 1):bitfield(0, 4) == 4 then
        local _, what = pcall(read_packet, read, part)
        told[1] = what == nil and "packet" or what
    else
        while read.at < bytes:len() do
            local kind = bytes(read.at, 1):uint()
            local content = contents[kind]
            if not content then break end
            local message = part:add(f.message, read:take(1))
            told[#told + 1] = messages[kind]
            if not pcall(content, read, message) then
                told[#told + 1] = "cut off"
                break
            end
        end
    end
    return told
end

function overlay.dissector(bytes, packet, tree)
    if bytes:len() == 0 then return 0 end
    -- A link that is a SLIQ connection.
    if bytes(0, 1):bitfield(0, 4) == 5 then
        local found, sliq = pcall(Dissector.get, "sliq")
        return found and sliq and sliq:call(bytes, packet, tree) or 0
    end
    packet.cols.protocol = "OVERLAY"
    packet.cols.info = table.concat(read_all(bytes, 0, tree:add(overlay, bytes())), ", ")
    return bytes:len()
end

local listening = PORT
DissectorTable.get("udp.port"):add(PORT, overlay)

function overlay.prefs_changed()
    if overlay.prefs.port == listening then return end
    local ports = DissectorTable.get("udp.port")
    ports:remove(listening, overlay)
    listening = overlay.prefs.port
    ports:add(listening, overlay)
end

-- The streams of a connection between nodes: depths, sensitive packets, other messages, other packets (docs/overlay.md). Packets of the
-- simulator are behind its own 20 bytes.
local NOTES = 20
local function within(may_have_notes)
    return function(bytes, packet, tree)
        local has_notes = may_have_notes and overlay.prefs.notes
        local at = has_notes and NOTES or 0
        if packet.src_port ~= listening or bytes:len() <= at then return 0 end
        local part = tree:add(overlay, bytes())
        if has_notes then part:add(f.notes, bytes(0, NOTES)) end
        read_all(bytes, at, part)
        return bytes:len()
    end
end
local has_streams, streams = pcall(DissectorTable.get, "sliq.stream")
if has_streams and streams then
    for stream, has_notes in pairs({ [0] = false, [1] = true, [2] = false, [3] = true }) do
        local inner = Proto("overlay_" .. stream, "Overlay, stream " .. stream)
        inner.dissector = within(has_notes)
        streams:add(stream, inner)
    end
end
