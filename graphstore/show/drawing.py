"""The drawing of a scene as one SVG element: valid time from left to right, a row for each bar, arrows between rows.

No ids and no definitions: several drawings stand on one page, and hiding one must not take the arrow heads of another. Colours are the page's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from itertools import accumulate, pairwise
from typing import Any

from graphstore.show.scenes import Arrow, Bar, Scene
from graphstore.values.period import instant, moment, when
from graphstore.values.text import line

WIDTH = 940
NAMES = 300
"""Pixels of the column of names; nothing of time is drawn in it."""
LEFT, RIGHT = 336, 900
"""Where the earliest and the latest instant lie."""
EDGE = 932
"""Where an open end points to."""
TOP, ROW, HALF = 40, 36, 6
_TICK = 98  # pixels a date needs for itself
_BREAK = 0.12  # of the width, for a gap that is shown broken
_BREAKS = 4
_ENOUGH = 8  # pixels by which two instants can be distinguished
_SHORT = 10_000_000  # microseconds; what happens within them needs no room of its own


class Axis:
    """Places instants from left to right: in proportion to time, but for a few very long gaps, drawn short and marked as broken.

    `starts` are the instants one should be able to distinguish: no more gaps are broken than that takes. The others only have to be in order.
    """

    def __init__(self, starts: Iterable[datetime], others: Iterable[datetime] = ()) -> None:
        apart = {instant(at) for at in starts}
        self.times = sorted(apart | {instant(at) for at in others})
        self._gaps = [later - earlier for earlier, later in pairwise(self.times)]
        span = sum(self._gaps)
        longest = sorted(range(len(self._gaps)), key=self._gaps.__getitem__, reverse=True)
        best = -1.0
        for number in range(min(_BREAKS, len(longest) - 1) + 1 if longest else 1):
            at, broken = self._laid(set(longest[:number]))
            least = min(
                (at[b] - at[a] for a, b in pairwise(sorted(apart)) if b - a >= min(_SHORT, span / 20)),
                default=_ENOUGH,
            )
            if least > best:
                best, self._at, self.broken = least, at, broken
            if least >= _ENOUGH:
                break

    def _laid(self, broken: set[int]) -> tuple[dict[int, float], set[int]]:
        """The position of each instant when these gaps are broken."""
        linear = sum(gap for place, gap in enumerate(self._gaps) if place not in broken)
        short = _BREAK * (RIGHT - LEFT)
        scale = (RIGHT - LEFT - short * len(broken)) / linear if linear else 0.0
        steps = (short if place in broken else gap * scale for place, gap in enumerate(self._gaps))
        places = [round(x, 1) for x in accumulate(steps, initial=float(LEFT))]
        return dict(zip(self.times, places, strict=False)), broken  # no instant at all has one place

    def x(self, at: datetime | int) -> float:
        """The position of an instant that the axis was made of."""
        return self._at[at if isinstance(at, int) else instant(at)]

    def breaks(self) -> list[float]:
        """The middle of each broken gap."""
        return [
            (self.x(self.times[place]) + self.x(self.times[place + 1])) / 2 for place in sorted(self.broken)
        ]


def drawing(scene: Scene) -> str:
    """The scene as an `<svg>` element."""
    bars = scene.bars
    here = [] if scene.here is None else [scene.here]
    rest = (at for each in bars for at in (each.end, each.recorded_at) if at is not None)
    axis = Axis((each.start for each in bars), [*here, *rest])
    height = drawing_height(scene)
    places = {each.name: number for number, each in enumerate(bars)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{escape(line(scene.title, 200))}">',
        _dates(axis, bars, height - 30),
        *(
            f'<path class="here" d="M{axis.x(at)},{TOP - 4}V{height - 30}"><title>valid {when(at)}: the view</title></path>'
            for at in here
        ),
        *(_bar(each, axis, number) for number, each in enumerate(bars)),
        *(_arrow(each, axis, bars, places) for each in scene.arrows if {each.tail, each.head} <= places.keys()),
        _legend(scene, height - 10),
        "</svg>",
    ]  # fmt: skip
    return "".join(parts)


def drawing_height(scene: Scene) -> int:
    """The pixels that a scene is high."""
    return TOP + ROW * len(scene.bars) + 30


# ---------------------------------------------------------------- the axis


def _dates(axis: Axis, bars: Iterable[Bar], bottom: int) -> str:
    """A few dates over the picture, each an instant of it, with a line down."""
    stand = {instant(at) for each in bars for at in (each.start, each.end) if at is not None}
    chosen = _spread(sorted(stand), axis)
    clock = any(time % 86_400_000_000 for time in chosen)
    parts, day = [], ""
    for time in chosen:
        x, at = axis.x(time), moment(time)
        anchor = "start" if x < LEFT + 34 else "end" if x > RIGHT - 34 else "middle"
        date = at.strftime("%Y-%m-%d")
        parts.append(f'<path class="grid" d="M{x},{TOP - 8}V{bottom}"/>')
        if date != day:
            parts.append(f'<text class="s" x="{x}" y="12" text-anchor="{anchor}">{date}</text>')
        if clock:
            parts.append(
                f'<text class="s" x="{x}" y="26" text-anchor="{anchor}">{at.strftime(_clock(chosen))}</text>'
            )
        day = date
    parts.append(f'<path class="grid" d="M{LEFT},{TOP - 8}H{EDGE}"/>')
    parts += [
        f'<path class="broken" d="M{x - 4:.1f},{TOP - 2}l3,-8M{x + 1:.1f},{TOP - 2}l3,-8">'
        "<title>time is left out here</title></path>"
        for x in axis.breaks()
    ]
    return "".join(parts)


def _clock(times: Iterable[int]) -> str:
    return "%H:%M:%SZ" if any(time // 1_000_000 % 60 for time in times) else "%H:%MZ"


def _spread(times: list[int], axis: Axis) -> list[int]:
    """The first instant, the last, and of the others as many as have room."""
    if not times:
        return []
    last = axis.x(times[-1])
    chosen = [times[0]]
    for time in times[1:-1]:
        if axis.x(time) - axis.x(chosen[-1]) >= _TICK and last - axis.x(time) >= _TICK:
            chosen.append(time)
    if last - axis.x(times[0]) >= _TICK:
        chosen.append(times[-1])
    return chosen


# ---------------------------------------------------------------- a row


def _bar(each: Bar, axis: Axis, number: int) -> str:
    top, middle = TOP + ROW * number, TOP + ROW * number + ROW // 2
    recorded = axis.x(each.recorded_at)
    style = ("e" if each.happened else "l" if each.link else "n") + (" pale" if each.pale else "")
    shape = _event(each, axis, middle) if each.happened else _period(each, axis, middle)
    first = line(each.words or each.name, 42)
    second = f"{each.sign} {each.kind}".strip()
    if not each.link:
        second = f"{second} · {line(each.name, 30)}"
    about = f"{line(each.words or each.name, 120)} · {each.period} · {each.standing} · recorded {when(each.recorded_at)}"
    return (
        f'<svg x="0" y="{top}" width="{NAMES}" height="{ROW}" overflow="hidden">'
        f'<text x="2" y="15">{escape(first)}</text><text class="s" x="2" y="29">{escape(line(second, 50))}</text></svg>'
        f'<path class="grid" d="M0,{top + ROW}H{WIDTH}"/>'
        f'<g class="{style}"><title>{escape(about)}</title>{shape}</g>'
        f'<g class="told"><title>recorded {when(each.recorded_at)}</title><path d="M{recorded},{middle - 11}V{middle + 11}"/>'
        f'<circle cx="{recorded}" cy="{middle - 11}" r="2.5"/></g>'
    )


def _period(each: Bar, axis: Axis, y: int) -> str:
    """A bar from start to end; an open end is an arrow to the edge."""
    x = axis.x(each.start)
    half = HALF - 2 if each.link else HALF
    if each.end is None:
        return f'<path class="bar" d="M{x},{y - half}H{EDGE - 9}L{EDGE},{y}L{EDGE - 9},{y + half}H{x}Z"/>'
    return f'<path class="bar" d="M{x},{y - half}H{max(axis.x(each.end), x + 2)}V{y + half}H{x}Z"/>'


def _event(each: Bar, axis: Axis, y: int) -> str:
    """A diamond; with a line to a second one where it happened again."""
    x = axis.x(each.start)
    diamond = f'<path class="bar" d="M{x - 7},{y}L{x},{y - 7}L{x + 7},{y}L{x},{y + 7}Z"/>'
    if each.end is None or each.end == each.start:
        return diamond
    last = axis.x(each.end)
    return f'<path d="M{x},{y - 1}H{last}V{y + 1}H{x}Z"/>{diamond}<path d="M{last - 4},{y}l4,-4 4,4 -4,4Z"/>'


# ---------------------------------------------------------------- between rows


def _arrow(each: Arrow, axis: Axis, bars: tuple[Bar, ...], places: dict[str, int]) -> str:
    """From the edge of one row's bar to the beginning of another's, with the sentence and its reason behind it."""
    tail, head = bars[places[each.tail]], bars[places[each.head]]
    from_y, to_y = (TOP + ROW * places[name] + ROW // 2 for name in (each.tail, each.head))
    first, target = axis.x(tail.start), axis.x(head.start)
    last = first if tail.happened else EDGE - 12 if tail.end is None else axis.x(tail.end)
    tip = target - (9 if head.happened else 2)
    leave = min(max(first, tip - 14), last)
    side = 1 if to_y > from_y else -1
    if leave <= tip - 8:
        path = f"M{leave:.1f},{from_y + side * 8}C{leave:.1f},{to_y} {leave:.1f},{to_y} {tip - 5:.1f},{to_y}"
    else:
        leave = first - (8 if tail.happened else 1)
        out = min(leave, tip) - 24
        path = f"M{leave:.1f},{from_y}C{out:.1f},{from_y} {out:.1f},{to_y} {tip - 5:.1f},{to_y}"
    about = line(each.sentence, 120) + (f": {line(each.reason, 160)}" if each.reason else "")
    return (
        f'<g class="a {each.manner}"><title>{escape(about)}</title><path d="{path}"/>'
        f'<polygon class="h" points="{tip:.1f},{to_y} {tip - 8:.1f},{to_y - 4} {tip - 8:.1f},{to_y + 4}"/></g>'
    )


def _legend(scene: Scene, y: int) -> str:
    """Return what the marks mean, of those that are there."""
    bars = scene.bars
    marks = [
        (any(not each.happened for each in bars), "held over this time", f'<path class="n" d="M0,{y - 8}h22v8h-22Z"/>'),
        (any(each.happened for each in bars), "happened", f'<path class="e" d="M9,{y - 4}l6,-6 6,6 -6,6Z"/>'),
        (any(each.pale for each in bars), "no longer stands", f'<path class="n pale" d="M0,{y - 8}h22v8h-22Z"/>'),
        (True, "recorded", f'<g class="told"><path d="M16,{y - 12}v14"/><circle cx="16" cy="{y - 12}" r="2.5"/></g>'),
    ]  # fmt: skip
    manners = (("cause", "led to"), ("succession", "was replaced by"), ("other", "another link"))
    for manner, meaning in manners:
        there = any(each.manner == manner for each in scene.arrows)
        head = f'<polygon class="h" points="24,{y - 4} 16,{y - 8} 16,{y}"/>'
        marks.append((there, meaning, f'<g class="a {manner}"><path d="M0,{y - 4}H18"/>{head}</g>'))
    shown = [(meaning, mark) for there, meaning, mark in marks if there]
    places = accumulate((44 + 6.4 * len(meaning) for meaning, _ in shown), initial=2.0)
    return "".join(
        f'<g transform="translate({x:.0f},0)">{mark}<text class="s" x="29" y="{y}">{meaning}</text></g>'
        for x, (meaning, mark) in zip(places, shown, strict=False)
    )


# ---------------------------------------------------------------- steps

_HIGH = 220
"""Pixels of a drawing of steps."""
_LINES = 6
_MANNERS = ("n", "e", "l")
_DASHES = ("", "6 3")


def stairs(title: str, lines: Mapping[str, Sequence[tuple[datetime, datetime | None, Any]]]) -> str:
    """Step functions as one `<svg>` element, a line for each, at most six: an open end goes on to the edge. What is no number has no drawing."""
    drawn = {
        name: steps
        for name, steps in lines.items()
        if steps and all(isinstance(step[2], int | float) for step in steps)
    }
    hidden = len(drawn) - _LINES
    drawn = dict(list(drawn.items())[:_LINES])
    if not drawn:
        return ""
    times = sorted(
        {instant(at) for steps in drawn.values() for step in steps for at in step[:2] if at is not None}
    )
    values = [step[2] for steps in drawn.values() for step in steps]
    low, high = min(0, *values), max(0, *values)
    scale = (RIGHT - NAMES) / ((times[-1] - times[0]) or 1)
    bottom = TOP + _HIGH
    height = bottom + 30 + 16 * (hidden > 0)

    fine = 1 if len(values) <= 300 else 0

    def x(at: datetime) -> float:
        return round(NAMES + (instant(at) - times[0]) * scale, fine)

    def y(value: float) -> float:
        return float(round(bottom - (value - low) / ((high - low) or 1) * _HIGH, 1))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{escape(line(title, 200))} over time">',
        f'<text x="2" y="15">{escape(line(title, 60))}</text>',
    ]
    for value in dict.fromkeys((low, high)):
        at = y(value)
        parts.append(
            f'<path class="grid" d="M{NAMES},{at}H{EDGE}"/><text class="s" x="{NAMES - 6}" y="{at + 4}" text-anchor="end">{value:,.6g}</text>'
        )
    for at, anchor in dict.fromkeys(((times[0], "start"), (times[-1], "end"))):
        parts.append(
            f'<text class="s" x="{x(moment(at))}" y="{bottom + 16}" text-anchor="{anchor}">{when(moment(at))}</text>'
        )
    for number, (name, steps) in enumerate(drawn.items()):
        style, dash = _MANNERS[number % 3], _DASHES[number // 3]
        path: list[str] = []
        last = (0.0, 0.0)
        for begin, end, value in steps:
            here, there, up = x(begin), EDGE if end is None else x(end), y(value)
            if here == there:
                continue
            path.append((f"V{up}" if path and last[0] == here else f"M{here},{up}") + f"H{there}")
            last = (there, up)
        key = 30 + 18 * number
        parts.append(
            f'<g class="{style}" style="fill:none;stroke-width:1.6;stroke-dasharray:{dash or "none"}"><title>{escape(line(name or title, 120))}</title>'
            f'<path d="{"".join(path)}"/><path d="M2,{key}h20"/></g><text class="s" x="28" y="{key + 4}">{escape(line(name or title, 40))}</text>'
        )
    if hidden > 0:
        parts.append(f'<text class="s" x="2" y="{height - 6}">{hidden:,} more are not drawn</text>')
    return "".join([*parts, "</svg>"])
