"""Format a run: the promises in one small table, the machine, every row as ratios, and what is wrong or missing."""

from __future__ import annotations

import math
import os
import platform
import sqlite3
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.arena import Limit, Row
from benchmarks.data import Draws
from benchmarks.promises import ORDER, REASONS

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
    load = " ".join(f"{one:.2f}" for one in os.getloadavg())
    return [
        f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}.",
        f"Python {platform.python_version()}, graphstore {version('graphstore')}, SQLite {sqlite3.sqlite_version}, {packages}.",
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


def promised(rows: list[Row]) -> list[str]:
    """Return the small table: each promise once, with the worst figure of each of its limits, and *met* or *missed* with the reason."""
    lines = [["work", "at worst, of what is allowed", "verdict"]]
    for promise in ORDER:
        worst: dict[Limit, tuple[float, float, Row]] = {}
        for row in rows:
            for limit in row.limits if row.promise == promise else ():
                found = row.measured(limit)
                if found is not None and found / limit.most >= worst.get(limit, (0.0,))[0]:
                    worst[limit] = (found / limit.most, found, row)
        wrong = [row for row in rows if row.promise == promise and "ours" not in row.took]
        if not worst and not wrong:
            continue
        cells = [_of(limit, found, row) for limit, (_, found, row) in worst.items()]
        share, _, row = max(worst.values(), key=lambda one: one[0]) if worst else (math.inf, 0.0, wrong[0])
        reason = REASONS.get(promise) or f"most by *{row.work}*"
        lines.append([promise, "; ".join(cells), f"**missed**: {reason}" if wrong or share > 1 else "met"])
    return _laid_out(lines)


def table(rows: list[Row]) -> list[str]:
    """Return every row: ours beside its limits, the floor and the others. A ratio below 1 is in our favour."""
    rivals = {name: title for name, title in RIVALS.items() if any(name in row.took for row in rows)}
    titles = ["work", "versions", "ours", "p99", "at most", "÷ limit", "÷ floor"]
    titles += [f"÷ {title}" for title in rivals.values()] + ["the floor is"]
    lines = [titles]
    for row in rows:
        mine, spread = row.took.get("ours"), row.spreads.get("ours")
        lines.append(
            [
                row.work,
                row.size,
                amount(mine, row.unit) if mine is not None else "**wrong**",
                amount(spread.p99 if spread else None, row.unit),
                amount(spread.most if spread else None, row.unit),
                ", ".join(_judged(row)) or "–",
                *(_beside(row, name) for name in ("floor", *rivals)),
                row.floor_is or "–",
            ]
        )
    return _laid_out(lines)


def losses(rows: list[Row], missing: dict[str, str]) -> list[str]:
    """Return every wrong answer, every rival that is faster, and every rival that is not there."""
    out = []
    for name, title in RIVALS.items():
        both = [row for row in rows if name in row.took and "ours" in row.took]
        slower = [(row.took["ours"] / row.took[name], row) for row in both]
        behind = sorted(((factor, row) for factor, row in slower if factor > 1), key=lambda one: -one[0])
        if slower:
            named = "; ".join(f"{row.work} × {ratio(factor)}" for factor, row in behind[:5])
            out.append(
                f"- slower than {title} in {len(behind)} of {len(slower)} rows{': most by ' + named if named else ''}"
            )
    out += [f"- wrong, so not timed: {row.work} ({row.size}): {one}" for row in rows for one in row.wrong]
    out += [f"- {RIVALS.get(name, name)} is not installed: {why}" for name, why in missing.items()]
    return out


def write(parts: dict[str, list[str]], page: Path = PAGE) -> None:
    """Replace the text between the marks of each part, such as `figures 100k`. Other parts keep their text."""
    text = page.read_text(encoding="utf-8")
    for part, lines in parts.items():
        start, end = f"<!-- {part} -->", f"<!-- end {part} -->"
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


def _of(limit: Limit, found: float, row: Row) -> str:
    """Return a figure beside its limit, such as `1.42 of 1.6 × SQLite`."""
    share = found / limit.most
    other = RIVALS.get(limit.over, row.floor_is)
    if limit.over and not limit.above:
        figures, after = [ratio(found), f"{limit.most:g}"], f" × {other}"
    else:
        figures = [amount(found, row.unit), amount(limit.most, row.unit)]
        after = f" above {other}" if limit.above else ""
    mine = f"**{figures[0]}**" if share > 1 else figures[0]
    return f"{'p99 ' if limit.tail else ''}{mine} of {figures[1]}{after}"


def _judged(row: Row) -> list[str]:
    """Return how much of each limit is used."""
    shares = [(limit, row.measured(limit)) for limit in row.limits]
    return [
        f"{'p99 ' if limit.tail else ''}{ratio(found / limit.most)}"
        for limit, found in shares
        if found is not None
    ]


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
