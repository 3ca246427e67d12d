"""Encodes and checks one line of the chain: canonical JSON, bodies, a head with the hashes of the bodies, and the digest of the head.

A forgotten body is `null`. Its hash stays in the head, so the digest chain can still be verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from graphstore.errors import EngineError, InvalidError

REQUIRES: tuple[str, ...] = ()
"""Features that a reader of newly written lines must understand. Each new head lists them under `requires`; heads of release 0.1 list none."""

HISTORY, COVERS, JOINING, RECORDED = "history", "covers", "joins", "recorded"
"""Features of heads that have a claim of a link with `history`, rechecks that came with a merge, a join of two nodes, or operations that another store recorded
first."""

UNDERSTOOD: frozenset[str] = frozenset({*REQUIRES, HISTORY, COVERS, JOINING, RECORDED})
"""The features that this program understands."""

GENESIS = "0" * 32
FORGOTTEN = b"null"
OF_LINKS = frozenset({"link", "unlink", "resolve", "decide_link"})  # operations whose subject is a link
OF_BRANCHES = frozenset({"branch", "merge", "pull", "delete_branch"})  # verbs whose subject names a branch
# operations whose subject is not a thing or link
OF_THE_STORE = OF_BRANCHES | {"define_kind", "define_point", "promote_kind", "set_retention", "snapshot"}
DESCRIBING = frozenset({"revise", "amend"})  # verbs that close rows only to describe the same time again
UNDO = "undo"  # the verb; its subject is the tx of the undone transaction
RETRACTING = frozenset({"retract", "correct", UNDO})  # verbs that state that something never was so
RETENTION = "retention"  # the setting that limits how much the store keeps
FORGETTING = {"evict": "evicted", "erase": "erased"}
FORGOTTEN_THERE = {"evicted_there": "evicted", "erased_there": "erased"}
"""Operations by which a branch knows what the store forgot that it was imported from. They remove nothing here."""
FORGOTTEN_BY = {**FORGETTING, **FORGOTTEN_THERE}
TOUCH, COUNTS = (
    "touch",
    "accesses",
)  # an operation whose body has, under this name, numbers of lookups by id
OWN = "own"  # in the body of an operation that recorded an occurrence: its differences from the first report
_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z


def dumps(value: Any) -> bytes:
    """Return canonical JSON: sorted keys, no spaces, UTC as Z. Raises InvalidError for values that JSON cannot represent."""
    try:
        made = orjson.dumps(value, option=_CANONICAL)
        return bytes(
            memoryview(made)
        )  # `made` keeps a buffer of several KB, and bodies are held by the thousand
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(
            f"not JSON: {error}. Allowed: objects with text keys, lists, text, 64-bit numbers, true, false, null."
        ) from None


def fields_of(line: bytes) -> dict[str, Any]:
    """Return the fields of a JSON object, or {} if the line is not one."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}


def digest_of(data: bytes) -> str:
    """Return the hash of a body or a head."""
    return blake2b(data, digest_size=16).hexdigest()


def refuse_unknown(head: dict[str, Any], where: str = "") -> None:
    """Raise EngineError if a head requires a feature that this program does not understand. `where`: the place of its line, for the message."""
    required = head.get("requires")
    if required and (unknown := sorted(set(required) - UNDERSTOOD)):
        where = where or f"the transaction of {head.get('tx')}"
        raise EngineError(
            f"{where} requires {', '.join(unknown)}, which this graphstore does not know. Install a newer graphstore. Nothing was changed."
        )


class Verbatim(NamedTuple):
    """One line as it is stored: the bytes of its head, their digest, and its bodies; a removed body is `null`."""

    head: bytes
    digest: str
    bodies: Sequence[bytes]

    def line(self) -> bytes:
        """Return the line with its newline in the format of release 0.1, which dumps use too."""
        return b'{"body":[%b],"digest":"%b","head":%b}\n' % (
            b",".join(self.bodies),
            self.digest.encode(),
            self.head,
        )


def hashed(bodies: Sequence[bytes]) -> list[str]:
    """Return the hashes of bodies, as listed in a head."""
    return [blake2b(body, digest_size=16).hexdigest() for body in bodies]


def encoded(head: dict[str, Any], bodies: Sequence[bytes]) -> Verbatim:
    """Return the line of a head, which must already have the hashes of its bodies and the previous digest."""
    raw = dumps(head)
    return Verbatim(raw, digest_of(raw), bodies)


def check(line: bytes, prev: str | None = None) -> tuple[dict[str, Any], Verbatim]:
    """Parse and verify a line without its newline. Return its head, and the line in parts.

    Args:
        prev: the digest of the previous line; None if it is not known.

    Raises ValueError with the reason if it is invalid, EngineError if it requires a feature that this program does not understand.
    """
    try:
        record = orjson.loads(line)
        head, digest, bodies = record["head"], record["digest"], record["body"]
        hashes, stated = head["body"], head["prev"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise ValueError("it is no line of a journal") from None
    if prev is not None and stated != prev:
        raise ValueError("it does not follow the line before it (digest chain broken)")
    head_bytes = orjson.dumps(head, option=_CANONICAL)
    if digest_of(head_bytes) != digest:
        raise ValueError("its digest does not match")
    if len(hashes) != len(bodies):
        raise ValueError("a body is missing")
    raw = [orjson.dumps(body, None, _CANONICAL) for body in bodies]
    for body, found, expected in zip(raw, hashed(raw), hashes, strict=True):
        if found != expected and body != FORGOTTEN:
            raise ValueError("the content of a body does not match its hash")
    verbatim = Verbatim(head_bytes, digest, raw)
    if line + b"\n" != verbatim.line():
        raise ValueError("it is not in canonical form")
    refuse_unknown(head)
    return head, verbatim
