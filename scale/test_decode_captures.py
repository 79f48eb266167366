#!/usr/bin/env python3
"""Tests decode_captures.py: many processes give what one process gives, whatever is killed on the way.

    MOULSNIFF=target/release/moulsniff python3 scale/test_decode_captures.py

Needs PySpark and a Java runtime. Twelve rotated captures are made from two of this project's samples: six clients at
addresses of their own, whose connections cross files; one file is cut in its middle.
"""

import collections
import gzip
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = str(Path(os.environ.get("MOULSNIFF", ROOT / "target/release/moulsniff")).resolve())
KEYS = str(ROOT / "keys/dirtsand.ini")
SHARDS = 4
HOUR = 3600
# What differs between one process and many: numbers that count within a process, and what is known from other hosts' traffic (`names`, and
# `info`, which uses them).
OWN_NUMBERS = ("record", "stream", "reply_to", "request", "session", "names", "info")


def packets(path):
    """The packets of a pcap of Ethernet frames, little-endian, in microseconds: seconds, fraction, bytes."""
    data = path.read_bytes()
    at = 24
    while at < len(data):
        seconds, fraction, length, _ = struct.unpack_from("<IIII", data, at)
        yield seconds, fraction, data[at + 16 : at + 16 + length]
        at += 16 + length


def with_hosts(frame, client):
    """An Ethernet frame with an IPv4 TCP segment between other hosts: the client gets the address `client`, the server 10.1.0.1."""
    frame = bytearray(frame)
    ip = 14
    header = (frame[ip] & 15) * 4
    tcp = ip + header
    source, _ = struct.unpack_from(">HH", frame, tcp)
    ends = [bytes([10, 1, 0, 1]), client] if source == 14617 else [client, bytes([10, 1, 0, 1])]
    frame[ip + 12 : ip + 20] = b"".join(ends)
    frame[ip + 10 : ip + 12] = b"\0\0"
    frame[ip + 10 : ip + 12] = checksum(frame[ip:tcp])
    (total,) = struct.unpack_from(">H", frame, ip + 2)
    segment = frame[tcp : ip + total]
    segment[16:18] = b"\0\0"
    frame[tcp + 16 : tcp + 18] = checksum(b"".join(ends) + struct.pack(">HH", 6, len(segment)) + segment)
    return bytes(frame)


def checksum(data):
    """The internet checksum (RFC 1071)."""
    data = bytes(data) + b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)


def rotated(folder):
    """Writes the twelve captures. The seventh is cut in its middle."""
    frames = []
    for client in range(6):
        address = bytes([10, 0, client, 7])
        sample = ROOT / "captures/moul" / ("kind_game.pcap" if client % 2 else "kind_gate.pcap")
        for seconds, fraction, frame in packets(sample):
            # Six clients, each two hours after the one before, so that there are two days; two of them at the same time.
            frames.append((seconds + client // 2 * 7 * HOUR, fraction, with_hosts(frame, address)))
    frames.sort(key=lambda frame: frame[:2])
    size = len(frames) // 12 + 1
    paths = []
    for number in range(12):
        body = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
        for seconds, fraction, frame in frames[number * size : (number + 1) * size]:
            body += struct.pack("<IIII", seconds, fraction, len(frame), len(frame)) + frame
        path = folder / f"shard.pcap.{number:02}.gz"
        path.write_bytes(gzip.compress(body[: len(body) // 2] if number == 6 else body))
        paths.append(str(path))
    return paths


def content(record):
    """What a record says, without the numbers that count within one process."""
    kept = {key: value for key, value in record.items() if key not in OWN_NUMBERS and value is not None}
    return json.dumps(kept, sort_keys=True)


def read_at_once(captures):
    """The records of one process over all captures, counted by content."""
    words = [PROGRAM, *captures, "--keys", KEYS, "--json", "--quiet", "--no-config"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1, (done.returncode, done.stderr)
    return collections.Counter(content(json.loads(line)) for line in done.stdout.splitlines())


def start(folder, captures, master):
    words = [sys.executable, str(ROOT / "scale/decode_captures.py"), "--master", master, "--moulsniff", PROGRAM]
    words += ["--shards", str(SHARDS), "--batch", "2", "--keys", KEYS]
    words += ["--output", str(folder / "records"), "--work", str(folder / "work"), *captures]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(condition, process):
    """Waits until something is so, or the process has ended."""
    while process.poll() is None and not condition():
        time.sleep(0.05)


class DecodeCaptures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.captures = rotated(Path(cls.folder.name))
        cls.expected = read_at_once(cls.captures)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def rows(self, folder):
        """The rows of all Parquet files, counted by content as records."""
        # Fields and problems are text in the rows; as JSON they compare with the records.
        script = (
            "import json,sys\n"
            "from pyspark.sql import SparkSession\n"
            "s=SparkSession.builder.master('local[1]').config('spark.sql.session.timeZone','UTC').getOrCreate()\n"
            "rows=s.read.parquet(sys.argv[1])\n"
            "assert rows.schema['time'].dataType.simpleString()=='timestamp'\n"
            "rows=rows.withColumn('time',rows.time.cast('string'))\n"
            "for row in rows.drop('day').toJSON().toLocalIterator(): print(row)\n"
        )
        words = [sys.executable, "-c", script, str(folder / "records")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def compare(self, folder):
        expected = collections.Counter()
        for text, count in self.expected.items():
            record = json.loads(text)
            # Times are compared as moments: Spark prints them in its own way.
            record["time"] = record["time"].replace("T", " ").replace("Z", "").rstrip("0")
            expected[content(record)] += count
        found = collections.Counter()
        for row in self.rows(folder):
            row.pop("shard")
            for key in ("fields", "problems", "sent_again", "acknowledges", "bytes", "refused"):
                if key in row:
                    row[key] = as_json(row[key])
            row["time"] = row["time"].rstrip("0")
            found[content(row)] += 1
        self.assertEqual(sum(found.values()), sum(expected.values()))
        self.assertEqual([(found - expected).most_common(2), (expected - found).most_common(2)], [[], []])

    def report(self, folder):
        return json.loads((folder / "work/report.json").read_text())

    def test_the_driver_is_killed_and_started_again_and_a_capture_is_cut(self):
        folder = Path(self.folder.name) / "killed-driver"
        process = start(folder, self.captures, "local[2]")
        wait_for(lambda: len(list(folder.glob("work/decoded/*.json"))) >= 2, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        done = sorted(folder.glob("work/decoded/*.json"))
        times = [path.stat().st_mtime_ns for path in done]
        process = start(folder, self.captures, "local[2]")
        _, said = process.communicate(timeout=600)
        self.assertEqual(process.returncode, 1, said[-2000:])
        self.assertIn("shard.pcap.06.gz", said)
        self.assertNotIn("DH_K", said)
        self.assertEqual([Path(one["capture"]).name for one in self.report(folder)["captures"]], ["shard.pcap.06.gz"])
        self.assertEqual(self.report(folder)["shards"], [])
        self.assertEqual([path.stat().st_mtime_ns for path in done], times, "a finished shard was decoded again")
        self.compare(folder)


def as_json(text):
    """A column that is JSON or plain text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    unittest.main()
