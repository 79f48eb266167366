"""Large captures for `compare.py`: copies of a small one, and connections made from nothing.

Each function writes a classic pcap. Nothing here measures, and nothing knows moulsniff. Checksums are left as they were or at 0; moulsniff and
its peers look at them only when asked to.
"""
import base64
import gzip
import json
import random
import struct

SYN, FIN, PSH, ACK = 2, 1, 8, 16


class Small:
    """A classic little-endian pcap of Ethernet, raw IP, loopback or Linux cooked frames, with the places of what copies change."""

    LINKS = {0: 4, 1: 14, 12: 0, 101: 0, 113: 16, 228: 0, 229: 0, 276: 20}

    def __init__(self, path: str, part: float = 1.0):
        """`part`: only so much of the frames, from the beginning."""
        data = open(path, "rb").read()
        if data[:4] not in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
            raise SystemExit(f"{path}: not a little-endian classic pcap; `editcap -F pcap` makes one")
        self.unit = 10**6 if data[0] == 0xD4 else 10**9
        link = struct.unpack_from("<I", data, 20)[0]
        if link not in self.LINKS:
            raise SystemExit(f"{path}: link type {link} is not handled")
        self.head, self.frames = data[:24], []
        at = 24
        while at + 16 <= len(data):
            seconds, fraction, kept = struct.unpack_from("<III", data, at)
            self.frames.append((at - 24, 16 + kept, seconds * self.unit + fraction))
            at += 16 + kept
        self.frames = self.frames[: max(1, round(len(self.frames) * part))]
        last = self.frames[-1]
        self.body = data[24 : 24 + last[0] + last[1]]
        self.first = min(f[2] for f in self.frames)
        self.span = max(f[2] for f in self.frames) - self.first + self.unit // 1000
        clients = {}
        self.places = [self._place(at, at + length, self.LINKS[link], clients) for at, length, _ in self.frames]
        self.streams = len(clients)

    def _place(self, at: int, end: int, skipped: int, clients: dict):
        """Where a frame's client port stands, its number, and where the client's IPv4 address has its second octet (0: none)."""
        body, ip = self.body, at + 16 + skipped
        if ip + 24 > end:
            return None
        if body[ip] >> 4 == 4 and body[ip + 9] in (6, 17) and not struct.unpack_from(">H", body, ip + 6)[0] & 0x1FFF:
            ports, address = ip + (body[ip] & 15) * 4, ip + 13
        elif body[ip] >> 4 == 6 and body[ip + 6] in (6, 17):
            ports, address = ip + 40, 0
        else:
            return None
        if ports + 4 > end:
            return None
        source, target = struct.unpack_from(">HH", body, ports)
        client = clients.setdefault((min(source, target), max(source, target)), max(source, target))
        is_target = source != client
        return ports + 2 * is_target, client, address and address + 4 * is_target

    def change(self, out: bytearray, base: int, place, copy: int) -> None:
        """Gives a frame in `out`, which stands at `base` of the body, the client of a copy."""
        if place is None:
            return
        port_at, client, address = place
        struct.pack_into(">H", out, port_at - base, 20000 + (client + copy * 7919) % 45000)
        if address:
            octets = (out[address - base] << 8 | out[address - base + 1]) + copy
            struct.pack_into(">H", out, address - base, octets & 0xFFFF)

    def write(self, to: str, copies: int, together: bool = False) -> None:
        """Copies one after the other; `together`: all streams are open at the same time."""
        with open(to, "wb", buffering=1 << 20) as out:
            out.write(self.head)
            if together:
                for (at, length, _), place in zip(self.frames, self.places):
                    for copy in range(copies):
                        frame = bytearray(self.body[at : at + length])
                        self.change(frame, at, place, copy)
                        out.write(frame)
                return
            for copy in range(copies):
                block = bytearray(self.body)
                for (at, _, time), place in zip(self.frames, self.places):
                    struct.pack_into("<II", block, at, *divmod(time + copy * self.span, self.unit))
                    self.change(block, 0, place, copy)
                out.write(block)


class Made:
    """A capture made from nothing: connections over raw IPv4, a frame every ten microseconds."""

    def __init__(self, to: str):
        self.out, self.frames = open(to, "wb", buffering=1 << 20), 0
        self.out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101))

    def segment(self, number: int, from_client: bool, sequence: int, acknowledged: int, flags: int, data: bytes = b"") -> None:
        client = struct.pack(">I", 0x0A000002 + number // 40000), 20000 + number % 40000
        server = b"\x0a\xff\xff\x01", 14617
        (a, a_port), (b, b_port) = (client, server) if from_client else (server, client)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(data), 0, 0x4000, 64, 6, 0) + a + b
        tcp = struct.pack(">HHIIBBHHH", a_port, b_port, sequence, acknowledged, 0x50, flags, 0xFFFF, 0, 0)
        seconds, micros = divmod(self.frames * 10, 10**6)
        length = 40 + len(data)
        self.out.write(struct.pack("<IIII", 1_700_000_000 + seconds, micros, length, length) + ip + tcp + data)
        self.frames += 1

    def connection(self, number: int, said, close: bool = True) -> None:
        """A whole connection: `said` is a list of who (client: True) and what."""
        self.segment(number, True, 0, 0, SYN)
        self.segment(number, False, 0, 1, SYN | ACK)
        sent = {True: 1, False: 1}
        for from_client, data in said:
            for at in range(0, len(data), 1400):
                part = data[at : at + 1400]
                self.segment(number, from_client, sent[from_client], sent[not from_client], PSH | ACK, part)
                sent[from_client] += len(part)
        if close:
            self.segment(number, True, sent[True], sent[False], FIN | ACK)
            self.segment(number, False, sent[False], sent[True] + 1, FIN | ACK)
            self.segment(number, True, sent[True] + 1, sent[False] + 1, ACK)

    def close(self) -> None:
        self.out.close()


PRODUCT = bytes.fromhex("219848ea356cd04b9daebb17c585e680")
GATEKEEPER = struct.pack("<BHIII", 22, 31, 918, 50, 1) + PRODUCT + struct.pack("<I", 20) + bytes(16)
GAME = struct.pack("<BHIII", 11, 31, 918, 50, 1) + PRODUCT + struct.pack("<I", 36) + bytes(32)
AUTH = struct.pack("<BHIII", 10, 31, 918, 50, 1) + PRODUCT + struct.pack("<I", 20) + bytes(16)

# The largest prime of 512 bits, and a private exponent for it: nobody's key.
PRIME = 2**512 - 569
EXPONENT = random.Random("a private exponent").getrandbits(512) | 1 << 511


def key_file(to: str) -> None:
    """The key that `handshakes` uses, as moulsniff's own key file."""
    n, k = (base64.b64encode(value.to_bytes(64, "big")).decode() for value in (PRIME, EXPONENT))
    with open(to, "w") as out:
        out.write(f"private gatekeeper n={n} k={k}\n")


def rc4(key: bytes, data: bytes) -> bytes:
    table, j = list(range(256)), 0
    for i in range(256):
        j = j + table[i] + key[i % len(key)] & 255
        table[i], table[j] = table[j], table[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = i + 1 & 255
        j = j + table[i] & 255
        table[i], table[j] = table[j], table[i]
        out.append(byte ^ table[table[i] + table[j] & 255])
    return bytes(out)


def handshakes(to: str, connections: int, fresh: bool = True, close: bool = True) -> None:
    """Connections to a gatekeeper: handshake, a ping and its reply. Each has a y of its own, or all have the same one.

    A client's secret b costs a power, so that each connection's is one more than that of the one before: y and the shared number are then
    one multiplication away. Who reads the capture has no such help.
    """
    made = Made(to)
    draw = random.Random("clients")
    public, b = pow(4, EXPONENT, PRIME), draw.getrandbits(512)
    y, shared = pow(4, b, PRIME), pow(public, b, PRIME)
    for number in range(connections):
        seed = draw.randbytes(7)
        key = bytes(a ^ b for a, b in zip(seed, shared.to_bytes(64, "little")))
        ping = rc4(key, struct.pack("<HIII", 0, number, 7, 0))
        hello = GATEKEEPER + b"\x00\x42" + y.to_bytes(64, "little")
        made.connection(number, [(True, hello), (False, b"\x01\x09" + seed), (True, ping), (False, ping)], close)
        if fresh:
            y, shared = y * 4 % PRIME, shared * public % PRIME
    made.close()


def names(to: str, count: int) -> None:
    """One connection in clear: `count` players with names that are all new, and as many requests that are never answered."""
    made = Made(to)
    said = [(True, AUTH + b"\x00\x02"), (False, b"\x01\x02")]
    for first in range(0, count, 100):
        asked, told = [], []
        for number in range(first, min(first + 100, count)):
            name = f"Explorer {number}"
            asked.append(struct.pack("<HII", 26, number + 1, number + 1_000_000))
            told.append(struct.pack("<HIIH", 6, number + 1, number + 1_000_000, len(name)) + name.encode("utf-16-le"))
            told.append(struct.pack("<H", 4) + "male".encode("utf-16-le") + struct.pack("<I", 1))
        said += [(True, b"".join(asked)), (False, b"".join(told))]
    made.connection(0, said, close=False)
    made.close()


def variety(to: str, vectors: str, count: int, seed: int) -> None:
    """One connection in clear to a game server, which relays `count` messages: the instances in `vectors` (a line of JSON each), every net
    message and every message within one as often as any other, in an order that `seed` decides, with times, players and places of their own.
    """
    draw, kinds = random.Random(seed), {}
    with gzip.open(vectors, "rt") as lines:
        for vector in map(json.loads, lines):
            if vector["kind"] in ("plNetMessage", "plMessage"):
                kinds.setdefault((vector["kind"], vector["class"]), []).append(bytes.fromhex(vector["hex"]))
    order, said = [], [(True, GAME + b"\x00\x02"), (False, b"\x01\x02")]
    while len(order) < count:
        again = sorted(kinds)
        draw.shuffle(again)
        order += again
    for first in range(0, count, 20):
        said.append((False, b"".join(relayed(kind[0], draw.choice(kinds[kind]), draw) for kind in order[first : min(first + 20, count)])))
    made = Made(to)
    made.connection(0, said, close=False)
    made.close()


def relayed(kind: str, message: bytes, draw) -> bytes:
    """What a game server sends to relay a net message; a message that is none is put into one."""
    if kind == "plMessage":
        # Flags: a time, a player, reliable. Stream: not compressed. No delivery time.
        head = struct.pack("<HIIII", 619, 0x41001, draw.randrange(1 << 31), draw.randrange(10**6), 1 + draw.randrange(500))
        message = head + struct.pack("<IBI", 0, 3, len(message)) + message + b"\0"
    return struct.pack("<HII", 2, *struct.unpack_from("<H", message), len(message)) + message
