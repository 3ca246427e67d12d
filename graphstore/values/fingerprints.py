"""Decide when two reports are one event: the types that repeat, and a fingerprint that ignores what differs each time."""

from __future__ import annotations

import re
from hashlib import blake2b

REPEATING = frozenset({"error", "regression", "resolution"})
"""Events of these types have a fingerprint by default."""
MESSAGES = frozenset({"TEXT", "AUDIO", "IMAGE", "SYSTEM"})
"""Events of these types are always messages."""
SINGLE = frozenset({"deploy", "fix"}) | MESSAGES
"""Events of these types never repeat, even with the same fingerprint."""
CONFIRMATION = "confirmation"
"""The type of event that confirms a thing."""
BROKEN = frozenset({"error", "regression"})
MENDING = frozenset({"fix", "resolution"})
"""Events of these types resolve open ones."""
NEVER_OPEN = frozenset({"deploy", "message", CONFIRMATION}) | MENDING | MESSAGES
"""Events of these types are points in time, neither open nor resolved. Events of all other types can be open, unless they are messages."""

# What differs between reports. A status code or a line number has three digits at most, or is delimited.
_VARIES = re.compile(
    r"[a-z][a-z0-9+.-]{0,20}://\S+"  # URL; without a bound, a long word takes quadratic time
    r"|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"  # UUID
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"  # ISO date or instant
    r"|\b0x[0-9a-f]+\b"  # address
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"  # hash
    r"|\d{4,}",  # long number
    re.IGNORECASE,
)


# A number after one of these words describes the error, not the affected object.
_TELLING = frozenset(
    "status code http https errno error errors exception err exit signal response responded request requests returned returns return server "
    "get post put patch delete head options fetch xhr axios api load loading failed failure failing resource gateway upstream network "
    "version v of to with than by for after is was are were at only least most and or but from be exceeds exceeded within over under "
    "expected expects got received requires required needs maximum minimum max min limit reason warning uncaught http/1 http/2 "
    "es utf iso sha base".split()
)
# After one of these words even a number like an HTTP status is an id or a place.
_NAMED = frozenset(
    "user users order orders item items product products account customer client member row record page cart session invoice ticket job task "
    "widget message comment chunk document file node index position line column entry key object team project channel thread room device id "
    "ids uid pid tab slot".split()
)
_PLACE = re.compile(  # a word, what joins it with a number, and the number, without unit or fraction
    r"(?<![\w./-])(?P<word>[a-z][a-z_]{0,40})(?P<join>(?:[ \t]*[:=#][ \t]*|[ \t]+|[-_])?[\"'(\[#]?|\[)(?<!\w)(?P<number>\d+)(?![\w%]|[.,]\d)"
    r"|(?<![\w./-])(?P<stem>[a-z]{2,40})[-_](?P<tail>\d+)(?![\w%]|[.,]\d)"
    r"|(?P<path>/[\w.-]*)/(?P<segment>\d+)(?![\w%.])",
    re.IGNORECASE,
)
_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ORIGIN = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]{0,20}://[^/?#]*")
HASH = re.compile(  # in the name of a file, before its suffix
    r"(?<=[.\-_])(?:"
    r"(?=[a-f]{0,40}\d)[0-9a-f]{6,64}"
    r"|[A-Z2-7]{8}"
    r"|(?=(?:[a-z_-]{0,8}\d){2})[0-9a-z_-]{8}"
    r"|(?=(?:[a-z0-9_-]{0,8}[A-Z]){1,8}?[a-z_-]{0,8}\d|(?:[\w-]{0,7}[A-Z]){3}|[\w-]{0,7}\d[\w-]{0,7}[A-Z])[\w-]{8,12}"
    r")(?=\.\w)"
)
_QUERY = re.compile(r"[?#][^\s:]*")
_LINE = re.compile(r"(?::\d+){1,2}(?=\D{0,20}$)|\(?\b(?:line|column|col) \d+\)?", re.IGNORECASE)


def plain_source(source: str) -> str:
    """Return a source without what depends on the build, the host or the line: hashes in file names, query, line and column."""
    bare = _QUERY.sub("", _ORIGIN.sub("", source[:2000]))
    return _LINE.sub("", HASH.sub("#", bare)) + source[2000:]


def _placed(found: re.Match[str]) -> str:
    """Return a match with its number as `#` if its place shows that it is an id, else unchanged."""
    whole = found[0]
    number = found["number"] or found["tail"] or found["segment"]
    said = found["word"] or found["stem"] or found["path"] or ""
    words = [part.lower() for part in _WORD.findall(said)] or [""]
    if words[-1] in _TELLING:
        return whole
    if len(number) == 3 and "400" <= number < "600" and words[-1] not in _NAMED:
        return whole
    return whole[: -len(number)] + "#"


def fingerprint(type: str, description: str, source: str | None = None) -> str:
    """Return 16 hex characters that are the same for reports that differ only in UUIDs, URLs, ISO instants, hex addresses, long numbers, numbers that are ids
    by their place (`User 12`, not `status 404`), and hashes, lines and columns of the source."""
    plain = " ".join(_PLACE.sub(_placed, _VARIES.sub("#", description)).split())
    return digest(type, plain, plain_source(source) if source else "")


def digest(type: str, description: str, source: str | None = None) -> str:
    """Return 16 hex characters that are the same for reports with identical text."""
    joined = "\x1f".join((type, source or "", description))
    return blake2b(joined.encode(), digest_size=8).hexdigest()


def fingerprint_of(type: str, description: str, source: str | None, given: str | None) -> str | None:
    """Return the fingerprint with which an event is stored: the given one, its own for a type that repeats, else None."""
    if given is not None or type not in REPEATING:
        return given
    return fingerprint(type, description, source)
