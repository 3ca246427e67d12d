"""Make and check one line of the chain as bytes: canonical JSON, bodies beside a head that holds their hashes, and the digest of the head.

A body that has been forgotten is `null`. Its hash stays in the head, so the digest chain verifies without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from graphstore.errors import EngineError, InvalidError

REQUIRES: tuple[str, ...] = ()
"""The features that a reader of what is written from now on must understand. Each new head has them under `requires`; those of release 0.1 have none."""

HISTORY, COVERS = "history", "covers"
"""Features of heads that have a claim of a link with `history`, or rechecks that came with a merge."""

UNDERSTOOD: frozenset[str] = frozenset({*REQUIRES, HISTORY, COVERS})
"""The features that this program understands."""

GENESIS = "0" * 32
FORGOTTEN = b"null"
OF_LINKS = frozenset({"link", "unlink", "resolve", "decide_link"})  # operations whose subject is a link
OF_BRANCHES = frozenset({"branch", "merge", "pull", "delete_branch"})  # whose subject is the name of a branch
# whose subject is no thing
OF_THE_STORE = OF_BRANCHES | {"define_kind", "define_point", "promote_kind", "set_retention", "snapshot"}
DESCRIBING = frozenset({"revise", "amend"})  # verbs that close rows only to describe their time anew
UNDO = "undo"  # the verb; its subject is the transaction it takes back
RETRACTING = frozenset({"retract", "correct", UNDO})  # verbs that say that it never was so
RETENTION = "retention"  # the setting: how much the store keeps
FORGETTING = {"evict": "evicted", "erase": "erased"}
TOUCH, COUNTS = (
    "touch",
    "accesses",
)  # an operation whose body holds under this name how often things were looked up, by id
OWN = "own"  # in the body of the operation that recorded an occurrence: what that says otherwise than the first report
_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z


def dumps(value: Any) -> bytes:
    """Return canonical JSON: sorted keys, no spaces, UTC as Z. Raises InvalidError for what JSON cannot hold."""
    try:
        return orjson.dumps(value, option=_CANONICAL)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(
            f"not JSON: {error}. Allowed: objects with text keys, lists, text, 64-bit numbers, true, false, null."
        ) from None


def fields_of(line: bytes) -> dict[str, Any]:
    """Return the fields of a JSON object; none where it is no such object."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}


def digest_of(data: bytes) -> str:
    """Return the hash of a body, or of a head."""
    return blake2b(data, digest_size=16).hexdigest()


def refuse_unknown(head: dict[str, Any], where: str = "") -> None:
    """Raise EngineError when a head requires a feature of its reader that this program does not know. `where`: the place of its line."""
    required = head.get("requires")
    if required and (unknown := sorted(set(required) - UNDERSTOOD)):
        where = where or f"the transaction of {head.get('tx')}"
        raise EngineError(
            f"{where} requires {', '.join(unknown)}, which this graphstore does not know. Install a newer graphstore. Nothing was changed."
        )


class Verbatim(NamedTuple):
    """Holds one line as it is written: the bytes of its head, their digest, and its bodies; a removed one is `null`."""

    head: bytes
    digest: str
    bodies: Sequence[bytes]

    def line(self) -> bytes:
        """Return the line as release 0.1 wrote it, with its newline: the form of dumps too."""
        return b'{"body":[%b],"digest":"%b","head":%b}\n' % (
            b",".join(self.bodies),
            self.digest.encode(),
            self.head,
        )


def hashed(bodies: Sequence[bytes]) -> list[str]:
    """Return the hashes of bodies, as a head holds them."""
    return [blake2b(body, digest_size=16).hexdigest() for body in bodies]


def encoded(head: dict[str, Any], bodies: Sequence[bytes]) -> Verbatim:
    """Return the line of a head that holds the hashes of its bodies and the digest before it."""
    raw = dumps(head)
    return Verbatim(raw, digest_of(raw), bodies)


def check(line: bytes, prev: str | None = None) -> tuple[dict[str, Any], Verbatim]:
    """Return the head of a line without its end, and the line taken apart.

    Args:
        prev: the digest before it; None where that is not known.

    Raises ValueError saying what is wrong with it, EngineError when it requires a feature of its reader that is not known.
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
