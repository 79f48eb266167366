#!/usr/bin/env python3
"""Second Life: datagrams a CPU second, moulsniff against Hippolyzer, on the same capture in the same run.

usage: secondlife.py MOULSNIFF CAPTURE [COPIES]

MOULSNIFF is a release build, CAPTURE a pcap or pcapng (gzip too) of circuits alone. Python has to find Hippolyzer
(`pip install hippolyzer`). Both decode every field of every message, what stands inside fields as well. Hippolyzer does so from datagrams
that were read beforehand, once leaving it at that and once writing JSON to nowhere; moulsniff from a file, in which it finds IP, UDP
and the circuits by itself, always writing JSON to nowhere. It is given COPIES copies of the capture (20), one behind the other as
several files, so that its start counts for little; its CPU time is that of all its threads. Prints the rates and their ratios.
"""
import enum
import gzip
import json
import os
import resource
import struct
import subprocess
import sys
import time


def payloads(data: bytes) -> list[bytes]:
    """UDP payloads of a capture over Ethernet or raw IPv4."""
    frames = pcapng(data) if data[:4] == b"\x0a\x0d\x0d\x0a" else pcap(data)
    found = []
    for link, frame in frames:
        ip = frame[{1: 14, 0: 4, 276: 20, 113: 16}.get(link, 0):]
        if len(ip) >= 28 and ip[0] >> 4 == 4 and ip[9] == 17:
            head = (ip[0] & 15) * 4
            length = struct.unpack_from(">H", ip, head + 4)[0]
            found.append(bytes(ip[head + 8:head + length]))
    return found


def pcap(data: bytes):
    order = "<" if data[0] in (0xD4, 0x4D) else ">"
    link, at = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF, 24
    while at + 16 <= len(data):
        kept = struct.unpack_from(order + "I", data, at + 8)[0]
        yield link, data[at + 16:at + 16 + kept]
        at += 16 + kept


def pcapng(data: bytes):
    order, links, at = "<", [], 0
    while at + 12 <= len(data):
        kind = data[at:at + 4]
        if kind == b"\x0a\x0d\x0d\x0a":
            order, links = ("<" if data[at + 8] == 0x4D else ">"), []
        kind, length = struct.unpack_from(order + "II", data, at)
        if kind == 1:
            links.append(struct.unpack_from(order + "H", data, at + 8)[0])
        elif kind == 6:
            interface, _, _, kept = struct.unpack_from(order + "IIII", data, at + 8)
            yield links[interface], data[at + 28:at + 28 + kept]
        at += length


def plain(value):
    """What JSON cannot say by itself."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, dict):
        return {str(k): v for k, v in value.items()}
    if hasattr(value, "unwrap"):
        value = value.unwrap()
    return getattr(value, "__dict__", None) or str(value)


def with_text_keys(value):
    if isinstance(value, dict):
        return {str(k): with_text_keys(v) for k, v in value.items()}
    return [with_text_keys(v) for v in value] if isinstance(value, (list, tuple)) else value


def hippolyzer(datagrams: list[bytes], write: bool) -> tuple[int, float]:
    """How many datagrams were read, and in how much CPU time."""
    import logging
    from hippolyzer.lib.base import serialization as se
    import hippolyzer.lib.base.templates  # noqa: F401 (registers what it knows of fields)
    from hippolyzer.lib.base.message.udpdeserializer import UDPMessageDeserializer
    from hippolyzer.lib.base.settings import Settings

    logging.disable(logging.CRITICAL)
    settings = Settings()
    settings.ENABLE_DEFERRED_PACKET_PARSING = False
    reader = UDPMessageDeserializer(settings=settings)
    read, begin = 0, time.process_time()
    for datagram in datagrams:
        try:
            message = reader.deserialize(datagram)
        except Exception:  # its word for what it cannot read
            continue
        out = {"message": message.name, "sequence": message.packet_id, "flags": int(message.send_flags), "acks": message.acks}
        for name, blocks in message.blocks.items():
            out[name] = [fields(se, message.name, block) for block in blocks]
        if write:
            json.dumps(with_text_keys(out), default=plain)
        read += 1
    return read, time.process_time() - begin


def fields(se, message: str, block) -> dict:
    out = {}
    for name, value in block.items():
        serializer = se.SUBFIELD_SERIALIZERS.get((message, block.name, name))
        if serializer is not None:
            try:
                opened = serializer.deserialize(block, value, pod=True)
                value = value if opened is se.UNSERIALIZABLE else opened
            except Exception:  # its bytes are no such structure
                pass
        out[name] = value
    return out


def moulsniff(program: str, capture: str, copies: int) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, *[capture] * copies, "--json", "--quiet"], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    program, capture, copies = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else 20
    data = open(capture, "rb").read()
    datagrams = payloads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    theirs = []
    for what, write in (("fields alone", False), ("with JSON", True)):
        read, seconds = hippolyzer(datagrams, write)
        theirs.append(read / seconds)
        print(f"Hippolyzer, {what}: {read} of {len(datagrams)} datagrams, {seconds:.2f} CPU s: {theirs[-1]:,.0f} a second")
    seconds = moulsniff(program, capture, copies)
    ours = copies * len(datagrams) / seconds
    print(f"moulsniff, with JSON: {copies} × {len(datagrams)} datagrams, {seconds:.2f} CPU s: {ours:,.0f} a second")
    print(f"ratio: {ours / theirs[0]:.1f} to fields alone, {ours / theirs[1]:.1f} to JSON ({os.path.basename(capture)})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
