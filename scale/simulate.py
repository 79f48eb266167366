#!/usr/bin/env python3
"""Computes how long the two steps of decode_captures.py take on many machines, from rates measured on one core.

    python3 scale/simulate.py --terabytes 1 --machines 8 --cores 8 --shards 256

Captures are split one by one, shards are decoded and written as Parquet one by one, each on one core, the next one on the core that
is free first. Shards are not equally large: their sizes follow a Zipf distribution with the exponent --skew, as clients do. All
machines read and write at --disk megabytes a second each, to storage that they share.
"""

import argparse
import heapq


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    numbers = {
        "terabytes": (1, "size of the archive"), "machines": (8, "how many"), "cores": (8, "of each machine"),
        "file": (1000, "size of a rotated capture in MB"), "shards": (256, "how many; `moulsniff split` writes no more than 256"), "skew": (0.5, "0: all shards are equally large"),
        "disk": (1000, "MB a second of each machine, reading and writing together"),
        "split": (1400, "MB of capture a core and second"), "decode": (57, "MB of capture a core and second"),
        "lines": (8.7, "MB of JSON for a MB of capture"), "write": (166, "MB of JSON a core and second to Parquet"),
    }
    for name, (default, text) in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"{text} (default {default})")
    args = parser.parse_args()
    size, cores = args.terabytes * 1e6, args.machines * args.cores
    files = [args.file] * max(1, round(size / args.file))
    weights = [1 / (place + 1) ** args.skew for place in range(args.shards)]
    shards = sorted((size * weight / sum(weights) for weight in weights), reverse=True)
    storage = args.disk * args.machines
    steps = {
        "split": (makespan([file / args.split for file in files], cores), 2 * size / storage),
        "decode": (makespan([s / args.decode + s * args.lines / args.write for s in shards], cores), size / storage),
    }
    for name, (computing, moving) in steps.items():
        bound = "cores" if computing > moving else "storage"
        print(f"{name:7}{max(computing, moving):9.0f} s   cores {computing:.0f} s, storage {moving:.0f} s: {bound}")
    largest = shards[0] / args.decode + shards[0] * args.lines / args.write
    print(f"the largest shard alone takes {largest:.0f} s")


def makespan(tasks: list, cores: int) -> float:
    """The time until all tasks are done, each on the core that is free first."""
    free = [0.0] * cores
    for task in tasks:
        heapq.heappush(free, heapq.heappop(free) + task)
    return max(free)


if __name__ == "__main__":
    main()
