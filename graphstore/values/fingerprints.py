"""When two reports are one event: the types that repeat, and a fingerprint that ignores what differs each time."""

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
"""Events of these types resolve what can be open."""
NEVER_OPEN = frozenset({"deploy", "message", CONFIRMATION}) | MENDING | MESSAGES
"""Events of these types are points: they are neither open nor resolved. Those of all others can be, unless they are messages."""

# what differs from one report to the next; a status code or a line number has three digits at most, or stands apart
_VARIES = re.compile(
    r"[a-z][a-z0-9+.-]{0,20}://\S+"  # URL; without a bound, a long word takes quadratic time
    r"|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"  # UUID
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"  # ISO date or instant
    r"|\b0x[0-9a-f]+\b"  # address
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"  # hash
    r"|\d{4,}",  # long number
    re.IGNORECASE,
)


def fingerprint(type: str, description: str, source: str | None = None) -> str:
    """16 hex characters, the same for reports that differ only in UUIDs, URLs, ISO instants, hex addresses and long numbers."""
    plain = " ".join(_VARIES.sub("#", description).split())
    joined = "\x1f".join((type, source or "", plain))
    return blake2b(joined.encode(), digest_size=8).hexdigest()


def fingerprint_of(type: str, description: str, source: str | None, given: str | None) -> str | None:
    """The fingerprint an event is kept with: the one given, its own for a type that repeats, else None."""
    if given is not None or type not in REPEATING:
        return given
    return fingerprint(type, description, source)
