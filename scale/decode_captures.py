#!/usr/bin/env python3
"""Decodes an archive of captures with many moulsniff processes under Apache Spark, and writes the records as Parquet.

    spark-submit scale/decode_captures.py --output records --work work --keys shard.keys rotated/*.pcapng.gz

Two steps, because a connection may cross rotated files:

1. split: each capture is divided by `moulsniff split` into the same number of shards. A shard holds all frames between some
   pairs of hosts.
2. decode: each shard is read over all captures, in the order in which they were named, by one `moulsniff --json`. Its
   records become rows with the types that `moulsniff schema --sql spark` prints, partitioned by day, protocol, service
   and shard.

What is done is not done again: a finished split is a folder under WORK/split, a finished shard a file under
WORK/decoded. A run that was interrupted is started again with the same words. A shard's rows replace what an earlier,
unfinished attempt at that shard wrote, so no row is lost and none is there twice.

WORK, the captures, the key files and the program have the same path on every machine (NFS, or a mounted bucket). Keys
are passed by file name and appear in no log. The exit status is 0 when everything was read, 1 when a capture or a shard
was not: WORK/report.json names each of them with the program's own words, and the rest is there.

It knows files, processes and rows; what the bytes mean is moulsniff's business.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

from pyspark.sql import SparkSession, functions

# The most parts that `moulsniff split` writes.
MOST_SHARDS = 256


def main() -> int:
    args = arguments()
    work, output = Path(args.work).resolve(), Path(args.output).resolve()
    captures = [str(Path(capture).resolve()) for capture in args.captures]
    job = Job(args.moulsniff, work, [str(Path(key).resolve()) for key in args.keys], args.shards, args.servers)
    spark = session(args)
    splits = split_all(spark, job, captures)
    failures = decode_all(spark, job, captures, output, args.batch or default_batch(spark))
    spark.stop()
    return report(job, splits, failures)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("captures", nargs="+", metavar="CAPTURE", help="rotated captures, oldest first")
    parser.add_argument("--output", required=True, help="folder of the Parquet files")
    parser.add_argument("--work", required=True, help="folder of what is done so far, on storage that all machines share")
    parser.add_argument("--keys", action="append", default=[], metavar="FILE", help="a key file; may be repeated")
    parser.add_argument("--shards", type=int, default=16, help="shards of the archive, 256 at most (default 16)")
    parser.add_argument("--servers", action="append", default=[], metavar="NET", help="as moulsniff split --servers")
    parser.add_argument("--moulsniff", default="moulsniff", metavar="PROGRAM", help="the program (default moulsniff)")
    parser.add_argument("--master", help="Spark's master, where spark-submit does not say it")
    parser.add_argument("--batch", type=int, help="shards decoded in one Spark job (default: two a core)")
    args = parser.parse_args()
    if not 1 <= args.shards <= MOST_SHARDS:
        parser.error(f"--shards: 1 to {MOST_SHARDS}, as for moulsniff split")
    return args


def session(args: argparse.Namespace) -> SparkSession:
    builder = SparkSession.builder.appName("moulsniff").config("spark.sql.session.timeZone", "UTC")
    # A shard that is written again replaces its own partitions and no others.
    builder = builder.config("spark.sql.sources.partitionOverwriteMode", "dynamic")
    if args.master:
        builder = builder.master(args.master)
    return builder.getOrCreate()


def default_batch(spark: SparkSession) -> int:
    return 2 * spark.sparkContext.defaultParallelism


class Job:
    """What every task needs to know. It is sent to the workers, so it holds names and no content."""

    def __init__(self, program: str, work: Path, keys: list, shards: int, servers: list) -> None:
        self.program, self.work, self.keys, self.shards, self.servers = program, work, keys, shards, servers
        for folder in ("split", "decoded"):
            (work / folder).mkdir(parents=True, exist_ok=True)

    def split_folder(self, capture: str) -> Path:
        """The folder of a capture's shards: another one when the capture, the number of shards or the servers change."""
        stat = os.stat(capture)
        words = [capture, stat.st_size, stat.st_mtime_ns, self.shards, self.servers]
        name = hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]
        return self.work / "split" / f"{Path(capture).name}-{name}"

    def shard_files(self, captures: list, shard: int) -> list:
        """A shard's part of every capture that could be split, in the captures' order."""
        width = max(2, len(str(self.shards - 1)))
        parts = [folder / f"part-{shard:0{width}}.pcapng" for folder in map(self.split_folder, existing(captures))]
        return [str(part) for part in parts if part.exists()]

    def decoded_marker(self, captures: list, shard: int) -> Path:
        """The file that says that a shard of these captures was decoded and its rows are in place."""
        folders = [str(self.split_folder(capture)) for capture in existing(captures)]
        name = hashlib.sha256(json.dumps([folders, self.keys]).encode()).hexdigest()[:16]
        return self.work / "decoded" / f"shard-{shard:05}-{name}.json"


def existing(captures: list) -> list:
    return [capture for capture in captures if os.path.exists(capture)]


def split_all(spark: SparkSession, job: Job, captures: list) -> list:
    """Splits each capture that was not split yet, each in a task of its own. Returns one result a capture."""
    tasks = spark.sparkContext.parallelize(captures, len(captures))
    return tasks.map(lambda capture: split(job, capture)).collect()


def split(job: Job, capture: str) -> dict:
    """Splits one capture. The folder gets its name when all of it is written, so a task that dies leaves nothing behind that counts."""
    if not os.path.exists(capture):
        return {"capture": capture, "status": 1, "said": "no such file"}
    folder = job.split_folder(capture)
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}.tmp")
        servers = [word for net in job.servers for word in ("--servers", net)]
        words = [job.program, "split", capture, "--into", str(job.shards), "-o", str(unfinished), "--quiet", *servers]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode < 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise RuntimeError(f"{capture}: moulsniff split was ended by signal {-done.returncode}")
        unfinished.mkdir(exist_ok=True)
        result = {"capture": capture, "status": done.returncode, "said": done.stderr.strip()}
        (unfinished / "result.json").write_text(json.dumps(result))
        try:
            unfinished.rename(folder)
        except OSError:
            # A second attempt at the same task was faster. Its parts are the same.
            shutil.rmtree(unfinished, ignore_errors=True)
    return json.loads((folder / "result.json").read_text())


def decode_all(spark: SparkSession, job: Job, captures: list, output: Path, batch: int) -> list:
    """Decodes the shards that are not done yet, some in each Spark job. Returns what went wrong, one entry a shard."""
    waiting = [shard for shard in range(job.shards) if not job.decoded_marker(captures, shard).exists()]
    failures = []
    for start in range(0, len(waiting), batch):
        shards = waiting[start : start + batch]
        try:
            decode(spark, job, captures, shards, output)
        except Exception as error:  # Spark gives up on a job for many reasons. The batch's other shards must not be lost for it.
            if len(shards) == 1:
                failures.append({"shard": shards[0], "status": -1, "said": first_line(error)})
                continue
            for shard in shards:
                try:
                    decode(spark, job, captures, [shard], output)
                except Exception as alone:
                    failures.append({"shard": shard, "status": -1, "said": first_line(alone)})
    for shard in range(job.shards):
        marker = job.decoded_marker(captures, shard)
        result = json.loads(marker.read_text()) if marker.exists() else {"status": 0}
        if result["status"] != 0:
            failures.append({"shard": shard, **result})
    return failures


def first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def decode(spark: SparkSession, job: Job, captures: list, shards: list, output: Path) -> None:
    """Decodes some shards in one Spark job and writes their rows. Afterwards each has its marker."""
    columns = column_definitions(job.program)
    attempts = {shard: str(job.decoded_marker(captures, shard)) + ".attempt" for shard in shards}
    tasks = spark.sparkContext.parallelize([(shard, job.shard_files(captures, shard)) for shard in shards], len(shards))
    lines = tasks.flatMap(lambda task: records(job, task[0], task[1], attempts[task[0]]))
    rows = spark.read.schema("shard INT, " + columns).option("mode", "FAILFAST").json(lines)
    rows = rows.withColumn("day", functions.to_date("time"))
    rows.write.mode("overwrite").partitionBy("day", "protocol", "service", "shard").parquet(str(output))
    for shard, attempt in attempts.items():
        os.replace(attempt, job.decoded_marker(captures, shard))


def column_definitions(program: str) -> str:
    """The columns of a record, as `moulsniff schema --sql spark` defines them between the outer brackets."""
    definition = subprocess.run([program, "schema", "--sql", "spark", "--no-config"], capture_output=True, text=True, check=True).stdout
    return definition[definition.index("(\n") + 1 : definition.rindex(")")]


def records(job: Job, shard: int, files: list, attempt: str):
    """The records of one shard, as lines of JSON with the shard's number in front. Nothing of the shard is held in memory."""
    said = ""
    status = 0
    if files:
        keys = [word for key in job.keys for word in ("--keys", key)]
        words = [job.program, *files, *keys, "--json", "--quiet", "--no-config"]
        errors = Path(f"{attempt}.{uuid.uuid4().hex}.stderr")
        with errors.open("w+") as stderr, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=stderr, text=True) as process:
            for line in process.stdout:
                yield f'{{"shard":{shard},{line[1:]}'
            status = process.wait()
            stderr.seek(0)
            said = stderr.read(4096).strip()
        errors.unlink()
        if status < 0:
            raise RuntimeError(f"shard {shard}: moulsniff was ended by signal {-status}: {said}")
    unfinished = Path(f"{attempt}.{uuid.uuid4().hex}.tmp")
    unfinished.write_text(json.dumps({"status": status, "said": said}))
    unfinished.rename(attempt)


def report(job: Job, splits: list, failures: list) -> int:
    """Writes WORK/report.json and says on standard error what was not read."""
    damaged = [result for result in splits if result["status"] != 0]
    text = json.dumps({"captures": damaged, "shards": failures}, indent=1)
    unfinished = job.work / f"report.{uuid.uuid4().hex}.tmp"
    unfinished.write_text(text)
    unfinished.rename(job.work / "report.json")
    for result in damaged:
        print(f"{result['capture']}: status {result['status']}: {result['said']}", file=sys.stderr)
    for result in failures:
        print(f"shard {result['shard']}: status {result['status']}: {result['said']}", file=sys.stderr)
    return 1 if damaged or failures else 0


if __name__ == "__main__":
    sys.exit(main())
