"""The views of `sql/` in Spark give the answers of DuckDB over the same Delta tables, and those of the store. By hand: `make test-spark`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import graphstore
from graphstore.interchange import lake
from tests.conftest import Clock
from tests.interchange.test_lake import DAYS, rows
from tests.support.world import fill_further

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("SPARK_PYTHON", Path(sys.prefix) / "spark-python" / "bin" / "python"))
pytestmark = [
    pytest.mark.rest,
    pytest.mark.in_process("reads the rows of a store of its own"),
    pytest.mark.skipif(not PYTHON.exists(), reason="needs pyspark: make test-spark"),
    pytest.mark.skipif(
        not (shutil.which("java") or "JAVA_HOME" in os.environ), reason="needs Java 17 or newer for Spark"
    ),
]
QUESTIONS = (
    "SELECT id, ref, content FROM node_as_of({at}) ORDER BY id",
    "SELECT id, description FROM event_as_of({at}) ORDER BY id",
    "SELECT id, source, kind, target, reason FROM link_as_of({at}) ORDER BY id",
    "SELECT old, new, step FROM succession_as_of('sessions', {at}) ORDER BY step, old, new",
    "SELECT change, id FROM node_diff({at}, {last}) ORDER BY change, id",
)


def in_spark(uri: Path, questions: list[str]) -> list[list[list[object]]]:
    """The answers of Spark, in a process of its own."""
    there = lake.Lake(str(uri))
    tables = {
        name: (str(uri / name), [file.removeprefix("file://") for file in there.there(name).file_uris()])
        for name in lake.NAMES
    }
    texts = [(ROOT / "sql" / name).read_text(encoding="utf-8") for name in ("lake.sql", "spark/as_of.sql")]
    plain = "\n".join(line for text in texts for line in text.splitlines() if not line.startswith("--"))
    statements = [each for each in plain.split(";") if each.strip()]
    done = subprocess.run(
        [str(PYTHON), str(ROOT / "tests/support/spark_answers.py")],
        input=json.dumps({"tables": tables, "statements": statements, "questions": questions}),
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYSPARK_PYTHON": str(PYTHON), "PYTHONPATH": ""},
    )
    assert 0 == done.returncode, done.stderr[-4_000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def test_spark_answers_as_duckdb_and_the_store(tmp_path):
    clock = Clock()
    with graphstore.open(tmp_path / "store.gs", clock=clock) as store:
        fill_further(store, clock)
    coordinates = list(product(DAYS, DAYS))

    def written(instant: str) -> list[str]:
        return [
            text.format(at=f"{instant.format(valid)}, {instant.format(tx)}", last=f"{instant.format(DAYS[-1])}, {instant.format(DAYS[-1])}")
            for valid, tx in coordinates
            for text in QUESTIONS
        ]  # fmt: skip

    with graphstore.open(tmp_path / "store.gs", clock=Clock("2026-06-01")) as store:
        lake.export_delta(store, tmp_path / "lake")
        of_spark = in_spark(tmp_path / "lake", written("TIMESTAMP'{} 00:00:00'"))

        for question, found in zip(written("TIMESTAMPTZ '{}'"), of_spark, strict=True):
            assert [list(row) for row in rows(tmp_path / "lake", question)] == found, question
        for number, (valid, tx) in enumerate(coordinates):
            view = store.as_of(valid=valid, tx=tx)
            nodes = of_spark[number * len(QUESTIONS)]
            assert {node.id: node.content for node in view.nodes()} == {
                id: json.loads(str(content)) for id, _, content in nodes
            }
    assert sum(map(len, of_spark)) > 200, "there was something to be answered"
