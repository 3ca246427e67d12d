"""Checks of callers' arguments: text, JSON, ids and periods. Each error names the value and the remedy."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from graphstore.errors import InvalidError
from graphstore.values import fingerprints
from graphstore.values.event_fields import ENDED_AT, EVENT_FIELDS, MESSAGE_TEXTS
from graphstore.values.models import Event, Json, Node
from graphstore.values.period import BEGINNING, OPEN, Instant, Period, TimeLike, instant, iso, period

Thing = Node | Event

ORIGINS = ("agent", "system")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# dates, dataclasses and subclasses would change kind on the way through JSON: refused, not converted
_STRICT = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS


def text_of(what: str, value: Any, *, empty: bool = False) -> str:
    """Return the checked text. Raises InvalidError for what is no text, blank (unless `empty`), or cannot be written as UTF-8."""
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
    """Return the text. Raises InvalidError where it holds control characters."""
    if _CONTROL.search(text):
        raise InvalidError(f"{what} {text!r} holds control characters. Use printable text.")
    return text


def optional_text(what: str, value: Any) -> str | None:
    """Return the checked text, or None."""
    return None if value is None else text_of(what, value, empty=True)


def json_object(what: str, value: Any) -> Json:
    """Return the checked JSON object. Raises InvalidError naming what JSON cannot hold."""
    if type(value) is dict:  # asked first: what Mapping is takes an abstract class long to say
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
    """Return True if 18 digits follow each other in a JSON text: no shorter number is beyond 64 bits."""
    return b"0" * 18 in raw.translate(_DIGITS)  # a tenth of the time of a regular expression in a long text


def _within_64_bits(text: str) -> int:
    found = int(text)
    if not -(1 << 63) <= found < 1 << 64:
        raise ValueError(f"the whole number {brief(text)} exceeds 64-bit range")
    return found


def json_read(what: str, text: str | bytes, *, kept: bool = False) -> Any:
    """Return what a JSON text says. Numbers are read as they are written: one beyond 64 bits is not rounded, and is refused where it would be kept.

    `kept`: refuse it here. Raises InvalidError for what is no JSON, with the place, and for an object with a name twice.
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
    """Return True if a JSON text can have an object with a name twice, of which what was read has the last. Where it has not, it is rarely so."""
    colons = raw.count(b":")
    if colons < 2:
        return False
    if b"\\u003a" in raw or b"\\u003A" in raw:  # colons as well
        return True
    try:
        return colons != orjson.dumps(found).count(b":")  # what is lost has one at least
    except TypeError:  # nested deeper than orjson writes
        return True


def distinct(what: str) -> Callable[[list[tuple[str, Any]]], Json]:
    """Makes objects of their names and values. It raises InvalidError for a name that comes twice in one."""

    def object_of(pairs: list[tuple[str, Any]]) -> Json:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise InvalidError(f"{what} has {twice!r} twice in one object. Give each name once.")
        return found

    return object_of


def json_or_text(what: str, text: str) -> Any:
    """Return what a text says where it is JSON, else the text. Raises InvalidError as `json_read`."""
    try:
        orjson.loads(text)
    except ValueError:
        return text
    return json_read(what, text)


def _refuse_changed(what: str, value: Any) -> None:
    """Raise InvalidError for a part that JSON would silently turn into something else: NaN, a UUID, an enum. A tuple is a list."""
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
    """Return the repr of a value, cut to 60 characters: what a refusal quotes of it."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


def read_once(value: Any) -> Any:
    """Return a list of what an iterator gives, since it is read more than once; anything else as it is."""
    return list(value) if hasattr(value, "__next__") else value


def version_body(content: Any, text: Any, tags: Any, trigger: Any, source: Any) -> Json:
    """Return the body of a node's version. What is absent is left out."""
    return {"content": json_object("content", content), **description(text, tags, trigger, source)}


def description(text: Any, tags: Any, trigger: Any, source: Any) -> Json:
    """Return the fields of a version beside its content. Absent ones are left out."""
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
    """Return the tags, each once, in order. Raises InvalidError for what is no list of text."""
    if type(tags) is not list and (isinstance(tags, (str, bytes)) or not isinstance(tags, Iterable)):
        raise InvalidError(f"tags {tags!r} is no list. Give a list of text, such as [{tags!r}].")
    return list(dict.fromkeys([text_of("tag", tag) for tag in tags]))


def event_of(
    type: Any, description: Any, origin: Any, metadata: Any, authorized: Any = None, **texts: Any
) -> tuple[str, Json]:
    """Return the type and the body of an event, with its fingerprint. What is absent is left out.

    A message has no fingerprint of its own, and its description may be blank beside a medium. Raises InvalidError that lists the fields an event can have.
    """
    try:
        return _event_of(type, description, origin, metadata, authorized, texts)
    except InvalidError as error:
        raise InvalidError(f"{error} {event_fields()}") from None


def event_fields() -> str:
    """Return the sentence that names the fields of an event."""
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
    """Return True if a message was authorized, true by default; None for an event that is no message."""
    authorized: bool | None = body.get("authorized", True if type in fingerprints.MESSAGES else None)
    return authorized


def ids(what: str, value: str | Thing | Iterable[str | Thing]) -> list[str]:
    """One id or many, as a list without repeats. A node, event or link may stand for its id."""
    if isinstance(value, (str, Node, Event)):
        return [id_of(value)]
    if type(value) is tuple and not value:
        return []
    if not isinstance(value, Iterable):
        raise InvalidError(f"{what} {value!r} is no id. Give an id, or a list of ids.")
    return list(dict.fromkeys(text_of(what, id_of(each)) for each in value))


def names(what: str, value: str | Iterable[str]) -> list[str]:
    """One name of a column or many, as a list without repeats."""
    several = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else None
    if several is None or not all(isinstance(each, str) for each in several):
        raise InvalidError(f"{what} {value!r} is no name of a column. Give a name, or a list of names.")
    return list(dict.fromkeys(several))


def id_of(value: str | Thing) -> str:
    """Return the id of a node or event; what is none of these is itself."""
    return value.id if isinstance(value, (Node, Event)) else value


Read = Callable[[TimeLike, str], Instant]
"""Reads the time that a caller gave for the argument of that name."""


def span(valid_from: TimeLike | None, valid_to: TimeLike | None, now: Instant, read: Read) -> Period:
    """Return the period of something new: by default from now, open-ended."""
    start = now if valid_from is None else read(valid_from, "valid_from")
    return period(start, OPEN if valid_to is None else read(valid_to, "valid_to"))


def part(valid_from: TimeLike | None, valid_to: TimeLike | None, read: Read) -> Period:
    """Return the period of an existing thing to change: by default all of it."""
    return span(valid_from, valid_to, BEGINNING, read)


def whole_number(what: str, value: Any) -> int | None:
    """Return the checked whole number of at least 1, or None: no limit."""
    return None if value is None else at_least_one(what, value, " or None for no limit")


def at_least_one(what: str, value: Any, otherwise: str = "") -> int:
    """Return the checked whole number of at least 1. `otherwise`: what else a caller may give."""
    return whole_within(what, value, 1, otherwise=otherwise)


def whole_within(what: str, value: Any, least: int, most: int | None = None, *, otherwise: str = "") -> int:
    """Return the checked whole number from `least` to `most`, of None without end. `otherwise`: what else a caller may give."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        allowed = f"of at least {least}" if most is None else f"from {least} to {most}"
        comma = "," if otherwise else ""
        raise InvalidError(
            f"{what} {value!r} is out of range. Give a whole number {allowed}{comma}{otherwise}."
        )
    whole: int = value
    return whole
