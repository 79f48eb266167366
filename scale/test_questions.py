#!/usr/bin/env python3
"""Tests the questions beside this file: each engine that is here loads the same records and gives the same answers.

    MOULSNIFF=target/release/moulsniff python3 scale/test_questions.py

SQLite comes with Python. DuckDB (`duckdb`) and ClickHouse (`chdb`) are packages of PyPI; an engine that is missing is left
out with a word.
"""

import os
import re
import sqlite3
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = str(Path(os.environ.get("MOULSNIFF", ROOT / "target/release/moulsniff")).resolve())
CAPTURES = ["moul/full_dirtsand.pcapng", "moul/mangled_gaps.pcap.gz", "intermud3/i3_coffeemud.pcapng", "secondlife/opensim.pcapng.gz"]


def moulsniff(*words):
    return subprocess.run([PROGRAM, *words, "--no-config"], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def questions(engine):
    """The statements of an engine's file, in order."""
    text = (ROOT / f"scale/questions.{engine}.sql").read_text()
    return re.split(r"^-- \d+\..*\n", text, flags=re.M)[1:]


def plain(rows):
    """Rows in which equal values are written alike: numbers as numbers, whatever the engine calls them."""

    def value(of):
        if of in (None, ""):
            return None
        return float(of) if isinstance(of, (int, float)) else str(of)

    return [[value(cell) for cell in row] for row in rows]


def same(one, other):
    """Whether two answers are the same; engines round a half to either side."""
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    return abs(one - other) < 0.0101 if isinstance(one, float) and isinstance(other, float) else one == other


class Sqlite:
    def __init__(self, lines, folder):
        if sqlite3.sqlite_version_info < (3, 38):
            raise ImportError("SQLite is older than 3.38")
        self.base = sqlite3.connect(":memory:")
        self.base.executescript(moulsniff("schema", "--sql", "sqlite"))
        with lines.open(encoding="utf-8") as file:
            self.base.executemany("INSERT INTO lines VALUES (?)", ((line,) for line in file))

    def ask(self, question):
        return self.base.execute(question).fetchall()


class Duckdb:
    def __init__(self, lines, folder):
        import duckdb

        self.base = duckdb.connect()
        self.base.execute(moulsniff("schema", "--sql", "duckdb"))
        self.base.execute(f"COPY records FROM '{lines}' (FORMAT json)")

    def ask(self, question):
        return self.base.execute(question).fetchall()

    def write_parquet(self, folder):
        """Writes the records into one file, and into a folder with a file for each message. Returns how to read both."""
        self.base.execute(f"COPY records TO '{folder}/records.parquet' (FORMAT parquet, COMPRESSION zstd)")
        self.base.execute(f"COPY records TO '{folder}/messages' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (message))")
        return [f"'{folder}/records.parquet'", f"read_parquet('{folder}/messages/*/*.parquet', hive_partitioning = true)"]


class Clickhouse:
    def __init__(self, lines, folder):
        from chdb import session

        self.base = session.Session(f"{folder}/clickhouse")
        self.base.query("CREATE DATABASE d")
        self.base.query("USE d")
        self.base.query(moulsniff("schema", "--sql", "clickhouse"))
        settings = "date_time_input_format = 'best_effort', input_format_json_read_objects_as_strings = 1"
        self.base.query(f"INSERT INTO records FROM INFILE '{lines}' SETTINGS {settings} FORMAT JSONEachRow")

    def ask(self, question):
        import json

        text = str(self.base.query(question.rstrip().rstrip(";"), "JSONCompact"))
        answer = json.loads(text)
        numbers = [any(word in column["type"] for word in ("Int", "Float")) for column in answer["meta"]]
        # 64-bit integers come as texts.
        return [[float(c) if n and c is not None else c for c, n in zip(row, numbers)] for row in answer["data"]]


class Questions(unittest.TestCase):
    def test_all_engines_give_the_same_answers(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = Path(folder) / "capture.ndjson"
            captures = [f"captures/{capture}" for capture in CAPTURES]
            lines.write_text(moulsniff(*captures, "--keys", "keys/dirtsand.ini", "--json", "--quiet"), encoding="utf-8")
            answers = {}
            for engine in (Sqlite, Duckdb, Clickhouse):
                name = engine.__name__.lower()
                try:
                    base = engine(lines, folder)
                except ImportError as missing:
                    print(f"{name} is left out: {missing}")
                    continue
                answers[name] = [plain(base.ask(question)) for question in questions(name)]
                if isinstance(base, Duckdb):
                    for source in base.write_parquet(folder):
                        asked = [question.replace("FROM records", f"FROM {source}") for question in questions(name)]
                        self.assertEqual([plain(base.ask(question)) for question in asked], answers[name], source)
            first = answers.pop("sqlite")
            self.assertEqual(len(first), 10)
            for number, answer in enumerate(first, 1):
                self.assertTrue(answer or number == 4, f"question {number} has an empty answer")
            for name, others in answers.items():
                for number, (one, other) in enumerate(zip(first, others, strict=True), 1):
                    self.assertTrue(same(one, other), f"question {number}: {name}: {other}\nsqlite: {one}")


if __name__ == "__main__":
    unittest.main()
