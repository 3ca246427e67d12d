"""The page that a run makes: what it ran on, one table with ratios first, and in words where the store loses."""

from __future__ import annotations

import math
import os
import platform
import sqlite3
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks import ours
from benchmarks.arena import Row
from benchmarks.data import Draws

RIVALS = {
    "sqlite": "SQLite",
    "duckdb": "DuckDB",
    "tgms": "tgms",
    "tiramemsu": "tiramemsu",
}
PAGE = Path(__file__).with_name("README.md")


def machine() -> list[str]:
    """What it runs on, and how busy that is; to be asked for before anything runs."""
    about = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(": ")[2] for line in about.splitlines() if line.startswith("model name")]
    packages = ", ".join(
        f"{name} {_version(name)}" for name in ("kuzu", "pyarrow", "duckdb", "tgms", "tiramemsu")
    )
    kernel = "with the kernel in C" if ours.kernel() else "without the kernel in C"
    load = " ".join(f"{one:.2f}" for one in os.getloadavg())
    return [
        f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}.",
        f"Python {platform.python_version()}, graphstore {version('graphstore')} {kernel}, SQLite {sqlite3.sqlite_version}, {packages}.",
        f"Load average at the start: {load}.",
    ]


def coordinates(draws: Draws, standings: dict[str, int]) -> str:
    """What was asked, said so that nobody has to trust it."""
    asked, shaky = sum(standings.values()), standings.get("shaky", 0)
    return (
        f"{draws.drawn:,} coordinates were drawn evenly over all valid and transaction times, {_share(draws.after_a_fall, draws.drawn)} of them after the first fall, and "
        f"{_share(draws.kept, draws.drawn)} were kept: those at which the wanted kind of answer is (a node stands, a chain is whole). Of {asked:,} nodes "
        f"read, {_share(shaky, asked)} were shaky."
    )


def table(rows: list[Row]) -> list[str]:
    """Ours beside its budget, the floor and the others: a ratio below 1 is in our favour."""
    rivals = {name: title for name, title in RIVALS.items() if any(name in row.took for row in rows)}
    titles = ["work", "versions", "ours", "÷ budget", "p99", "at most", "÷ floor"]
    titles += [f"÷ {title}" for title in rivals.values()] + ["budget", "the floor is"]
    lines = [titles]
    for row in rows:
        mine, spread = row.took.get("ours"), row.spreads.get("ours")
        lines.append(
            [
                row.work,
                row.size,
                amount(mine, row.unit) if mine is not None else "**wrong**",
                _verdict(mine, row.budget),
                _tail(row),
                amount(spread.most if spread else None, row.unit),
                *(_beside(row, name) for name in ("floor", *rivals)),
                amount(row.budget, row.unit),
                row.floor_is or "–",
            ]
        )
    return _laid_out(lines)


def losses(rows: list[Row], missing: dict[str, str]) -> list[str]:
    """Every budget missed and by what factor, every rival that is faster, every wrong answer, every rival that is not there."""
    out = []
    judged = [row for row in rows if row.budget is not None and "ours" in row.took]
    missed = sorted(
        ((row.took["ours"] / row.budget, row) for row in judged if row.budget), key=lambda one: -one[0]
    )
    missed = [(factor, row) for factor, row in missed if factor > 1]
    tails = [(row.spreads["ours"].p99 / row.tail, row) for row in rows if row.tail and "ours" in row.spreads]
    late = sorted(((factor, row) for factor, row in tails if factor > 1), key=lambda one: -one[0])
    out.append(
        f"{len(missed)} of {len(judged)} budgets missed, and {len(late)} of {len(tails)} budgets of the slowest in a hundred."
    )
    out += [f"- {row.work} ({row.size}): {ratio(factor)} times its budget" for factor, row in missed]
    out += [
        f"- {row.work} ({row.size}): its p99 is {ratio(factor)} times what it may be" for factor, row in late
    ]
    for name, title in RIVALS.items():
        slower = [
            (row.took["ours"] / row.took[name], row)
            for row in rows
            if name in row.took and "ours" in row.took
        ]
        behind = sorted(((factor, row) for factor, row in slower if factor > 1), key=lambda one: -one[0])
        if slower:
            named = "; ".join(f"{row.work} ({row.size}) × {ratio(factor)}" for factor, row in behind)
            out.append(
                f"- slower than {title} in {len(behind)} of {len(slower)} rows{': ' + named if named else ''}"
            )
    out += [f"- wrong, so not timed: {row.work} ({row.size}): {one}" for row in rows for one in row.wrong]
    out += [f"- {RIVALS.get(name, name)} is not installed: {why}" for name, why in missing.items()]
    return out


def write(figures: dict[str, list[str]], page: Path = PAGE) -> None:
    """Puts the figures of each size between its marks; sizes that did not run keep theirs."""
    text = page.read_text(encoding="utf-8")
    for size, lines in figures.items():
        start, end = f"<!-- figures {size} -->", f"<!-- end {size} -->"
        before, found, rest = text.partition(start)
        after = rest.partition(end)[2]
        if not found:
            before, after = text.rstrip() + "\n\n", "\n"
        text = before + "\n".join([start, "", *lines, "", end]) + after
    page.write_text(text, encoding="utf-8")


def ratio(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}"


def amount(value: float | None, unit: str = "s") -> str:
    if value is None or math.isnan(value):
        return "–"
    if unit == "B":
        return f"{value / 1e6:,.0f} MB" if value >= 1e7 else f"{value / 1e6:.3g} MB"
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value / 1e-9:.3g} ns"


def _verdict(mine: float | None, limit: float | None) -> str:
    if mine is None or limit is None or math.isnan(limit):
        return "–"
    return f"{ratio(mine / limit)} {'met' if mine <= limit else '**missed**'}"


def _tail(row: Row) -> str:
    spread = row.spreads.get("ours")
    if spread is None:
        return "–"
    told = amount(spread.p99, row.unit)
    return told if row.tail is None else f"{told}, {_verdict(spread.p99, row.tail)}"


def _beside(row: Row, name: str) -> str:
    if any(one.startswith(f"{name}:") for one in row.wrong):
        return "wrong"
    if name not in row.took or "ours" not in row.took:
        return "–"
    return f"{ratio(row.took['ours'] / row.took[name])} ({amount(row.took[name], row.unit)})"


def _laid_out(lines: list[list[str]]) -> list[str]:
    sides = [column in (0, len(lines[0]) - 1) for column in range(len(lines[0]))]
    rule = ["---" if side else "--:" for side in sides]
    return ["| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]]]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "none"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
