"""Run the benchmarks: `python -m benchmarks [--size 100k] [--only NAME] [--json] [--alone] [--write]`. `--help` describes the options."""

from __future__ import annotations

import argparse
import compileall
import importlib
import json
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import graphstore
from benchmarks import ours, report
from benchmarks.arena import SMALL, Arena, Row, count_of
from benchmarks.data import history
from benchmarks.rows import GROUPS, HUGE, LARGE, ONCE, ROOMS
from benchmarks.timing import StopWatch

BUSY = 0.6
TWINS = {
    "kuzu": "raw_kuzu",
    "sqlite": "sqlite_twin",
    "duckdb": "duckdb_twin",
    "tgms": "tgms_twin",
    "tiramemsu": "tiramemsu_twin",
}
SLOW = ("tgms", "tiramemsu")
"""Those that load too slowly for a million versions."""


def main() -> None:
    options = _options()
    if options.write and options.only:
        raise SystemExit("--write replaces whole tables. Leave --only out.")
    if options.write and any(count_of(size) < SMALL for size in options.size.lower().split(",")):
        raise SystemExit(
            f"--write is for runs of {SMALL:,} versions and more. Give a larger --size, or leave --write out."
        )
    work = (
        Path(__file__).parents[1] / ".benchmarks"
    )  # not in /tmp: that may be memory, where a commit costs nothing
    work.mkdir(exist_ok=True)
    compileall.compile_dir(
        Path(graphstore.__file__).parent, quiet=1
    )  # as an installer does: new processes are timed
    folder = Path(tempfile.mkdtemp(dir=work))
    figures: dict[str, list[str]] = {}
    everything: list[Row] = []
    failures: list[str] = []
    try:
        sizes = options.size.lower().split(",")
        for size in sizes:
            start, watch, rows = report.machine(), StopWatch(), []
            twins, missing = _twins(options.alone, size)
            arena = Arena(size, history(count_of(size)), folder / size, twins)
            failed: list[str] = []
            chosen = _chosen(options.only, size, last=size == sizes[-1])
            arena.load(3 if "load" in chosen and not arena.quick and arena.data.rows < 1_000_000 else 1)
            for row in measure(arena, chosen, failed):
                rows.append(row)
                print(f"  {watch.wall():4.0f} s  {row.size:>5}  {row.work}", file=sys.stderr, flush=True)
            arena.close()
            busy = "" if (share := watch.share()) >= BUSY else (
                f"**The machine was busy: this run had {share:.0%} of a processor.** Ratios hold; seconds, slowest calls and commits "
                "are to be judged on an idle one."
            )  # fmt: skip
            figures[f"promises {size}"] = [f"{size} versions:", "", *report.promised(rows)]
            figures[f"figures {size}"] = [
                *[line for line in (*start, busy) if line],
                report.coordinates(arena.draws, arena.standings),
                "",
                *report.table(rows),
                "",
                "**Where it loses, and what is missing.**",
                *report.losses(rows, missing),
                *failed,
            ]
            failures += failed
            everything += rows
            if not options.json:
                print("\n".join([*figures[f"figures {size}"], "", *figures[f"promises {size}"]]), flush=True)
            shutil.rmtree(folder / size)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps([asdict(row) for row in everything], indent=1))
    if options.write:
        report.write(figures)
    if failures or any("ours" not in row.took for row in everything):
        raise SystemExit("An answer of ours was wrong, or some rows could not be made: see under the table.")


def measure(arena: Arena, chosen: list[str], failed: list[str]) -> Iterator[Row]:
    """Yield the rows of some groups over one history, which every store has loaded. A group that fails is named, and the others go on."""
    for name in chosen:
        try:
            yield from GROUPS[name](arena)
        except Exception as error:
            traceback.print_exc()
            failed.append(f"- **failed**: the rows of `{name}`: {type(error).__name__}: {str(error)[:300]}")


def found_twins() -> tuple[dict[str, ModuleType], dict[str, str]]:
    """The stores that are here, and why others are not."""
    twins, missing = {"ours": ours}, {}
    for name, module in TWINS.items():
        try:
            twins[name] = importlib.import_module(f"benchmarks.{module}")
        except ImportError as error:
            missing[name] = str(error)
    return twins, missing


def _twins(alone: bool, size: str) -> tuple[dict[str, ModuleType], dict[str, str]]:
    if alone or count_of(size) > 1_000_000:
        return {"ours": ours}, {}
    twins, missing = found_twins()
    if count_of(size) >= 1_000_000:
        twins = {name: twin for name, twin in twins.items() if name not in SLOW}
    return twins, missing


def _chosen(only: list[str] | None, size: str, *, last: bool) -> list[str]:
    count = count_of(size)
    usual = (
        HUGE
        if count > 1_000_000
        else LARGE
        if count >= 1_000_000
        else [one for one in GROUPS if one not in ROOMS]
    )
    return [name for name in GROUPS if name in (only or usual) and (last or name not in ONCE)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="What the store costs, as ratios."
    )
    parser.add_argument(
        "--size",
        default="100k",
        help="versions, comma-separated: 100k, 1m, 10m (default: 100k); fewer than 50k show that all rows work",
    )
    parser.add_argument(
        "--only", action="append", choices=GROUPS, help="this group of rows alone; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    parser.add_argument("--alone", action="store_true", help="the store itself without the others")
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/README.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
