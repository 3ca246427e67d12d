"""Parse the text format of observations: below each date a list of items, each with a priority and its details below it.

    ## 2026-01-30
    - [HIGH] the deploy of Tuesday broke the login
      - sessions were lost
    - [LOW] [SUPERSEDES 4a1f…] the team moves in March

A line in another format is kept as text, with a warning, since models do not always keep to the format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from graphstore.errors import InvalidError
from graphstore.topics.conventions import head_of
from graphstore.values.period import Instant, instant

Priority = Literal["HIGH", "MEDIUM", "LOW"]
PRIORITIES: tuple[Priority, ...] = ("HIGH", "MEDIUM", "LOW")
_HEADING = re.compile(r" {0,3}##\s+(?P<date>\d{4}-\d{1,2}-\d{1,2})\s*#*\s*")
_ITEM = re.compile(r" {0,1}[-*+]\s+\[(?P<word>\w+)\]:?\s*(?P<text>.*)")
_BULLET = re.compile(r" {0,1}[-*+]\s+(?P<text>.*)")
_REPLACES = re.compile(r"\s*\[SUPERSEDES:?\s+(?P<ids>[\w.:-]+(?:\s*,\s*[\w.:-]+)*)\]", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?:```|~~~)\w*\s*")


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation. `priority` is None if none is written; `date` is None if it is below no date; `details` keep their indentation."""

    text: str
    priority: Priority | None = None
    date: Instant | None = None
    details: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()

    @property
    def whole(self) -> str:
        """Return the text with its details below it."""
        return "\n".join((self.text, *self.details))


@dataclass(frozen=True, slots=True)
class ObservationWarning:
    """Reports a line in another format: its number from 1, and why it was kept as text."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """Holds the observations of a text in their order, and warnings for the lines kept as text."""

    observations: tuple[Observation, ...]
    warnings: tuple[ObservationWarning, ...]


def parse(text: str) -> Parsed:
    """Parse the observations of a text. Nothing is refused: a line in another format becomes an observation with that text.

    Marks of an item are read as in messages: `[SUPERSEDES id]`, anywhere in it, `#tag` at its head, and a date, which counts before that of the section.
    """
    found: list[Observation] = []
    warnings: list[ObservationWarning] = []
    date: Instant | None = None
    for number, line in enumerate(_unfenced(text.splitlines()), 1):
        entry = line.rstrip()
        if not entry.strip() or _FENCE.fullmatch(entry):
            continue
        reason: str | None = None
        if heading := _HEADING.fullmatch(entry):
            try:
                date = instant(heading["date"], "the date of a section")
                continue
            except InvalidError as error:
                date, reason = None, str(error)
                found.append(Observation(entry.strip()))
        elif found and (entry[0] == "\t" or entry.startswith("  ")):
            found[-1] = replace(found[-1], details=(*found[-1].details, entry.expandtabs(4)))
        else:
            observation, reason = _item(entry, date)
            found.append(observation)
        if reason:
            warnings.append(
                ObservationWarning(number, f"{reason} It is kept as text: {entry.strip()[:80]!r}")
            )
    return Parsed(tuple(found), tuple(warnings))


def _unfenced(lines: list[str]) -> list[str]:
    """Return the lines, with blank first and last lines where these are a fence around the whole text."""
    filled = [at for at, line in enumerate(lines) if line.strip()]
    if len(filled) > 1 and all(_FENCE.fullmatch(lines[at]) for at in (filled[0], filled[-1])):
        return ["" if at in (filled[0], filled[-1]) else line for at, line in enumerate(lines)]
    return lines


def _item(entry: str, date: Instant | None) -> tuple[Observation, str | None]:
    """Parse one line; return the observation, and what is wrong with the line or None."""
    replaced = [id.strip() for found in _REPLACES.finditer(entry) for id in found["ids"].split(",")]
    if not replaced or _BULLET.fullmatch(entry) is None:
        return _plain_item(entry, date)
    observation, reason = _plain_item(_REPLACES.sub("", entry), date)
    return replace(observation, supersedes=tuple(dict.fromkeys(replaced))), reason


def _plain_item(entry: str, date: Instant | None) -> tuple[Observation, str | None]:
    item = _ITEM.fullmatch(entry)
    if item is None:
        bullet = _BULLET.fullmatch(entry)
        reason = "no priority." if bullet else "no heading with a date and no item."
        return Observation((bullet["text"] if bullet else entry).strip(), date=date), reason
    word = item["word"].upper()
    plain = _BULLET.fullmatch(entry)
    assert plain is not None
    as_text = Observation(plain["text"].strip(), date=date)
    priority = next((each for each in PRIORITIES if each == word), None)
    if priority is None:
        return as_text, f"{item['word']!r} is no priority. Valid: {', '.join(PRIORITIES)}."
    try:
        head = head_of(item["text"])
    except InvalidError as error:
        return replace(as_text, text=item["text"].strip(), priority=priority), str(error)
    if not head.text.strip():
        return as_text, "a priority of nothing."
    own = head.dated if head.dated is not None else head.prefixed
    return Observation(
        head.text.strip(), priority, date if own is None else own, (), head.tags, head.supersedes
    ), None
