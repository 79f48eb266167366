#!/usr/bin/env python3
"""Tests that data frames load what the program writes, without being told types: the JSON of every capture of the project in DuckDB, Parquet
that DuckDB makes of it (one file for records, one for a message) in polars, and CSV of columns in polars and pandas.

    MOULSNIFF=target/release/moulsniff python3 scale/test_tables.py

DuckDB, polars and pandas (with pyarrow) are packages of PyPI; where one is missing, its tests are left out with a word.
"""

import io
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = str(Path(os.environ.get("MOULSNIFF", ROOT / "target/release/moulsniff")).resolve())
CAPTURES = sorted(path for path in (ROOT / "captures").glob("*/*") if ".pcap" in path.name and ".json" not in path.name)
COLUMNS = "record,time,stream,service,message,elapsed_ms,*.result"


# DuckDB finds types up to this depth; one capture has a value that is nested deeper.
DUCKDB_DEPTH = 120


def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0)


def module(name):
    try:
        return __import__(name)
    except ImportError:
        return None


duckdb, polars, pandas = map(module, ("duckdb", "polars", "pandas"))


def moulsniff(*words):
    done = subprocess.run([PROGRAM, "--no-config", "-q", *words, "--keys", "keys"], cwd=ROOT, capture_output=True, check=True)
    return done.stdout.decode()


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def lines(self, capture, *more, deepest=1000):
        """The records, but those that are nested deeper, in a file, and how many."""
        path = self.folder / "records.ndjson"
        lines = [line for line in moulsniff(str(capture), "--json", *more).splitlines() if depth(json.loads(line)) <= deepest]
        path.write_text("".join(line + "\n" for line in lines))
        return path, len(lines)

    @unittest.skipUnless(duckdb, "DuckDB is not installed")
    def test_duckdb_finds_the_types_of_every_capture(self):
        for capture in CAPTURES:
            with self.subTest(capture.name):
                path, count = self.lines(capture, deepest=DUCKDB_DEPTH)
                if count:
                    self.assertEqual(len(duckdb.sql(f"SELECT * FROM read_json('{path}')").fetchall()), count)

    @unittest.skipUnless(duckdb and polars, "DuckDB or polars is not installed")
    def test_parquet_of_all_records_is_the_same_in_polars(self):
        schema = subprocess.run([PROGRAM, "--no-config", "schema", "--sql", "duckdb"], capture_output=True, text=True, check=True).stdout
        for capture in CAPTURES:
            with self.subTest(capture.name):
                path, count = self.lines(capture)
                base, parquet = duckdb.connect(), self.folder / "records.parquet"
                base.execute(schema)
                base.execute(f"COPY records FROM '{path}' (FORMAT json)")
                base.execute(f"COPY records TO '{parquet}' (FORMAT parquet, COMPRESSION zstd)")
                frame = polars.read_parquet(parquet)
                self.assertEqual(frame.height, count)
                numbers = [json.loads(line)["record"] for line in path.read_text().splitlines()]
                self.assertEqual(sorted(frame["record"].to_list()), sorted(numbers))

    @unittest.skipUnless(duckdb and polars, "DuckDB or polars is not installed")
    def test_parquet_of_one_message_has_its_fields_as_columns(self):
        path, count = self.lines("captures/moul/full_dirtsand.pcapng", "-Y", "message == Auth2Cli_VaultNodeFetched")
        parquet = self.folder / "message.parquet"
        duckdb.sql(f"COPY (SELECT * FROM read_json('{path}', sample_size = -1)) TO '{parquet}' (FORMAT parquet)")
        frame = polars.read_parquet(parquet)
        ids = [json.loads(line)["fields"]["trans_id"] for line in path.read_text().splitlines()]
        self.assertEqual(frame["fields"].struct.field("trans_id").to_list(), ids)
        self.assertEqual(frame.height, count)

    @unittest.skipUnless(polars and pandas, "polars or pandas is not installed")
    def test_columns_load_as_csv(self):
        for capture in CAPTURES:
            with self.subTest(capture.name):
                text = moulsniff(str(capture), "--columns", COLUMNS, "--csv")
                frames = pandas.read_csv(io.StringIO(text)), polars.read_csv(io.StringIO(text), infer_schema_length=None)
                self.assertEqual(len(frames[0]), frames[1].height)
                self.assertEqual(frames[0]["record"].to_list(), frames[1]["record"].to_list())


if __name__ == "__main__":
    unittest.main()
