"""The pictures of README, drawn from the answers of a store: `make pictures` writes them, and a test fails when one is out of date.

`plane.svg` has one rectangle for each row of `rate_limit` in examples/team.jsonl. `chain.svg` is a chain as a notebook shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape
from pathlib import Path

import graphstore
from graphstore.imports import import_jsonl

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
NOW = "2026-03-10"


def write() -> None:
    """Write every picture."""
    for name, picture in PICTURES.items():
        (HERE / name).write_text(picture(), encoding="utf-8")


def _team() -> graphstore.GraphStore:
    store = graphstore.open(":memory:")
    import_jsonl(store, EXAMPLES / "team.jsonl", EXAMPLES / "team.toml")
    return store


# ---- the plane of the two times ---------------------------------------------------------------

WIDTH, HEIGHT = 940, 452
LEFT, RIGHT, TOP, BOTTOM = 110, 900, 34, 392
FIRST, LAST = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 3, 14, tzinfo=UTC)
DAY = "2026-02-17"

_PLANE_CSS = """text{font:13px system-ui,sans-serif;fill:#1b1f24}.s{fill:#57606a;font-size:12px}.b{font-weight:600}.paper{fill:#fff}
.axis{stroke:#57606a;fill:none;stroke-width:1.2}.head{fill:#57606a}.grid{stroke:#d8dee4;stroke-dasharray:3 3}
.row{stroke:#fff;stroke-width:2}.v1{fill:#cfe3f5}.v2{fill:#f6d9b8}.v3{fill:#cdebd6}.ask{fill:#1b1f24;stroke:#fff;stroke-width:1.5}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9aa4af}.paper{fill:#0d1117}.axis{stroke:#9aa4af}.head{fill:#9aa4af}
.grid{stroke:#30363d}.row{stroke:#0d1117}.v1{fill:#17405f}.v2{fill:#5f4115}.v3{fill:#1d4d31}.ask{fill:#e6edf3;stroke:#0d1117}}"""


def plane() -> str:
    """Valid time from left to right, transaction time upwards: one rectangle for each row, and a dot for each question of README."""
    with _team() as store:
        rows = store.versions("rate_limit")
        asked = [
            (tx, store.as_of(valid=DAY, tx=tx).node("rate_limit").content["says"])
            for tx in (DAY, "2026-02-24", NOW)
        ]
    begins = sorted({row.valid_from for row in rows})
    recorded = sorted({row.tx_from for row in rows})
    title = "The rate limit in the plane of two times: one rectangle for each row the store holds"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{title}"><title>{title}</title><style>{_PLANE_CSS}</style>',
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        *(_rectangle(row) for row in rows),
        *(
            f'<path class="grid" d="M{LEFT},{_y(at)}H{RIGHT}"/><text class="s" x="{LEFT - 10}" y="{_y(at) + 4}" text-anchor="end">'
            f"{at.day} {at:%B}</text>"
            for at in recorded
        ),
        *(
            f'<path class="grid" d="M{_x(at)},{BOTTOM}V{TOP}"/><text class="s" x="{_x(at)}" y="{BOTTOM + 18}" text-anchor="middle">'
            f"{at.day} {at:%B}</text>"
            for at in begins
        ),
        f'<path class="axis" d="M{LEFT},{BOTTOM}H{RIGHT + 18}M{LEFT},{BOTTOM}V{TOP - 14}"/>',
        f'<path class="head" d="M{RIGHT + 26},{BOTTOM}l-10,-4v8ZM{LEFT},{TOP - 22}l-4,10h8Z"/>',
        f'<text class="b" x="{RIGHT + 26}" y="{BOTTOM + 18}" text-anchor="end">valid time: when it was true</text>',
        f'<text class="b" x="{LEFT + 12}" y="{TOP - 12}">transaction time: when it was recorded</text>',
        *(_dot(tx) for tx, _ in asked),
        f'<text class="b" x="{LEFT}" y="{HEIGHT - 13}">What was true on {_date(DAY)}?</text>',
        *(
            f'<text class="s" x="{LEFT + 210 + 200 * number}" y="{HEIGHT - 13}">as known {_date(tx)}: {_words(says)}</text>'
            for number, (tx, says) in enumerate(asked)
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _rectangle(row: graphstore.Version) -> str:
    left, right = _x(row.valid_from), _x(row.valid_to or LAST)
    top, bottom = _y(row.tx_to or LAST), _y(row.tx_from)
    return (
        f'<rect class="row v{row.number}" x="{left}" y="{top}" width="{right - left:.1f}" height="{bottom - top:.1f}"/>'
        f'<text class="b" x="{right - 12:.1f}" y="{bottom - 28:.1f}" text-anchor="end">{_words(row.content["says"])}</text>'
        f'<text class="s" x="{right - 12:.1f}" y="{bottom - 11:.1f}" text-anchor="end">{escape(row.ref)} · {escape(row.content["by"])}</text>'
    )


def _dot(tx: str) -> str:
    x, y = _x(_instant(DAY)), _y(_instant(tx))
    return f'<circle class="ask" cx="{x}" cy="{y}" r="5"/><text class="s" x="{x + 11}" y="{y + 4}">as known {_date(tx)}</text>'


def _x(at: datetime) -> float:
    return round(LEFT + (at - FIRST) / (LAST - FIRST) * (RIGHT - LEFT), 1)


def _y(at: datetime) -> float:
    return round(BOTTOM - (at - FIRST) / (LAST - FIRST) * (BOTTOM - TOP), 1)


def _instant(date: str) -> datetime:
    return datetime.fromisoformat(date).replace(tzinfo=UTC)


def _date(date: str) -> str:
    return f"{_instant(date).day} {_instant(date):%b}"


def _words(says: str) -> str:
    return escape(says.removeprefix("the API allows ").replace(" requests", "", 1))


# ---- a chain of causes ------------------------------------------------------------------------


def chain() -> str:
    """What the outage led to, by the drawing that a notebook shows: the same SVG, with its style inside."""
    with _team() as store:
        shown = store.as_of(valid=NOW, tx=NOW).effects("login_outage")
    page = shown._repr_html_()
    drawn = re.search(r"<svg xmlns.*</svg>", page, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert drawn is not None and style is not None
    width, height = re.findall(r'viewBox="0 0 (\d+) (\d+)"', drawn[0])[0]
    inside = f'<style>{_plain(style[1])}</style><rect class="paper" width="{width}" height="{height}"/>'
    return drawn[0].replace("<svg ", '<svg class="graphstore" ', 1).replace(">", f">{inside}", 1) + "\n"


def _plain(css: str) -> str:
    """The style with its colours written out, since not every viewer of an SVG knows variables."""
    light, dark = (
        dict(re.findall(r"--(\w+):(#\w+)", part)) for part in css.partition("[data-")[0].split("@media", 1)
    )
    rules = "".join(
        f"{selector.strip().replace('.graphstore svg', '.graphstore')}{{{body}}}"
        for selector, body in re.findall(r"(\.graphstore svg[^{}]*|\.graphstore \.[^{}]*)\{([^{}]*)\}", css)
    )
    rules += ".paper{fill:var(--paper)}"
    coloured = [re.sub(r"var\(--(\w+)\)", lambda name, of=of: of[name[1]], rules) for of in (light, dark)]
    return f"{coloured[0]}@media (prefers-color-scheme:dark){{{coloured[1]}}}"


PICTURES: dict[str, Callable[[], str]] = {"plane.svg": plane, "chain.svg": chain}
"""The files beside this one and the function that draws each."""

if __name__ == "__main__":
    write()
