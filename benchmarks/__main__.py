"""`python -m benchmarks [--size 10k,100k] [--only NAME] [--quick] [--json] [--alone]`: one table, ratios first."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.arena import Arena, Row
from benchmarks.data import history
from benchmarks.rows import GROUPS, LARGE, TWINS
from benchmarks.timing import StopWatch

SIZES = {"k": 1_000, "m": 1_000_000}
BUSY = 0.6
BESIDE = {"floor": "floor", "kuzu": "raw Kùzu", "sqlite": "SQLite", "duckdb": "DuckDB"}


def main() -> None:
    options = _options()
    # Beside the code, not in /tmp: that may be memory, where a commit costs nothing.
    work = Path(__file__).parents[1] / ".benchmarks"
    work.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=work))
    watch = StopWatch()
    rows = []
    try:
        for row in _measure(options, folder):
            rows.append(row)
            if not options.json and sys.stderr.isatty():
                print(f"  {row.size:>5}  {row.work}", file=sys.stderr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    print("\n".join(_table(rows)))
    judged = [row for row in rows if row.budget is not None]
    missed = [row for row in judged if row.took["ours"] > row.budget]
    print(f"\n{len(missed)} of {len(judged)} budgets missed.")
    if (share := watch.share()) < BUSY:
        print(
            f"The machine was busy: this run had {share:.0%} of a processor. Ratios hold; budgets in seconds, and commits above all, "
            "are to be judged on an idle one."
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="What the store costs, as ratios."
    )
    parser.add_argument(
        "--size", default="10k,100k", help="versions, comma-separated: 10k, 100k, 1m (default: 10k,100k)"
    )
    parser.add_argument(
        "--only", action="append", choices=GROUPS, help="this group of rows alone; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="10k alone, fewer repeats")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    parser.add_argument("--alone", action="store_true", help="the store itself without the others")
    return parser.parse_args()


def _measure(options: argparse.Namespace, folder: Path) -> Iterator[Row]:
    sizes = ["10k"] if options.quick else options.size.lower().split(",")
    for size in sizes:
        count = count_of(size)
        large = count >= 1_000_000
        chosen = [
            name for name in GROUPS if (name in options.only if options.only else not large or name in LARGE)
        ]
        if size != sizes[-1]:
            chosen = [
                name
                for name in chosen
                if name not in ("depth", "help", "events", "timeline", "decay", "sessions", "server")
            ]
        twins = {"ours": TWINS["ours"]} if options.alone else TWINS
        arena = Arena(size, history(count), folder / size, twins, options.quick)
        arena.load(1 if large or options.quick or "load" not in chosen else 3)
        for name in chosen:
            yield from GROUPS[name](arena)
        arena.close()
        shutil.rmtree(folder / size)


def count_of(size: str) -> int:
    """Versions of a size such as 100k."""
    return int(size[:-1]) * SIZES[size[-1]] if size[-1] in SIZES else int(size)


def _table(rows: list[Row]) -> list[str]:
    titles = [
        "work",
        "versions",
        "ours ÷ budget",
        *(f"÷ {name}" for name in BESIDE.values()),
        "ours",
        "budget",
        *BESIDE.values(),
        "the floor is",
    ]
    lines = [titles]
    for row in rows:
        ours = row.took["ours"]
        verdict = "–"
        if row.budget is not None and not math.isnan(row.budget):
            verdict = f"{_ratio(ours / row.budget)} {'met' if ours <= row.budget else '**missed**'}"
        lines.append(
            [
                row.work,
                row.size,
                verdict,
                *(_ratio(ours / row.took[name]) if name in row.took else "–" for name in BESIDE),
                _amount(ours, row.unit),
                _amount(row.budget, row.unit),
                *(_amount(row.took.get(name), row.unit) for name in BESIDE),
                row.floor_is or "–",
            ]
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    out = []
    for number, line in enumerate(lines):
        cells = [
            cell.ljust(width) if column in (0, len(titles) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        out.append("| " + " | ".join(cells) + " |")
        if number == 0:
            out.append(
                "|"
                + "|".join(
                    "-" * (width + 2) if column in (0, len(titles) - 1) else "-" * (width + 1) + ":"
                    for column, width in enumerate(widths)
                )
                + "|"
            )
    return out


def _ratio(value: float) -> str:
    return (
        f"{value:.0f}"
        if value >= 100
        else f"{value:.1f}"
        if value >= 10
        else f"{value:.2g}"
        if value < 0.1
        else f"{value:.2f}"
    )


def _amount(value: float | None, unit: str) -> str:
    if value is None or math.isnan(value):
        return "–"
    if unit == "B":
        return f"{value / 1e6:,.0f} MB" if value >= 1e7 else f"{value / 1e6:.3g} MB"
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value / 1e-9:.3g} ns"


if __name__ == "__main__":
    main()
