"""A history of many versions as Delta tables: written in bounded memory, asked by DuckDB and by Spark, and compared with what the store says.

    python tools/lake_scale.py --versions 1000000 --questions 1000000 --folder /tmp/lake [--spark SPARK_PYTHON]

A question is a node, a valid time and a tx, drawn at random; its answer which description held, or that none did. Every system answers all of them, and
each answer is compared; four questions over all nodes are asked beside. `--from STEP` begins with a later step, over what an earlier run has left.

Spark is not among the pinned packages: name a Python that has `pyspark` (4.1 or newer), on a machine that has a Java it runs on. It reads the Parquet files
that the log of the Delta tables names. Prints what was done, its seconds and its memory in MB, a line each.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

BORN = 1_767_225_600  # seconds: 2026-01-01
EACH = 20  # versions of a node
GROUP = 50_000  # versions in a transaction
YEAR = 365 * 86_400  # seconds from the first transaction to the last
STEPS = ("fill", "write", "store", "duckdb", "spark")
ASKED = """
    SELECT q.q, v.number, v.content FROM questions q
    LEFT JOIN versions v ON v.node_id = q.id AND v.valid_from <= q.valid AND (v.valid_to IS NULL OR q.valid < v.valid_to)
        AND v.tx_from <= q.tx AND (v.tx_to IS NULL OR q.tx < v.tx_to)
    ORDER BY q.q
"""
QUESTIONS = {
    "nodes that hold": "SELECT count(*), sum(hash_of) FROM (SELECT {hash} AS hash_of FROM node_as_of({at}))",
    "links that hold": "SELECT count(*), sum(hash_of) FROM (SELECT {link} AS hash_of FROM link_as_of({at}))",
    "difference": "SELECT change, count(*) FROM node_diff({at}, {later}) GROUP BY change ORDER BY change",
    "a chain": "SELECT old, new, step FROM succession_as_of('n881', {at}) ORDER BY step",
}
DIALECTS = {
    # the number in an id, weighted by the number of its description: the same sum in every system
    "duckdb": {
        "hash": "CAST(substr(id, 2) AS BIGINT) * number",
        "link": "CAST(substr(target, 2) AS BIGINT)",
        "at": "'{}', '{}'",
    },
    "spark": {
        "hash": "CAST(substr(id, 2) AS BIGINT) * number",
        "link": "CAST(substr(target, 2) AS BIGINT)",
        "at": "TIMESTAMP'{}', TIMESTAMP'{}'",
    },
}


def main() -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--versions", type=int, default=1_000_000)
    asked.add_argument("--folder", type=Path, required=True)
    asked.add_argument("--spark", metavar="PYTHON", help="a Python that has pyspark")
    asked.add_argument("--questions", type=int, default=1_000_000)
    asked.add_argument("--from", dest="since", choices=STEPS, default="fill")
    asked.add_argument("--step", choices=STEPS)
    given = asked.parse_args()
    if given.step:
        print(json.dumps(_step(given)))
        return
    if given.since == "fill":
        shutil.rmtree(given.folder, ignore_errors=True)
        given.folder.mkdir(parents=True)
    answers = {}
    for step in STEPS[STEPS.index(given.since) :]:
        if step == "spark" and not given.spark:
            continue
        said = subprocess.run(
            [given.spark if step == "spark" else sys.executable, __file__, "--step", step, "--versions", str(given.versions),
             "--questions", str(given.questions), "--folder", given.folder],
            check=True, stdout=subprocess.PIPE,
        ).stdout  # fmt: skip
        done = json.loads(said.splitlines()[-1])
        answers[step] = done.pop("answers", None)
        print(step, *(f"{name} {value:,}" for name, value in done.items()), sep="  ", flush=True)
    sys.exit(not compared(given.folder, {step: found for step, found in answers.items() if found}))


def compared(folder: Path, answers: dict[str, Any]) -> bool:
    """Whether every system said the same; prints how often."""
    import pyarrow.parquet as pq

    alike = True
    expected = pq.read_table(folder / "answers-store")
    for step in [name for name in answers if name != "store"]:
        for name, answer in answers["store"].items():
            print(f"{step}: {name}: {'equal' if answers[step][name] == answer else 'DIFFERS'}")
            alike &= answers[step][name] == answer
        found = pq.read_table(folder / f"answers-{step}").select(expected.column_names).cast(expected.schema)
        equal = len(found) == len(expected) and found.sort_by("q").equals(expected)
        none = expected["number"].null_count
        print(
            f"{step}: {len(expected):,} answers, {none:,} of them that nothing held: {'equal' if equal else 'DIFFER'}"
        )
        alike &= equal
    return alike


def _step(given: argparse.Namespace) -> dict[str, Any]:
    begun = time.monotonic()
    steps: dict[str, Callable[[Path, int], dict[str, Any]]] = {
        "fill": fill, "write": write, "store": of_store, "duckdb": of_duckdb, "spark": of_spark,
    }  # fmt: skip
    if given.step == "store":
        draw(given.folder, given.versions, given.questions)
    done = steps[given.step](given.folder, given.versions)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {**done, "seconds": round(time.monotonic() - begun, 1), "MB": peak}


def fill(folder: Path, versions: int) -> dict[str, Any]:
    """The store: nodes described anew again and again, now and then from a later day on only, each twentieth superseded by the next but one."""
    import pyarrow as pa

    import graphstore

    nodes = max(1, versions // EACH)
    step = YEAR / (EACH * -(-nodes // GROUP))
    clock = [float(BORN)]
    with graphstore.open(
        folder / "store.gs", clock=lambda: datetime.fromtimestamp(clock[0], UTC), durability="interval"
    ) as store:
        for turn in range(EACH):
            day = datetime.fromtimestamp(BORN, UTC) + timedelta(days=15 * turn if turn % 4 == 3 else 0)
            for low in range(0, nodes, GROUP):
                numbers = range(low, min(low + GROUP, nodes))
                ids = [f"n{number}" for number in numbers]
                described = pa.table(
                    {
                        "node_id": ids,
                        "content": [f'{{"n":{number},"turn":{turn}}}' for number in numbers],
                        "valid_from": pa.array([day] * len(ids), pa.timestamp("us", tz="UTC")),
                    }
                )
                clock[0] += step
                if turn:
                    store.bulk_load(versions=described)
                else:
                    links = [
                        {"source": f"n{number}", "kind": "supersedes", "target": f"n{number - 20}", "reason": "newer", "valid_from": "2026-01-02"}
                        for number in numbers
                        if number % 20 == 1 and number % 1000 > 20
                    ]  # fmt: skip
                    store.bulk_load(
                        nodes=[{"id": id, "kind": "fact"} for id in ids], versions=described, links=links
                    )
        return {"rows": store.stats()["rows"]}


def write(folder: Path, _: int) -> dict[str, Any]:
    import graphstore
    from graphstore.interchange.lake import Lake
    from graphstore.store.change_feed import ChangeFeed

    with graphstore.open(folder / "store.gs", read_only=True) as store:
        opened = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        done = Lake(str(folder / "lake")).take(ChangeFeed(store))
    from graphstore.store.change_feed import NAMES

    tables = Lake(str(folder / "lake"))
    files = {name: tables.there(name).file_uris() for name in NAMES}
    (folder / "files.json").write_text(json.dumps({name: parts for name, parts in files.items() if parts}))
    size = sum(file.stat().st_size for file in (folder / "lake").rglob("*.parquet"))
    return {"rows": done.rows, "closings": done.closings, "MB_of_files": size >> 20, "MB_opened": opened}


def coordinates(_: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """Two coordinates, known after a half and after three quarters of the transactions."""
    known = (
        time.strftime("%Y-%m-%d %H:%M:%S+00:00", time.gmtime(BORN + YEAR * part // 4 + 60)) for part in (2, 3)
    )
    first, second = (("2026-06-01 00:00:00+00:00", tx) for tx in known)
    return first, second


def draw(folder: Path, versions: int, count: int) -> None:
    """The questions, the same each time: one in fifty of a node that there is not, some before or after all that is known."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    chance, second = np.random.default_rng(7), 1_000_000
    nodes = max(1, versions // EACH)
    ids = chance.integers(0, nodes + nodes // 50 + 1, count)
    valid = chance.integers((BORN - 20 * 86_400) * second, (BORN + YEAR) * second, count)
    tx = chance.integers((BORN - 10 * 86_400) * second, (BORN + YEAR) * second, count)
    at = pa.timestamp("us", tz="UTC")
    table = pa.table({
        "q": pa.array(range(count), pa.int64()), "id": [f"n{id}" for id in ids], "valid": pa.array(valid, at), "tx": pa.array(tx, at),
    })  # fmt: skip
    pq.write_table(table, folder / "questions.parquet")


def of_store(folder: Path, versions: int) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    import graphstore

    with graphstore.open(folder / "store.gs", read_only=True) as store:
        (valid, tx), (later_valid, later_tx) = coordinates(versions)
        opened = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        asked = time.monotonic()
        view, later = store.as_of(valid=valid, tx=tx), store.as_of(valid=later_valid, tx=later_tx)
        before, after = ({row.id: row.number for row in each.scan(kind="fact")} for each in (view, later))
        held = [link.target for id in before for link in view.links_from(id, kinds=["supersedes"])]
        changes = {
            "added": len(after.keys() - before.keys()),
            "changed": sum(after.get(id, number) != number for id, number in before.items()),
            "removed": len(before.keys() - after.keys()),
        }
        chain = ["n881", *[step.node.id for step in view.what_superseded("n881").chain]]
        answers = {
            "nodes that hold": [[len(before), sum(int(id[1:]) * number for id, number in before.items())]],
            "links that hold": [[len(held), sum(int(id[1:]) for id in held)]],
            "difference": [[name, count] for name, count in changes.items() if count],
            "a chain": [[old, new, step] for step, (old, new) in enumerate(pairwise(chain), 1)],
        }
        took = time.monotonic() - asked
        numbers, contents = [], []
        asked = time.monotonic()
        for part in pq.ParquetFile(folder / "questions.parquet").iter_batches(
            50_000, columns=["id", "valid", "tx"]
        ):
            for one in part.to_pylist():
                try:
                    node = store.as_of(valid=one["valid"], tx=one["tx"]).node(one["id"])
                except graphstore.NotFoundError:
                    numbers.append(None)
                    contents.append(None)
                else:
                    numbers.append(node.number)
                    contents.append(json.dumps(node.content, separators=(",", ":"), sort_keys=True))
        q = pa.array(range(len(numbers)), pa.int64())
        found = pa.table({"q": q, "number": pa.array(numbers, pa.int64()), "content": contents})
        pq.write_table(found, folder / "answers-store")
        spent = round(time.monotonic() - asked, 1)
        return {"asked_s": round(took, 1), "questions_s": spent, "MB_opened": opened, "answers": answers}


def texts(versions: int, system: str) -> dict[str, str]:
    at, later = (DIALECTS[system]["at"].format(*point) for point in coordinates(versions))
    return {
        name: text.format(**{**DIALECTS[system], "at": at}, later=later) for name, text in QUESTIONS.items()
    }


def of_duckdb(folder: Path, versions: int) -> dict[str, Any]:
    import pyarrow.parquet as pq

    from graphstore.interchange import lake

    answers, took = {}, {}
    for name, text in texts(versions, "duckdb").items():
        begun = time.monotonic()
        answers[name] = [
            [_plain(each) for each in row] for row in lake.ask(str(folder / "lake"), text).tuples()
        ]
        took[f"{name.replace(' ', '_')}_s"] = round(time.monotonic() - begun, 2)
    begun = time.monotonic()
    questions = f"read_parquet('{folder / 'questions.parquet'}')"
    found = lake.ask(str(folder / "lake"), ASKED.replace("questions q", f"{questions} q"))
    pq.write_table(found.to_arrow(), folder / "answers-duckdb")
    took["questions_s"] = round(time.monotonic() - begun, 1)
    return {**took, "answers": answers}


def of_spark(folder: Path, versions: int) -> dict[str, Any]:
    """Spark on two cores, over the files that the logs of the Delta tables name."""
    from pyspark.sql import SparkSession

    files = json.loads((folder / "files.json").read_text())
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "4g")
        .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "8").getOrCreate()
    )  # fmt: skip
    for name, parts in files.items():
        read = spark.read.option("basePath", str(folder / "lake" / name)).parquet(*parts)
        read.createOrReplaceTempView(f"{name}_log")
    sql = Path(__file__).parents[1] / "sql"
    for file in (sql / "lake.sql", sql / "spark" / "as_of.sql"):
        lines = [line for line in file.read_text().splitlines() if not line.startswith("--")]
        for statement in "\n".join(lines).split(";"):
            if statement.strip() and not any(word in statement for word in ("event", "occurrences")):
                spark.sql(statement)
    answers, took = {}, {}
    for name, text in texts(versions, "spark").items():
        begun = time.monotonic()
        answers[name] = [[_plain(each) for each in row] for row in spark.sql(text).collect()]
        took[f"{name.replace(' ', '_')}_s"] = round(time.monotonic() - begun, 2)
    begun = time.monotonic()
    spark.read.parquet(str(folder / "questions.parquet")).createOrReplaceTempView("questions")
    spark.sql(ASKED).coalesce(1).write.mode("overwrite").parquet(str(folder / "answers-spark"))
    took["questions_s"] = round(time.monotonic() - begun, 1)
    java = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/status").read_text()
    peak = next(int(line.split()[1]) // 1024 for line in java.splitlines() if line.startswith("VmHWM"))
    return {**took, "MB_of_Java": peak, "answers": answers}


def _plain(value: Any) -> Any:
    return int(value) if hasattr(value, "__int__") and not isinstance(value, str) else value


if __name__ == "__main__":
    main()
