#!/usr/bin/env python3
"""How fast moulsniff is, and how much memory it takes, beside every other program that is installed, on the same captures in the same run.

    compare.py MOULSNIFF CAPTURE --keys FILE --copies 20
    compare.py MOULSNIFF CAPTURE --keys FILE --growth --memory --keys-rate --no-peers

MOULSNIFF is a release build, CAPTURE a small classic pcap. It is made large (COPIES copies, each with clients of its own), and read by each
program in turn, output to nowhere. CPU time is that of the process with all its threads, user and system, as the system counts it; so is the
peak of its memory (where that is less than Python takes: as it was seen every 10 ms). Each line is the median of --repeat runs; a program whose first run took more than --slow CPU seconds runs once. MB
are millions of bytes of capture file. The tables come out as Markdown.

The peers: tshark (packet list; the same with a Lua dissector that adds one line a segment; JSON), tcpflow (streams to files), capinfos
(reads packets and looks into none), jq (fed with our JSON). What is not installed is said and left out.
"""
import argparse
import datetime
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from large import Small, handshakes, key_file, names, variety

LUA = """local p = Proto("trivial", "Trivial")
function p.dissector(buffer, info, tree) tree:add(p, buffer()):append_text(", " .. buffer:len()) end
DissectorTable.get("tcp.port"):add(14617, p)
"""


class Cost:
    """What runs of a program took: the medians of CPU and wall time, the largest peak of memory."""

    def __init__(self, runs):
        self.runs = len(runs)
        self.cpu, self.wall = (sorted(run[i] for run in runs)[len(runs) // 2] for i in (0, 1))
        self.peak = max(run[2] for run in runs)


def once(command, feed=None):
    """CPU seconds, wall seconds, KiB. `feed` is a command whose output the first one reads; its own cost does not count."""
    begin = time.monotonic()
    feeder = subprocess.Popen(feed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) if feed else None
    source = feeder.stdout if feeder else subprocess.DEVNULL
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL, stderr=said)
        if feeder:
            feeder.stdout.close()
        seen = 0
        while True:
            ended, status, usage = os.wait4(child.pid, os.WNOHANG)
            if ended:
                break
            seen = max(seen, high_water(child.pid))
            time.sleep(0.01)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - begin
        if feeder:
            feeder.wait()
        if child.returncode != 0:
            said.seek(0)
            text = said.read().decode(errors="replace").strip()
            raise SystemExit(f"{' '.join(command)}: status {child.returncode}: {text[-500:]}")
    # What Python itself held when it started the program counts for it: below that, what was seen while it ran is nearer.
    exact = usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss if exact or not seen else seen


def high_water(pid: int) -> int:
    """The most memory a running process has held so far, in KiB; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/status") as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
    except OSError:
        return 0


def measure(options, command, feed=None, after=None) -> Cost:
    runs = []
    for _ in range(options.repeat):
        runs.append(once(command, feed))
        if after:
            after()
        if runs[0][0] > options.slow:
            break
    return Cost(runs)


class Sniffer:
    """The program, and the ways in which it is run."""

    def __init__(self, options):
        self.program = os.path.abspath(options.moulsniff)
        said = subprocess.run([self.program, "--help"], capture_output=True, text=True, check=True).stdout
        self.threads = "--threads" in said

    def command(self, way: str, capture: str, keys, threads=None):
        ways = {"stats": ["stats"], "--json": ["--json"], "trees": []}
        command = [self.program, *ways[way], capture, "--quiet"]
        for key in keys:
            command += ["--keys", key]
        return command + (["--threads", str(threads)] if threads and self.threads else [])

    def messages(self, capture: str, keys) -> int:
        """How many messages a capture has: what the program itself counts."""
        command = self.command("stats", capture, keys) + ["--json"]
        said = subprocess.run(command, capture_output=True, check=True).stdout
        return sum(json.loads(said)["messages"].values())


def table(head, rows) -> None:
    print("| " + " | ".join(head) + " |")
    print("| --- |" + " ---: |" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
    print()


def rate(amount: float, cpu: float) -> str:
    return f"{amount / max(cpu, 0.001):,.0f}"


def mib(peak: int) -> str:
    return f"{peak / 1024:,.0f}"


def apart(work, *arguments) -> None:
    """Does something in a process of its own: what Python holds at most counts for every process it starts, so it must not grow here."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work(*arguments)
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit("the capture could not be made")


def make(options, copies: int, part: float = 1.0, together: bool = False) -> str:
    """A capture of so many copies."""
    to = os.path.join(options.folder, f"{copies}-{part:g}{'-together' if together else ''}.pcap")
    if not os.path.exists(to):
        apart(lambda: Small(options.capture, part).write(to, copies, together))
    return to


def streams_of(options, part: float) -> int:
    reading, writing = os.pipe()
    apart(lambda: os.write(writing, str(Small(options.capture, part).streams).encode()))
    os.close(writing)
    with os.fdopen(reading) as told:
        return int(told.read())


def compare(options, sniffer: Sniffer) -> None:
    """Every program on the same file."""
    capture = make(options, options.copies)
    size, count = os.path.getsize(capture) / 1e6, sniffer.messages(capture, options.keys)
    print(f"{os.path.basename(options.capture)}, {options.copies} copies: {size:,.0f} MB, {count:,} messages.\n")
    rows, missing = [], []
    for way in ("stats", "--json", "trees"):
        threads = [1, os.cpu_count() or 1] if sniffer.threads else [None]
        for n in dict.fromkeys(threads):
            cost = measure(options, sniffer.command(way, capture, options.keys, n))
            rows.append((f"moulsniff {way}" + (f", {n} thread{'s' * (n > 1)}" if n else ""), cost, count))
    if not sniffer.threads:
        missing.append("moulsniff --threads (this build has none)")
    if options.peers:
        peers(options, sniffer, capture, rows, missing)
    base = next((cost for name, cost, _ in rows if name == "tshark -T json"), None)
    ratio = lambda cost: f"{base.cpu / cost.cpu:,.1f}" if base else "–"
    head = ["program", "CPU s", "wall s", "MB a CPU s", "messages a CPU s", "peak MiB", "speed, tshark -T json = 1", "runs"]
    table(head, [
        [name, f"{c.cpu:.2f}", f"{c.wall:.2f}", rate(size, c.cpu), rate(n, c.cpu) if n else "–", mib(c.peak), ratio(c), str(c.runs)]
        for name, c, n in rows
    ])
    if missing:
        print("Not there: " + ", ".join(missing) + ".\n")


def peers(options, sniffer: Sniffer, capture: str, rows, missing) -> None:
    lua, flows = os.path.join(options.folder, "trivial.lua"), os.path.join(options.folder, "flows")
    with open(lua, "w") as out:
        out.write(LUA)
    again = lambda: shutil.rmtree(flows, ignore_errors=True)
    jsons = sniffer.command("--json", capture, options.keys)
    for name, command, feed, after in (
        ("tshark", ["tshark", "-n", "-r", capture], None, None),
        ("tshark, Lua", ["tshark", "-n", "-X", f"lua_script:{lua}", "-r", capture], None, None),
        ("tshark -T json", ["tshark", "-n", "-T", "json", "-r", capture], None, None),
        ("tcpflow", ["tcpflow", "-q", "-o", flows, "-r", capture], None, again),
        ("capinfos", ["capinfos", capture], None, None),
        ("jq on our JSON", ["jq", "-c", "."], jsons, None),
    ):
        if shutil.which(command[0]) is None:
            missing.append(name)
        else:
            rows.append((name, measure(options, command, feed, after), None))


def growth(options, sniffer: Sniffer) -> None:
    """CPU time a byte, at more bytes and at more streams."""
    ways, rows = ("stats", "--json", "trees"), []

    def row(name: str, capture: str) -> None:
        size, count = os.path.getsize(capture) / 1e6, sniffer.messages(capture, options.keys)
        costs = [measure(options, sniffer.command(way, capture, options.keys)) for way in ways]
        ns = [f"{c.cpu * 1e3 / size:.2f}" for c in costs]
        rows.append([name, f"{size:,.0f}", f"{count / size:,.0f}", *ns, mib(max(c.peak for c in costs))])

    copies = max(1, options.copies // 4)
    for times in (1, 4, 16):
        capture = make(options, copies * times)
        row(f"{times} × the size", capture)
        if copies * times != options.copies:
            os.remove(capture)
    for streams in (10, 100, 1000):
        part = 10 / streams
        capture = make(options, max(1, round(streams / max(1, streams_of(options, part)))), part, together=True)
        row(f"{streams} streams at once, {part:.0%} of each", capture)
        os.remove(capture)
    print("CPU nanoseconds a byte of capture, as it grows. Streams at once: the first part of each, so that the sizes stay alike.\n")
    table(["capture", "MB", "messages a MB", *ways, "peak MiB"], rows)


def memory(options, sniffer: Sniffer) -> None:
    """The peak of memory where it might grow."""
    ways, rows = ("stats", "--json", "trees"), []
    made, keys = os.path.join(options.folder, "made.pcap"), os.path.join(options.folder, "made.keys")
    key_file(keys)

    def row(name: str, capture: str, keys, bound: int) -> None:
        peaks = [once(sniffer.command(way, capture, keys))[2] for way in ways]
        held = "yes" if max(peaks) < bound * 1024 else "**no**"
        rows.append([name, f"{os.path.getsize(capture) / 1e6:,.0f}", *map(mib, peaks), str(bound), held])

    part = 0.004
    copies = -(-10_000 // max(1, streams_of(options, part)))
    row("10,000 open streams, copies of a beginning", make(options, copies, part, together=True), options.keys, 256)
    for name, work, bound in (
        ("10,000 open connections to a gatekeeper", lambda: handshakes(made, 10_000, close=False), 256),
        ("10,000 closed ones", lambda: handshakes(made, 10_000), 64),
        ("40,000 closed ones", lambda: handshakes(made, 40_000), 64),
        ("10,000 players' names and open requests", lambda: names(made, 10_000), 64),
        ("1,000,000 of them", lambda: names(made, 1_000_000), 64),
    ):
        apart(work)
        row(name, made, [keys], bound)
    row(f"{options.copies} copies", make(options, options.copies), options.keys, 64)
    long = make(options, options.copies * 4)
    row(f"{options.copies * 4} copies", long, options.keys, 64)
    os.remove(long)
    print("The peak of memory in MiB.\n")
    table(["capture", "MB", *ways, "bound", "held"], rows)


def keys_rate(options, sniffer: Sniffer) -> None:
    """Connections a second, each with a y that was never there before."""
    made, keys = os.path.join(options.folder, "made.pcap"), os.path.join(options.folder, "made.keys")
    key_file(keys)
    count, rows = 10_000, []
    apart(lambda: handshakes(made, count))
    size = os.path.getsize(made) / 1e6
    for name, given in (("with the key", [keys]), ("without one, nothing to derive", [])):
        cost = measure(options, sniffer.command("stats", made, given))
        rows.append([name, f"{cost.cpu:.2f}", rate(count, cost.cpu), f"{cost.cpu * 1e6 / count:.0f}", rate(size, cost.cpu)])
    print(f"{count:,} short connections (handshake, a ping and its reply, 5 messages), each with a fresh y, one private key of 512 bits.\n")
    table(["stats", "CPU s", "connections a CPU s", "µs a connection", "MB a CPU s"], rows)


def varied(options, sniffer: Sniffer) -> None:
    """A capture of many kinds of messages; the ways take turns, so that a machine that slows down slows all of them."""
    made, vectors = os.path.join(options.folder, "variety.pcap"), os.path.join(os.path.dirname(__file__), "../captures/moul/plasma_typical.jsonl.gz")
    count, ways = 200_000, ("stats", "--json", "trees")
    apart(variety, made, vectors, count, options.variety)
    commands = {way: sniffer.command(way, made, [], 1) for way in ways}
    runs = {way: [] for way in ways}
    for _ in range(options.repeat):
        for way in ways:
            runs[way].append(once(commands[way]))
    costs = {way: Cost(runs[way]) for way in ways}
    rows = []
    for way in ways:
        cost, counted = costs[way], instructions(commands[way], options.folder)
        each = f"{counted / count:,.0f}" if counted else "–"
        rows.append([way, f"{cost.cpu:.2f}", f"{cost.cpu / max(costs['stats'].cpu, 0.001):.2f}", rate(count, cost.cpu), each])
    print(f"{count:,} messages of many kinds, seed {options.variety}, one thread.\n")
    table(["way", "CPU s", "stats = 1", "messages a CPU s", "instructions a message"], rows)


def instructions(command, folder: str) -> int:
    """How many callgrind counts, start included; 0 where there is no valgrind."""
    if shutil.which("valgrind") is None:
        return 0
    counted = ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + os.path.join(folder, "callgrind.out"), *command]
    said = subprocess.run(counted, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr
    return int(next(line for line in said.splitlines() if "Collected" in line).split(":")[1])


def machine() -> str:
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    load = os.getloadavg()[0]
    busy = f", load {load:.1f} from elsewhere when it began" if load > 0.5 else ""
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}{busy}; {datetime.date.today().isoformat()}"


def versions(sniffer: Sniffer) -> str:
    found = []
    for command in ([sniffer.program, "--version"], ["tshark", "--version"], ["tcpflow", "--version"], ["jq", "--version"]):
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            found.append((done.stdout + done.stderr).strip().splitlines()[0].rstrip("."))
    return "; ".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("moulsniff", metavar="MOULSNIFF")
    parser.add_argument("capture", metavar="CAPTURE")
    parser.add_argument("--keys", metavar="FILE", action="append", default=[])
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each program (5)")
    parser.add_argument("--slow", type=float, default=20, help="CPU seconds from which on one run is enough (20)")
    parser.add_argument("--folder", help="where captures are made; they stay there")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="moulsniff alone")
    parser.add_argument("--growth", action="store_true", help="1, 4, 16 times a quarter of the copies; 10, 100, 1,000 streams")
    parser.add_argument("--memory", action="store_true", help="10,000 open streams, closed ones, names, a long capture")
    parser.add_argument("--variety", type=int, metavar="SEED", help="a capture of many kinds of messages, in an order that SEED decides")
    parser.add_argument("--keys-rate", action="store_true", help="deriving keys")
    options = parser.parse_args()
    sniffer = Sniffer(options)
    kept = options.folder
    options.folder = kept or tempfile.mkdtemp(prefix="compare-")
    os.makedirs(options.folder, exist_ok=True)
    try:
        print(f"{machine()}.\n{versions(sniffer)}.\n", flush=True)
        compare(options, sniffer)
        for wanted, work in ((options.growth, growth), (options.memory, memory), (options.keys_rate, keys_rate), (options.variety is not None, varied)):
            if wanted:
                work(options, sniffer)
    finally:
        if not kept:
            shutil.rmtree(options.folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
