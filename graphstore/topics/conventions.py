"""Reads time, topic and supersessions from marks in plain messages.

Marks are at the head of a text, in any order: `[2026-01-30]`, `#auth #decision @2026-01-30`, `[SUPERSEDES node_5, node_7]`. A role may be
`Architect@2026-01-30`. The first word that is not a mark ends the head; later marks are plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphstore.errors import InvalidError
from graphstore.values.inputs import ids, tags_of, text_of
from graphstore.values.models import Json
from graphstore.values.period import Instant, exactly, instant

EVIDENCE = "evidence"
"""The kind of a message's node, unless the message names another."""
FIELDS = ("role", "content", "text", "id", "kind", "key", "tags", "session", "session_id", "timestamp", "created_at", "supersedes")  # fmt: skip
"""The fields of a message that are not content. All others are kept in the content."""

_DATE = r"\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}(?::?\d{2}){0,2}(?:[.,]\d+)?\s*(?:Z|[+-]\d{2}:?\d{2})?)?"
_MARK = re.compile(
    r"\s*(?:\[(?P<bracket>[^\[\]\n]*)\](?!\():?"  # with a "(" behind it, it is a link in Markdown
    r"|\#(?P<tag>[^\W\d_]\w*(?:[./-]\w+)*)[,;:]?(?=\s|\Z)"
    rf"|@(?P<date>{_DATE.replace('[T ]', 'T')})[,;:]?(?=\s|\Z))"
)
_WHOLE_DATE = re.compile(_DATE)
_ROLE = re.compile(rf"(?P<name>.*)@(?P<date>{_DATE})")
_SUPERSEDES = re.compile(r"supersedes(?:\s*:\s*|\s+|\Z)(?P<ids>.*)", re.IGNORECASE)
_COLOUR = re.compile(r"(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE)
_CODE = frozenset({"include", "define", "undef", "ifdef", "ifndef", "endif", "pragma"})
_LATE_SUPERSESSION = re.compile(r"\[supersedes\s[^\[\]\n]*\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextHead:
    """Holds the marks at the head of a text, and the text without them. `dated`: the date next to tags, `prefixed`: the date in brackets."""

    text: str
    tags: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    dated: Instant | None = None
    prefixed: Instant | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A message ready to be written. `at`: the start of its validity, None without a date; `remarks`: notes for the caller."""

    content: Json
    text: str
    kind: str = EVIDENCE
    id: str | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    at: Instant | None = None
    supersedes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(slots=True)
class _Marks:
    tags: list[str] = field(default_factory=list)
    supersedes: list[str] = field(default_factory=list)
    dates: dict[str, Instant] = field(default_factory=dict)

    def accept(self, found: re.Match[str]) -> bool:
        """Accept a mark. Return False if it is plain text."""
        bracket, tag, date = found.group("bracket", "tag", "date")
        if date is not None:
            self._date("dated", date, f"@{date}")
        elif tag is not None:
            if not is_tag(tag):
                return False
            self.tags.append(tag)
        elif _WHOLE_DATE.fullmatch(bracket.strip()):
            self._date("prefixed", bracket.strip(), f"[{bracket}]")
        else:
            named = _SUPERSEDES.fullmatch(bracket.strip())
            if named is None:
                return False
            self._supersede(bracket, named["ids"])
        return True

    def _date(self, place: str, written: str, shown: str) -> None:
        at = instant(written, f"the date in {shown!r}")
        if self.dates.setdefault(place, at) != at:
            raise InvalidError(f"{shown!r} is the second date of its kind, and another one. Leave one out.")

    def _supersede(self, bracket: str, named: str) -> None:
        found = [name for part in named.split(",") if (name := part.strip())]
        if not found:
            raise InvalidError(
                f"'[{bracket}]' names nothing. Give an id, or several with commas: [SUPERSEDES node_5]."
            )
        self.supersedes += found


def head_of(text: str) -> TextHead:
    """Return the marks at the head of a text. Raise InvalidError for an invalid date, two dates of one kind, or `[SUPERSEDES]` without an id.

    >>> head_of("#auth #decision @2026-01-30 Using JWT tokens").tags
    ('auth', 'decision')
    >>> head_of("[supersedes node_5] Auth changed").supersedes
    ('node_5',)
    >>> head_of("#12 and #fff, # Title: no tags").tags
    ()
    """
    marks, end = _Marks(), 0
    while (found := _MARK.match(text, end)) and marks.accept(found):
        end = found.end()
    return TextHead(
        text[end:].lstrip() if end else text,
        tuple(dict.fromkeys(marks.tags)),
        tuple(dict.fromkeys(marks.supersedes)),
        marks.dates.get("dated"),
        marks.dates.get("prefixed"),
    )


def is_tag(word: str) -> bool:
    """Return True if the word after a hash sign is a tag, and not a colour (`#fff`, `#c0ffee`) or a line of code (`#include`)."""
    return not _COLOUR.fullmatch(word) and word not in _CODE


def role_of(role: str) -> tuple[str, Instant | None]:
    """Return a role's name and the date after it. Raise InvalidError for an invalid date.

    >>> role_of("user@2026.com")
    ('user@2026.com', None)
    """
    found = _ROLE.fullmatch(role.strip())
    if found is None:
        return role, None
    return found["name"].strip(), instant(found["date"], f"the date in role {role!r}")


def note_of(message: Any, session: str | None = None, kind: str = EVIDENCE) -> Note:
    """Return a message as a note. It is a dict with `role` and `content` (text, or a list of parts), or a pair (role, text).

    Among dates the first of these wins: next to the tags, in the prefix, in the role, the `timestamp`. `session` and `kind` are defaults. Raise
    InvalidError for anything else, and as `head_of` does.
    """
    row = _row(message)
    text, others = _text_and_parts(row)
    head = head_of(text)
    name, in_role = (None, None) if row.get("role") is None else role_of(text_of("role", row["role"]))
    found = {"its tags": head.dated, "its prefix": head.prefixed, "its role": in_role, "": _timestamp(row)}
    dates = {place: at for place, at in found.items() if at is not None}
    own = _first(row, "session", "session_id")
    content: Json = {field: value for field, value in row.items() if field not in FIELDS}
    content |= {"parts": others} if others else {}
    content |= {"text": head.text}
    content |= {"role": name} if name else {}
    in_session = session if own is None else own
    content |= {} if in_session in (None, "") else {"session": in_session}
    own_kind, own_tags = row.get("kind"), row.get("tags")
    return Note(
        content,
        head.text,
        kind if own_kind is None else text_of("kind", own_kind),
        None if row.get("id") is None else text_of("id", row["id"]),
        None if row.get("key") is None else text_of("key", row["key"]),
        tuple(dict.fromkeys([*head.tags, *(tags_of(own_tags) if own_tags else ())])),
        next(iter(dates.values()), None),
        tuple(dict.fromkeys([*head.supersedes, *ids("supersedes", row.get("supersedes") or ())])),
        tuple(_remarks(head.text, dates)),
    )


def _row(message: Any) -> dict[str, Any]:
    if isinstance(message, Mapping):
        row = dict(message)
    elif isinstance(message, (tuple, list)) and len(message) == 2:
        row = {"role": message[0], "content": message[1]}
    else:
        words = "Give a dict with role and content, or a pair (role, text)."
        raise InvalidError(f"{message!r} is no message. {words}")
    if ("content" in row) == ("text" in row):
        both = "both content and text" if "content" in row else "no content"
        raise InvalidError(f"a message with {both}: {row!r}. Give its words as content.")
    return row


def _text_and_parts(row: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the text of a message, and its parts without text: pictures, tool calls."""
    given = row.get("content", row.get("text"))
    if given is None:
        return "", []  # a message that only calls a tool
    if isinstance(given, str):
        return text_of("content", given, empty=True), []
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise InvalidError(f"content {given!r} is no text and no list of parts. Give a str.")
    texts, others = [], []
    for part in given:
        words = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(words, str):
            texts.append(text_of("content", words, empty=True))
        else:
            others.append(part)
    return "\n".join(texts), others


def _first(row: Mapping[str, Any], *fields: str) -> Any:
    return next((row[field] for field in fields if row.get(field) is not None), None)


def _timestamp(row: Mapping[str, Any]) -> Instant | None:
    at = _first(row, "timestamp", "created_at")
    return None if at is None else instant(at, "timestamp")


def _remarks(text: str, dates: Mapping[str, Instant]) -> Iterable[str]:
    (first, won), *others = dates.items() or [("", 0)]
    for place, at in others:
        if place and at != won:
            yield f"the date of {place}, {exactly(at)}, gives way to that of {first}, {exactly(won)}."
    late = _LATE_SUPERSESSION.search(text)
    if late:
        yield f"{late[0]!r} does not stand at the head, so it is text and supersedes nothing."
