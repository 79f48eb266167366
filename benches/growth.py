#!/usr/bin/env python3
"""Whether costs grow in proportion: captures that are made against data structures, each with n, 2n and 4n things in it.

    growth.py MOULSNIFF
    growth.py MOULSNIFF --scale 2 --only tells,keys

Each line is a kind of capture and a command, with the instructions (valgrind's callgrind) at n, 2n and 4n, and how many times as many each is
as the one before. What starts the program is taken off. Above LIMIT times as many for twice as much, the line says so and the status is 1.
"""
import argparse
import hashlib
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

CLIENT, SERVER, MOUL, ROUTER, SIMULATOR, WEB = b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02", 14617, 8080, 13000, 12046
# Twice as much may cost so many times as much.
LIMIT = 2.6


class Capture:
    """A pcap of TCP connections, each of them whole."""

    def __init__(self):
        self.out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
        self.frames = 0
        self.time = 1_700_000_000

    def frame(self, sent, ports, seq, ack, flags, data=b""):
        here, there = ports if sent else ports[::-1]
        self.packet(sent, 6, struct.pack(">HHIIBBHHH", here, there, seq, ack, 0x50, flags, 65535, 0, 0) + data)

    def datagram(self, sent, ports, data):
        here, there = ports if sent else ports[::-1]
        self.packet(sent, 17, struct.pack(">HHHH", here, there, 8 + len(data), 0) + data)

    def packet(self, sent, protocol, body):
        source, target = (CLIENT, SERVER) if sent else (SERVER, CLIENT)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, protocol, 0) + source + target
        packet = bytes(12) + b"\x08\x00" + ip + body
        self.out.append(struct.pack("<IIII", self.time, self.frames, len(packet), len(packet)) + packet)
        self.frames += 1

    def connection(self, number, port, *sends):
        """`sends` are pairs: whether the client sends, and what."""
        ports = (10_000 + number % 50_000, port)
        at = {True: 1001, False: 5001}
        self.frame(True, ports, 1000, 0, 2)
        self.frame(False, ports, 5000, 1001, 0x12)
        self.frame(True, ports, 1001, 5001, 0x10)
        for sent, data in sends:
            for start in range(0, len(data), 60_000):
                part = data[start:start + 60_000]
                self.frame(sent, ports, at[sent], at[not sent], 0x18, part)
                at[sent] += len(part)

    def write(self, path):
        path.write_bytes(b"".join(self.out))


def packet(text):
    data = text.encode() + b"\0"
    return struct.pack(">I", len(data)) + data


HELLO = packet('({"startup-req-3",5,"mud",0,"*r",0,"pw",0,0,1,2,3,"a","b","c",0,([]),([]),})')


def wide(text):
    return text.encode("utf-16-le") + b"\0\0"


def mapping(capture, n, name):
    keys = ",".join(f'"{name}{at}":1' for at in range(n))
    capture.connection(0, ROUTER, (True, HELLO + packet(f'({{"zzz",5,"m",0,"n",0,([{keys},]),}})')))


def texts(capture, n, name):
    values = ",".join(f'"{name}{at}"' for at in range(n))
    capture.connection(0, ROUTER, (True, HELLO + packet(f'({{"zzz",5,"m",0,"n",0,({{{values},}}),}})')))


def tells(capture, n):
    for at in range(n):
        said = packet('({"tell",5,"m","alice","n","bob","Alice","hello",})')
        capture.connection(at, ROUTER, (True, HELLO + said * 4))


def channel(capture, n):
    for at in range(n):
        said = packet(f'({{"channel-m",5,"m","p{at}",0,0,"chat","P{at}","hello",}})')
        capture.connection(at, ROUTER, (True, HELLO + said * 4))


def names(capture, n):
    said = b"".join(packet(f'({{"tell",5,"m","commonbeginning{at:06}","n","v","name","commonbeginning",}})') for at in range(n))
    capture.connection(0, ROUTER, (True, HELLO + said))


def manifest(capture, n):
    entries = b""
    for at in range(n):
        entries += wide(f"a{at}") + wide("b") + wide("") + wide("") + bytes(18)
    body = struct.pack("<IIII", 7, 0, 7, n) + struct.pack("<I", len(entries) // 2 + 1) + entries + bytes(2)
    head = struct.pack("<BHIII", 16, 31, 918, 50, 1) + bytes(16) + struct.pack("<I", 12) + bytes(8)
    ask = struct.pack("<III", 536, 20, 7) + wide("External").ljust(520, b"\0") + bytes(4)
    capture.connection(0, MOUL, (True, head + ask), (False, struct.pack("<II", 8 + len(body), 20) + body))


def references(capture, n):
    refs = b"".join(struct.pack("<IIIB", 10_000 + at, 10_001 + at, 0, 0) for at in range(n))
    head = struct.pack("<BHIII", 10, 31, 918, 50, 1) + bytes(16) + struct.pack("<I", 20) + bytes(16)
    answer = struct.pack("<HIII", 29, 7, 0, n) + refs
    capture.connection(0, MOUL, (True, head + b"\0\2"), (False, b"\1\2"), (True, struct.pack("<HII", 31, 7, 5)), (False, answer))


def connections(capture, n):
    """Each with a mud and an identity of its own."""
    for at in range(n):
        hello = packet(f'({{"startup-req-3",5,"m{at}",0,"*r",0,"pw",0,0,1,2,3,"a","b","c",0,([]),([]),}})')
        said = packet(f'({{"tell",5,"m{at}","alice{at}","n","bob{at}","Alice{at}","hello",}})')
        capture.connection(at, ROUTER, (True, hello + said))


def types(capture, n):
    said = b"".join(packet(f'({{"type{at}' + "t" * 200 + '",5,"m","a","n","b",1,})') for at in range(n))
    capture.connection(0, ROUTER, (True, HELLO + said))


def circuits(capture, n):
    for at in range(n):
        ports = (10_000 + at, SIMULATOR)
        agent = struct.pack("<IIII", at + 1, 7, 7, 7)
        capture.datagram(True, ports, b"\x40\0\0\0\1\0\xff\xff\0\3" + struct.pack("<I", at) + agent * 2)
        name = b"Resident%d\0" % at
        chat = bytes([len(name)]) + name + agent * 2 + b"\1\1\1" + bytes(12) + b"\6\0hello\0"
        capture.datagram(False, ports, b"\0\0\0\0\2\0\xff\xff" + struct.pack(">H", 139) + chat)


def one_agent(capture, n):
    """All circuits are of one session."""
    for at in range(n):
        ports = (10_000 + at, SIMULATOR)
        capture.datagram(True, ports, b"\x40\0\0\0\1\0\xff\xff\0\3" + struct.pack("<I", at) + struct.pack("<IIII", 7, 7, 7, 7) * 2)


def other_sessions(capture, n):
    """One circuit on which the client states another session each time."""
    for at in range(n):
        code = b"\x40" + struct.pack(">I", at + 1) + b"\0\xff\xff\0\3"
        capture.datagram(True, (10_000, SIMULATOR), code + struct.pack("<IIIII", 7, at, 7, 7, 7) + bytes(15) + b"\1")


def one_account(capture, n):
    """All connections are of one account, and no message states a session."""
    head = struct.pack("<BHIII", 10, 31, 918, 50, 1) + bytes(16) + struct.pack("<I", 20) + bytes(16)
    login = struct.pack("<HII", 3, 1, 5) + struct.pack("<H", 4) + "anna".encode("utf-16-le") + bytes(20) + bytes(2) + struct.pack("<H", 3) + "win".encode("utf-16-le")
    for at in range(n):
        capture.connection(at, MOUL, (True, head + b"\0\2"), (False, b"\1\2"), (True, login))


def silence(capture, n):
    """Connections that stay open, and one on which a message comes each minute."""
    head = struct.pack("<BHIII", 16, 31, 918, 50, 1) + bytes(16) + struct.pack("<I", 12) + bytes(8)
    ping = struct.pack("<III", 12, 0, 7)
    for at in range(n + 1):
        capture.connection(at, MOUL, (True, head + ping))
    for at in range(n):
        capture.time += 61
        capture.frame(True, (10_000, MOUL), 1001 + len(head) + 12 * (at + 1), 5001, 0x18, ping)


def pings(capture, n):
    head = struct.pack("<BHIII", 16, 31, 918, 50, 1) + bytes(16) + struct.pack("<I", 12) + bytes(8)
    capture.connection(0, MOUL, (True, head + struct.pack("<III", 12, 0, 7) * n))


def web(capture, n):
    for at in range(n):
        map_ = "".join(f"<key>Cap{name}</key><string>http://10.0.0.2:{WEB}/cap/{at:06}{name:06}</string>" for name in range(8))
        bodies = [b"<llsd><array><string>Cap1</string></array></llsd>", f"<llsd><map>{map_}</map></llsd>".encode()]
        kind = b"Content-Type: application/llsd+xml\r\nContent-Length: %d\r\n\r\n%s"
        heads = [b"POST /seed%d HTTP/1.1\r\nHost: a\r\n" % at, b"HTTP/1.1 200 OK\r\n"]
        capture.connection(at, WEB, *((not side, heads[side] + kind % (len(body), body)) for side, body in enumerate(bodies)))


def made(kind, n, path, name="a"):
    capture = Capture()
    kind(capture, n, *([name] if kind in (mapping, texts) else []))
    capture.write(path)
    return path


# What is made, how many things at least, and the commands that read it.
KINDS = {
    "keys": (mapping, 4000, ["diff {a} {b}", "stats {a}", "--json {a}"]),
    "texts": (texts, 4000, ["diff {a} {b}"]),
    "tells": (tells, 400, ["export chat {a}", "sessions {a}", "report {a} -o {out}", "diff {a} {a}"]),
    "channel": (channel, 400, ["export chat {a}", "sessions {a}", "report {a} -o {out}"]),
    "names": (names, 1000, ["--json --pseudonyms {key} {a}"]),
    "connections": (connections, 400, ["stats {a}", "sessions --story {a}", "diagnose {a}", "report {a} -o {out}", "diff {a} {a}",
                                       "export messages {a} -o {out}", "--json --pseudonyms {key} {a}"]),
    "types": (types, 1000, ["stats {a}", "diff {a} {a}", "report {a} -o {out}"]),
    "circuits": (circuits, 400, ["stats {a}", "sessions {a}", "export chat {a}", "diff {a} {a}", "--csv {a}", "--json --pseudonyms {key} {a}"]),
    "one agent": (one_agent, 400, ["sessions {a}", "report {a} -o {out}"]),
    "other sessions": (other_sessions, 1000, ["sessions {a}", "report {a} -o {out}", "diff {a} {a}"]),
    "one account": (one_account, 400, ["sessions {a}", "report {a} -o {out}"]),
    "silence": (silence, 400, ["sessions {a}", "report {a} -o {out}"]),
    "pings": (pings, 2000, ["stats {a}", "diff {a} {a}", "report {a} -o {out}", "--oneline {a}", "encode {json} -o {out}"]),
    "web": (web, 200, ["stats {a}", "diff {a} {a}", "--json --pseudonyms {key} {a}", "report {a} -o {out}"]),
    "manifest": (manifest, 1000, ["export files {a} -o {out}", "stats {a}"]),
    "references": (references, 2000, ["export vault {a} -o {out}", "report {a} -o {out}"]),
}


def instructions(command):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command], capture_output=True, text=True)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    # diff says with 4 that something differs.
    if not counted or done.returncode not in (0, 4):
        raise SystemExit(f"{' '.join(command)}: {done.stderr[-500:]}")
    return int(counted[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="moulsniff, a release build")
    parser.add_argument("--only", help="kinds, with commas between them")
    parser.add_argument("--scale", type=float, default=1, help="how many times as many things")
    args = parser.parse_args()
    wanted = args.only.split(",") if args.only else list(KINDS)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "key").write_text("moulsniff pseudonyms 1\n" + hashlib.sha256(b"growth").hexdigest()[:32] + "\n")
        empty = made(tells, 0, folder / "empty.pcap")
        start = instructions([args.program, "stats", str(empty)])
        print("| capture | command | n | 2n | 4n | times as many |\n| --- | --- | --- | --- | --- | --- |")
        for name in wanted:
            kind, least, commands = KINDS[name]
            n = max(int(least * args.scale), 1)
            captures = [[made(kind, n * of, folder / f"{name}{of}{own}.pcap", own) for own in "ab"] for of in (1, 2, 4)]
            if any("{json}" in command for command in commands):
                for a, _ in captures:
                    with a.with_suffix(".json").open("wb") as out:
                        subprocess.run([args.program, "-q", "--no-config", "--json", a], stdout=out, check=True)
            for command in commands:
                costs = []
                for at, (a, b) in enumerate(captures):
                    places = {"a": a, "b": b, "key": folder / "key", "json": a.with_suffix(".json"), "out": folder / f"{name}{at}{len(costs)}{command.split()[1][:5].strip('{}')}.json"}
                    costs.append(instructions([args.program, "-q", "--no-config", *(word.format(**places) for word in command.split())]) - start)
                times = [after / max(before, 1) for before, after in zip(costs, costs[1:])]
                over = max(times) > LIMIT
                bad += over
                million = " | ".join(f"{cost / 1e6:,.0f} M" for cost in costs)
                print(f"| {name} {n} | `{command}` | {million} | {times[0]:.1f}, {times[1]:.1f}{', too many' if over else ''} |", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
