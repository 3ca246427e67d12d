"""A history of many versions as Delta tables: written in bounded memory, asked by DuckDB and by Spark, and compared with what the store says.

    python tools/lake_scale.py --versions 1000000 --folder /tmp/lake [--spark SPARK_PYTHON]

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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BORN = 1_767_225_600  # seconds: 2026-01-01
EACH = 20  # versions of a node
GROUP = 20_000  # verbs in a transaction
QUESTIONS = {
    "nodes that hold": "SELECT count(*), sum(hash_of) FROM (SELECT {hash} AS hash_of FROM node_as_of({at}))",
    "links that hold": "SELECT count(*), sum(hash_of) FROM (SELECT {link} AS hash_of FROM link_as_of({at}))",
    "difference": "SELECT change, count(*) FROM node_diff({at}, {later}) GROUP BY change ORDER BY change",
    "a chain": "SELECT old, new, step FROM succession_as_of('n0', {at}) ORDER BY step",
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
    asked.add_argument("--step", choices=("fill", "write", "store", "duckdb", "spark"))
    given = asked.parse_args()
    if given.step:
        print(json.dumps(_step(given)))
        return
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    answers = {}
    for step in ("fill", "write", "store", "duckdb", *(["spark"] if given.spark else [])):
        python = given.spark if step == "spark" else sys.executable
        said = subprocess.run(
            [python, __file__, "--step", step, "--versions", str(given.versions), "--folder", given.folder],
            check=True, stdout=subprocess.PIPE,
        ).stdout  # fmt: skip
        done = json.loads(said.splitlines()[-1])
        answers[step] = done.pop("answers", None)
        print(step, *(f"{name} {value:,}" for name, value in done.items()), sep="  ", flush=True)
    for step in ("duckdb", *(["spark"] if given.spark else [])):
        for name, answer in answers["store"].items():
            print(f"{step}: {name}: {'equal' if answers[step][name] == answer else 'DIFFERS'}")
    sys.exit(any(answers[step] != answers["store"] for step in answers if answers[step] is not None))


def _step(given: argparse.Namespace) -> dict[str, Any]:
    begun = time.monotonic()
    steps: dict[str, Callable[[Path, int], dict[str, Any]]] = {
        "fill": fill, "write": write, "store": of_store, "duckdb": of_duckdb, "spark": of_spark,
    }  # fmt: skip
    done = steps[given.step](given.folder, given.versions)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {**done, "seconds": round(time.monotonic() - begun, 1), "MB": peak}


def fill(folder: Path, versions: int) -> dict[str, Any]:
    """The store: nodes described anew again and again, each twentieth superseded by the next but one, in transactions of many verbs."""
    import graphstore

    nodes = max(1, versions // EACH)
    clock = [BORN]
    with graphstore.open(
        folder / "store.gs", clock=lambda: datetime.fromtimestamp(clock[0], UTC), durability="interval"
    ) as store:
        for low in range(0, versions, GROUP):
            clock[0] += 3600
            with store.transaction():
                for at in range(low, min(low + GROUP, versions)):
                    turn, node = divmod(at, nodes)
                    if turn == 0:
                        store.add_node("fact", {"n": node, "turn": 0}, id=f"n{node}", valid_from="2026-01-01")
                        if node % 20 == 1 and node > 20:
                            store.link(
                                f"n{node}",
                                "supersedes",
                                f"n{node - 20}",
                                reason="newer",
                                valid_from="2026-01-02",
                            )
                    else:
                        store.revise(f"n{node}", {"n": node, "turn": turn}, reason="counted")
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


def coordinates(versions: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """Two coordinates, known after a half and after three quarters of the transactions."""
    hours = -(-versions // GROUP)
    known = (
        time.strftime("%Y-%m-%d %H:%M:%S+00:00", time.gmtime(BORN + 3600 * (hours * part // 4) + 60))
        for part in (2, 3)
    )
    first, second = (("2026-06-01 00:00:00+00:00", tx) for tx in known)
    return first, second


def of_store(folder: Path, versions: int) -> dict[str, Any]:
    import graphstore

    with graphstore.open(folder / "store.gs", read_only=True) as store:
        (valid, tx), (later_valid, later_tx) = coordinates(versions)
        asked = time.monotonic()
        view, later = store.as_of(valid=valid, tx=tx), store.as_of(valid=later_valid, tx=later_tx)
        nodes = view.query("MATCH (n:Node) RETURN n.id AS id, n.number AS number").rows()
        links = view.query("MATCH ()-[l:SUPERSEDES]->(b) RETURN b.id AS id").rows()
        found = view.compare(later)
        changes = {"added": len(found.added), "changed": len(found.changed), "removed": len(found.removed)}
        chain = [("n0", *[step.node.id for step in view.what_superseded("n0").chain])]
        answers = {
            "nodes that hold": [[len(nodes), sum(int(one["id"][1:]) * one["number"] for one in nodes)]],
            "links that hold": [[len(links), sum(int(one["id"][1:]) for one in links)]],
            "difference": [[name, count] for name, count in changes.items() if count],
            "a chain": [
                [old, new, step]
                for step, (old, new) in enumerate(zip(chain[0], chain[0][1:], strict=False), 1)
            ],
        }
        return {"asked_s": round(time.monotonic() - asked, 1), "answers": answers}


def texts(versions: int, system: str) -> dict[str, str]:
    at, later = (DIALECTS[system]["at"].format(*point) for point in coordinates(versions))
    return {
        name: text.format(**{**DIALECTS[system], "at": at}, later=later) for name, text in QUESTIONS.items()
    }


def of_duckdb(folder: Path, versions: int) -> dict[str, Any]:
    from graphstore.interchange import lake

    answers, took = {}, {}
    for name, text in texts(versions, "duckdb").items():
        begun = time.monotonic()
        answers[name] = [
            [_plain(each) for each in row] for row in lake.ask(str(folder / "lake"), text).tuples()
        ]
        took[f"{name.replace(' ', '_')}_s"] = round(time.monotonic() - begun, 2)
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
    java = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/status").read_text()
    peak = next(int(line.split()[1]) // 1024 for line in java.splitlines() if line.startswith("VmHWM"))
    return {**took, "MB_of_Java": peak, "answers": answers}


def _plain(value: Any) -> Any:
    return int(value) if hasattr(value, "__int__") and not isinstance(value, str) else value


if __name__ == "__main__":
    main()
