-- A Wireshark dissector of SLIQ's packets, field by field as docs/sliq.md has them.
--
--   wireshark -X lua_script:docs/sliq.lua FILE          tshark -X lua_script:docs/sliq.lua -r FILE -Y sliq
--
-- Or put it into Wireshark's folder of plugins. Plain packets are found by what they are made of, on any port; sealed ones on UDP port
-- 7765 (or "Decode As"), with their header alone, since the rest is encrypted. The simulator seals by length alone: its packets end with a
-- tag of zeros, and what stands before it is shown.
--
-- Other scripts can show what streams carry: those in the table `sliq.stream` are called with each message that one data frame holds.

local sliq = Proto("sliq", "SLIQ")

local kinds = { [1] = "open", [2] = "accept", [3] = "within", [4] = "cookie" }
local frames = {
    [1] = "acknowledgement", [2] = "data", [3] = "repair", [4] = "forward", [5] = "ping", [6] = "close", [7] = "credit",
    [8] = "challenge", [9] = "response", [10] = "part", [11] = "padding",
    [12] = "marks", [13] = "round trip",
}
local reasons = { [0] = "as wished", [1] = "protocol error", [2] = "gone" }

local f = {
    cp = ProtoField.bytes("sliq.cp", "CP header"),
    mark = ProtoField.uint8("sliq.mark", "Mark", base.DEC, nil, 0xf0),
    phase = ProtoField.bool("sliq.key_phase", "Key phase", 8, nil, 0x08),
    kind = ProtoField.uint8("sliq.kind", "Kind", base.DEC, kinds, 0x07),
    connection = ProtoField.uint24("sliq.connection", "Connection", base.HEX),
    number = ProtoField.uint32("sliq.number", "Packet number (low 32 bits)"),
    timestamp = ProtoField.uint32("sliq.timestamp", "Sender's clock (us)"),
    cookie = ProtoField.bytes("sliq.cookie", "Cookie"),
    sealed = ProtoField.bytes("sliq.sealed", "Sealed"),
    frame = ProtoField.uint8("sliq.frame", "Frame", base.DEC, frames),
    stream = ProtoField.uint8("sliq.stream", "Stream"),
    payload = ProtoField.bytes("sliq.payload", "Payload"),
    ack_largest = ProtoField.uint32("sliq.ack.largest", "Highest number that has arrived"),
    ack_received = ProtoField.uint32("sliq.ack.received", "Packets that have arrived"),
    ack_difference = ProtoField.uint32("sliq.ack.difference", "Arrival less timestamp of the newest (us)"),
    ack_delay = ProtoField.uint16("sliq.ack.delay", "Wait of the newest (us)"),
    ack_ranges = ProtoField.uint8("sliq.ack.ranges", "Ranges"),
    ack_missing = ProtoField.uint16("sliq.ack.missing", "Missing above the range"),
    ack_before = ProtoField.uint16("sliq.ack.before", "Arrived beside its highest"),
    data_flags = ProtoField.uint8("sliq.data.flags", "Flags", base.HEX),
    data_ordered = ProtoField.bool("sliq.data.ordered", "Ordered", 8, nil, 0x01),
    data_first = ProtoField.bool("sliq.data.first", "First of a message", 8, nil, 0x02),
    data_last = ProtoField.bool("sliq.data.last", "Last of a message", 8, nil, 0x04),
    data_fin = ProtoField.bool("sliq.data.fin", "End of the stream", 8, nil, 0x08),
    data_prompt = ProtoField.bool("sliq.data.prompt", "Acknowledge at once", 8, nil, 0x10),
    data_coded = ProtoField.bool("sliq.data.coded", "Repair packets may follow", 8, nil, 0x20),
    data_segment = ProtoField.uint32("sliq.data.segment", "Segment"),
    data_distance = ProtoField.uint16("sliq.data.distance", "First that may still be sent, before it by"),
    data_length = ProtoField.uint16("sliq.data.length", "Length"),
    part_offset = ProtoField.uint16("sliq.part.offset", "Place in the segment"),
    part_length = ProtoField.uint16("sliq.part.length", "Length"),
    data_due = ProtoField.uint32("sliq.data.due", "Due by the sender's clock (us)"),
    data_to_go = ProtoField.int32("sliq.data.to_go", "Time to go when it left (us)"),
    round_trip = ProtoField.uint32("sliq.round_trip", "Smallest round trip (us)"),
    marks_ect0 = ProtoField.uint32("sliq.marks.ect0", "Packets that have arrived with ECT(0)"),
    marks_ect1 = ProtoField.uint32("sliq.marks.ect1", "Packets that have arrived with ECT(1)"),
    marks_ce = ProtoField.uint32("sliq.marks.ce", "Packets that have arrived with CE"),
    padding_length = ProtoField.uint16("sliq.padding.length", "Length"),
    repair_start = ProtoField.uint32("sliq.repair.start", "First segment of the group"),
    repair_segments = ProtoField.uint8("sliq.repair.segments", "Segments of the group"),
    repair_number = ProtoField.uint8("sliq.repair.number", "Number of the repair packet"),
    repair_distance = ProtoField.uint16("sliq.repair.distance", "First that may still be sent, before the group by"),
    repair_length = ProtoField.uint16("sliq.repair.length", "Length"),
    forward_base = ProtoField.uint32("sliq.forward.base", "First segment that may still be sent"),
    credit_segments = ProtoField.uint32("sliq.credit.segments", "Segments that may be sent in all"),
    challenge = ProtoField.uint64("sliq.challenge", "Number of the challenge", base.HEX),
    close_reason = ProtoField.uint8("sliq.close.reason", "Reason", base.DEC, reasons),
}
for _, field in pairs(f) do
    sliq.fields[#sliq.fields + 1] = field
end

local HEADER, COOKIE, TAG, PORT = 12, 16, 16, 7765
local FIRST_AND_LAST = 0x06
local streams = DissectorTable.new("sliq.stream", "SLIQ stream", ftypes.UINT8, base.DEC)

-- How much longer a data or part frame is for having a deadline: it has one where repair packets may follow.
local function due_length(bytes, at)
    return bytes(at + 1, 1):bitfield(2, 1) * 4
end

-- The length of the frame at this place, its payload included; nil where it is none.
local function frame_length(bytes, at)
    local left = bytes:len() - at
    local kind = bytes(at, 1):uint()
    if kind == 1 and left >= 16 then
        local ranges = bytes(at + 15, 1):uint()
        local length = 16 + 4 * ranges
        return ranges >= 1 and ranges <= 16 and length <= left and length or nil
    elseif kind == 2 and left >= 11 then
        local length = 11 + due_length(bytes, at) + bytes(at + 9, 2):uint()
        return bytes(at + 1, 1):uint() < 64 and length == left and length or nil
    elseif kind == 3 and left >= 12 then
        local length = 12 + bytes(at + 10, 2):uint()
        return length == left and length or nil
    elseif kind == 10 and left >= 15 + due_length(bytes, at) then
        local due = due_length(bytes, at)
        local length = 15 + due + bytes(at + 13 + due, 2):uint()
        return bytes(at + 1, 1):uint() < 64 and length == left and length or nil
    elseif kind == 11 and left >= 3 then
        local length = 3 + bytes(at + 1, 2):uint()
        return length == left and length or nil
    end
    local fixed = ({ [4] = 6, [5] = 1, [6] = 2, [7] = 6, [8] = 9, [9] = 9, [12] = 13, [13] = 5 })[kind]
    return fixed and fixed <= left and fixed or nil
end

-- Whether a packet is a plain one, to its last byte.
local function is_plain(bytes)
    if bytes:len() < HEADER then return false end
    local first = bytes(0, 1):uint()
    if first < 0x51 or first > 0x53 then return false end
    local at = HEADER
    while at < bytes:len() do
        local length = frame_length(bytes, at)
        if not length then return false end
        at = at + length
    end
    return true
end

-- A packet that the simulator has sealed, without the tag; nil if it is none.
local function without_tag(bytes)
    local length = bytes:len() - TAG
    if length < HEADER or bytes(length, TAG):bytes():tohex():find("[^0]") then return nil end
    local rest = bytes(0, length):tvb()
    return is_plain(rest) and rest or nil
end

-- A list of a frame's fields with their lengths, in order.
local layouts = {
    [1] = { { "ack_largest", 4 }, { "ack_received", 4 }, { "ack_difference", 4 }, { "ack_delay", 2 }, { "ack_ranges", 1 } },
    [2] = { { "data_flags", 1 }, { "stream", 1 }, { "data_segment", 4 }, { "data_distance", 2 }, { "data_length", 2 } },
    [3] = {
        { "stream", 1 }, { "repair_start", 4 }, { "repair_segments", 1 }, { "repair_number", 1 }, { "repair_distance", 2 },
        { "repair_length", 2 },
    },
    [4] = { { "stream", 1 }, { "forward_base", 4 } },
    [5] = {},
    [6] = { { "close_reason", 1 } },
    [7] = { { "stream", 1 }, { "credit_segments", 4 } },
    [8] = { { "challenge", 8 } },
    [9] = { { "challenge", 8 } },
    [10] = {
        { "data_flags", 1 }, { "stream", 1 }, { "data_segment", 4 }, { "data_distance", 2 }, { "data_length", 2 }, { "part_offset", 2 },
        { "part_length", 2 },
    },
    [11] = { { "padding_length", 2 } },
    [13] = { { "round_trip", 4 } },
    [12] = { { "marks_ect0", 4 }, { "marks_ect1", 4 }, { "marks_ce", 4 } },
}

-- Length of the header that stands before packets of a flow of an application (docs/coordination.md), by its version.
local cp_headers = { [1] = 20, [2] = 36 }

-- A packet without such a header, and the header's length.
local function behind_cp_header(bytes)
    local length = bytes:len() > 0 and cp_headers[bytes(0, 1):bitfield(0, 4)] or 0
    if length == 0 or length >= bytes:len() then return bytes, 0 end
    return bytes(length):tvb(), length
end

local function add_frame(bytes, at, length, tree, packet, root)
    local kind = bytes(at, 1):uint()
    local part = tree:add(f.frame, bytes(at, 1))
    local next = at + 1
    for _, field in ipairs(layouts[kind]) do
        local name, size = field[1], field[2]
        local added = part:add(f[name], bytes(next, size))
        if name == "data_flags" then
            for _, flag in ipairs({ "ordered", "first", "last", "fin", "prompt", "coded" }) do
                added:add(f["data_" .. flag], bytes(next, 1))
            end
        end
        next = next + size
        if name == "data_length" and due_length(bytes, at) > 0 then
            local due, left = bytes(next, 4):uint(), bytes(8, 4):uint()
            part:add(f.data_due, bytes(next, 4))
            part:add(f.data_to_go, bytes(next, 4), (due - left + 0x80000000) % 0x100000000 - 0x80000000)
            next = next + 4
        end
    end
    if kind == 1 then
        while next < at + length do
            part:add(f.ack_missing, bytes(next, 2))
            part:add(f.ack_before, bytes(next + 2, 2))
            next = next + 4
        end
    elseif next < at + length then
        local payload = bytes(next, at + length - next)
        part:add(f.payload, payload)
        if kind == 2 and bit.band(bytes(at + 1, 1):uint(), FIRST_AND_LAST) == FIRST_AND_LAST then
            streams:try(bytes(at + 2, 1):uint(), payload:tvb(), packet, root)
        end
    end
    return frames[kind]
end

function sliq.dissector(whole, packet, tree)
    local bytes, header = behind_cp_header(whole)
    if bytes:len() < HEADER or bytes(0, 1):bitfield(0, 4) ~= 5 then return 0 end
    packet.cols.protocol = "SLIQ"
    local part = tree:add(sliq, whole())
    if header > 0 then part:add(f.cp, whole(0, header)) end
    part:add(f.mark, bytes(0, 1))
    part:add(f.phase, bytes(0, 1))
    part:add(f.kind, bytes(0, 1))
    part:add(f.connection, bytes(1, 3))
    part:add(f.number, bytes(4, 4))
    part:add(f.timestamp, bytes(8, 4))
    local told = { kinds[bytes(0, 1):bitfield(5, 3)] or "unknown" }
    if bytes(0, 1):uint() == 0x54 and bytes:len() == HEADER + COOKIE then
        part:add(f.cookie, bytes(HEADER, COOKIE))
    elseif is_plain(bytes) or without_tag(bytes) then
        local plain = is_plain(bytes) and bytes or without_tag(bytes)
        local at = HEADER
        while at < plain:len() do
            local length = frame_length(plain, at)
            told[#told + 1] = add_frame(plain, at, length, part, packet, tree)
            at = at + length
        end
        if plain:len() < bytes:len() then
            part:add(f.sealed, bytes(plain:len()))
            told[#told + 1] = "sealed by length"
        end
    elseif bytes:len() > HEADER then
        part:add(f.sealed, bytes(HEADER))
        told[#told + 1] = "sealed"
    end
    packet.cols.protocol = "SLIQ"
    packet.cols.info = string.format("%s, number %d", table.concat(told, ", "), bytes(4, 4):uint())
    return whole:len()
end

sliq:register_heuristic("udp", function(bytes, packet, tree)
    if not is_plain((behind_cp_header(bytes))) then return false end
    sliq.dissector(bytes, packet, tree)
    return true
end)
DissectorTable.get("udp.port"):add(PORT, sliq)
