"""Checks of callers' arguments: text, JSON, ids and periods. Each error names the value and the remedy."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from unicodedata import normalize

import orjson

from graphstore.errors import InvalidError
from graphstore.values import fingerprints
from graphstore.values.event_fields import ENDED_AT, EVENT_FIELDS, MESSAGE_TEXTS
from graphstore.values.models import Event, Json, Node
from graphstore.values.period import BEGINNING, OPEN, Instant, Period, TimeLike, instant, iso, period

Thing = Node | Event

ORIGINS = ("agent", "system")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Dates, dataclasses and subclasses would change their type in JSON: they are refused, not converted.
_STRICT = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS


def text_of(what: str, value: Any, *, empty: bool = False) -> str:
    """Return the checked text. Raises InvalidError if it is not a str, is blank (unless `empty`), or cannot be encoded as UTF-8."""
    if not isinstance(value, str):
        raise InvalidError(f"{what} {value!r} is no text. Give a str.")
    if not empty and (not value or value.isspace()):
        raise InvalidError(f"{what} is blank. Give some text.")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidError(
                f"{what} {value!r} holds a lone surrogate, which is no character. Remove it."
            ) from None
    return value


def printable(what: str, text: str) -> str:
    """Return the text. Raises InvalidError if it holds control characters."""
    if _CONTROL.search(text):
        raise InvalidError(f"{what} {text!r} holds control characters. Use printable text.")
    return text


def spellings(id: str) -> tuple[str, ...]:
    """Return the forms in which an id may be stored: as given, decomposed as stores of earlier releases may have it, and composed (NFC), which is last."""
    if id.isascii():
        return (id,)
    return (id, normalize("NFD", id), normalize("NFC", id))


def new_name(what: str, text: str) -> str:
    """Return a name for something new, composed (NFC), so that one name is never written in two ways. Raises InvalidError if it holds control characters."""
    return spellings(printable(what, text))[-1]


def optional_text(what: str, value: Any) -> str | None:
    """Return the checked text, or None."""
    return None if value is None else text_of(what, value, empty=True)


def json_object(what: str, value: Any) -> Json:
    """Return the checked JSON object. Raises InvalidError that names what JSON cannot hold."""
    if type(value) is dict:  # checked first: isinstance with the abstract class Mapping is slow
        plain = value
    elif isinstance(value, Mapping):
        plain = dict(value)
    else:
        raise InvalidError(f"{what} {brief(value)} is no JSON object. Give a dict with text keys.")
    try:
        raw = orjson.dumps(plain, option=_STRICT)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(
            f"{what} is not JSON: {error}. Allowed: objects with text keys, lists, text, 64-bit whole numbers, finite numbers, true, false, null."
        ) from None
    kept: Json = orjson.loads(raw)
    if kept != plain:
        _refuse_changed(what, plain)
    return kept


_DIGITS = bytes.maketrans(b"123456789", b"000000000")


def may_hold_long_number(raw: bytes) -> bool:
    """Return True if a JSON text has 18 digits in a row: no shorter number exceeds 64 bits."""
    return b"0" * 18 in raw.translate(_DIGITS)  # a tenth of the time of a regular expression in a long text


def _within_64_bits(text: str) -> int:
    found = int(text)
    if not -(1 << 63) <= found < 1 << 64:
        raise ValueError(f"the whole number {brief(text)} exceeds 64-bit range")
    return found


def json_read(what: str, text: str | bytes, *, kept: bool = False) -> Any:
    """Parse a JSON text. Numbers are read exactly: one beyond 64 bits is not rounded, and is refused later if it is to be stored.

    `kept`: refuse it here. Raises InvalidError for invalid JSON, with the place, and for an object with a repeated name.
    """
    try:
        raw = text.encode() if isinstance(text, str) else text
        found = orjson.loads(raw)
        if may_lack_a_name(raw, found):
            json.loads(raw, object_pairs_hook=distinct(what))
        if not may_hold_long_number(raw):
            return found
        return json.loads(raw, parse_int=_within_64_bits if kept else int)
    except UnicodeEncodeError:
        raise InvalidError(f"{what} holds a lone surrogate, which is no character. Remove it.") from None
    except InvalidError:
        raise
    except (ValueError, RecursionError) as error:  # orjson's errors are ValueErrors
        surrogate = " A lone surrogate is no character." if "surrogate" in str(error) else ""
        raise InvalidError(f"{what} is not JSON: {error}.{surrogate}") from None


def may_lack_a_name(raw: bytes, found: Any) -> bool:
    """Return True if a JSON text may have an object with a repeated name, of which the parsed value keeps only the last. False positives are rare."""
    colons = raw.count(b":")
    if colons < 2:
        return False
    if b"\\u003a" in raw or b"\\u003A" in raw:  # colons too
        return True
    try:
        return colons != orjson.dumps(found).count(b":")  # a lost pair has at least one
    except TypeError:  # nested deeper than orjson writes
        return True


def distinct(what: str) -> Callable[[list[tuple[str, Any]]], Json]:
    """Return a function that builds an object from names and values, and raises InvalidError for a repeated name."""

    def object_of(pairs: list[tuple[str, Any]]) -> Json:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise InvalidError(f"{what} has {twice!r} twice in one object. Give each name once.")
        return found

    return object_of


def json_or_text(what: str, text: str) -> Any:
    """Return the value of a text that is JSON, else the text itself. Raises InvalidError as `json_read` does."""
    try:
        orjson.loads(text)
    except ValueError:
        return text
    return json_read(what, text)


def _refuse_changed(what: str, value: Any) -> None:
    """Raise InvalidError for a part that JSON would silently convert: NaN, a UUID, an enum. Tuples count as lists."""
    if isinstance(value, dict):
        parts: Iterable[Any] = value.values()
    elif isinstance(value, (list, tuple)):
        parts = value
    elif (
        value is None
        or isinstance(value, (bool, int, str))
        or (isinstance(value, float) and math.isfinite(value))
    ):
        return
    else:
        raise InvalidError(
            f"{what} is not JSON: it holds {brief(value)}. Allowed: objects with text keys, lists, text, 64-bit whole numbers, "
            "finite numbers, true, false, null."
        )
    for part in parts:
        _refuse_changed(what, part)


def brief(value: Any) -> str:
    """Return the repr of a value, cut to 60 characters, for an error message."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


def read_once(value: Any) -> Any:
    """Return a list of an iterator's items, since they are read more than once; return anything else unchanged."""
    return list(value) if hasattr(value, "__next__") else value


def version_body(content: Any, text: Any, tags: Any, trigger: Any, source: Any) -> Json:
    """Return the body of a node's version. Absent fields are left out."""
    return {"content": json_object("content", content), **description(text, tags, trigger, source)}


def description(text: Any, tags: Any, trigger: Any, source: Any) -> Json:
    """Return the fields of a version except its content. Absent ones are left out."""
    body: Json = {}
    if text is not None:
        body["text"] = text_of("text", text, empty=True)
    if tags:
        body["tags"] = tags_of(tags)
    if trigger != "initial":
        body["trigger"] = text_of("trigger", trigger)
    if source is not None:
        body["source"] = text_of("source", source, empty=True)
    return body


def tags_of(tags: Any) -> list[str]:
    """Return the tags in order without repeats. Raises InvalidError if they are not a list of text."""
    if type(tags) is not list and (isinstance(tags, (str, bytes)) or not isinstance(tags, Iterable)):
        raise InvalidError(f"tags {tags!r} is no list. Give a list of text, such as [{tags!r}].")
    return list(dict.fromkeys([text_of("tag", tag) for tag in tags]))


def event_of(
    type: Any, description: Any, origin: Any, metadata: Any, authorized: Any = None, **texts: Any
) -> tuple[str, Json]:
    """Return the type and the body of an event, with its fingerprint. Absent fields are left out.

    A message has no fingerprint of its own, and its description may be blank if it has a medium. Raises InvalidError that lists the fields of an event.
    """
    try:
        return _event_of(type, description, origin, metadata, authorized, texts)
    except InvalidError as error:
        raise InvalidError(f"{error} {event_fields()}") from None


def event_fields() -> str:
    """Return the sentence that lists the fields of an event."""
    return f"Fields of an event: {', '.join(EVENT_FIELDS)}."


def _event_of(
    type: Any, description: Any, origin: Any, metadata: Any, authorized: Any, texts: dict[str, Any]
) -> tuple[str, Json]:
    type = text_of("type", type)
    medium = texts.get("media_path") is not None or texts.get("media_hash") is not None
    body: Json = {"description": text_of("description", description, empty=medium)}
    if origin not in ORIGINS:
        raise InvalidError.choice("origin", origin, ORIGINS)
    body["origin"] = origin
    if metadata:
        body["metadata"] = json_object("metadata", metadata)
    ended = texts.pop(ENDED_AT, None)
    if ended is not None:
        body["metadata"] = {**body.get("metadata", {}), ENDED_AT: iso(instant(ended, ENDED_AT))}
    for name, value in texts.items():
        if value is not None:
            body[name] = text_of(name, value, empty=True)
    if "agent" in body and origin != "agent":
        raise InvalidError(
            f"agent {body['agent']!r} with origin {origin!r}. Only what an agent recorded names one: leave it out, or give origin 'agent'."
        )
    if authorized is not None and not isinstance(authorized, bool):
        raise InvalidError(f"authorized {authorized!r} is neither true nor false. Give True or False.")
    if authorized is None and not body.keys().isdisjoint(MESSAGE_TEXTS):
        authorized = True
    if authorized is False or (authorized and type not in fingerprints.MESSAGES):
        body["authorized"] = authorized
    if authorized_of(type, body) is None:
        fingerprint = fingerprints.fingerprint_of(
            type, body["description"], body.get("source"), body.get("fingerprint")
        )
        if fingerprint is not None:
            body["fingerprint"] = fingerprint
    return type, body


def authorized_of(type: str, body: Json) -> bool | None:
    """Return True if a message was authorized, which is the default; None for an event that is not a message."""
    authorized: bool | None = body.get("authorized", True if type in fingerprints.MESSAGES else None)
    return authorized


def ids(what: str, value: str | Thing | Iterable[str | Thing]) -> list[str]:
    """Return one id or several as a list without repeats. A node or event may replace its id."""
    if isinstance(value, (str, Node, Event)):
        return [id_of(value)]
    if type(value) is tuple and not value:
        return []
    if not isinstance(value, Iterable):
        raise InvalidError(f"{what} {value!r} is no id. Give an id, or a list of ids.")
    return list(dict.fromkeys(text_of(what, id_of(each)) for each in value))


def names(what: str, value: str | Iterable[str]) -> list[str]:
    """Return one column name or several as a list without repeats."""
    several = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else None
    if several is None or not all(isinstance(each, str) for each in several):
        raise InvalidError(f"{what} {value!r} is no name of a column. Give a name, or a list of names.")
    return list(dict.fromkeys(several))


def sentences(kind: str, also: Iterable[Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    """Yield links, each given as `(source, target)` of `kind` or as `(source, kind, target)`. Raises InvalidError for one in another form."""
    for each in also:
        match tuple(each) if isinstance(each, Sequence) and not isinstance(each, str) else ():
            case (source, target):
                yield source, kind, target
            case (source, other, target):
                yield source, other, target
            case _:
                raise InvalidError(f"also has {each!r}. Give (source, target), or (source, kind, target).")


def id_of(value: str | Thing) -> str:
    """Return the id of a node or event; return anything else unchanged."""
    return value.id if isinstance(value, (Node, Event)) else value


Read = Callable[[TimeLike, str], Instant]
"""Reads the time that a caller gave for the argument of that name."""


def span(valid_from: TimeLike | None, valid_to: TimeLike | None, now: Instant, read: Read) -> Period:
    """Return the period of something new: by default from now, open-ended."""
    start = now if valid_from is None else read(valid_from, "valid_from")
    return period(start, OPEN if valid_to is None else read(valid_to, "valid_to"))


def part(valid_from: TimeLike | None, valid_to: TimeLike | None, read: Read) -> Period:
    """Return the period in which an existing thing changes: by default all of it."""
    return span(valid_from, valid_to, BEGINNING, read)


def whole_number(what: str, value: Any) -> int | None:
    """Return the checked whole number of at least 1, or None for no limit."""
    return None if value is None else at_least_one(what, value, " or None for no limit")


def at_least_one(what: str, value: Any, otherwise: str = "") -> int:
    """Return the checked whole number of at least 1. `otherwise`: what else a caller may give."""
    return whole_within(what, value, 1, otherwise=otherwise)


def whole_within(what: str, value: Any, least: int, most: int | None = None, *, otherwise: str = "") -> int:
    """Return the checked whole number from `least` to `most`; None for no upper bound. `otherwise`: what else a caller may give."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        allowed = f"of at least {least}" if most is None else f"from {least} to {most}"
        comma = "," if otherwise else ""
        raise InvalidError(
            f"{what} {value!r} is out of range. Give a whole number {allowed}{comma}{otherwise}."
        )
    whole: int = value
    return whole
