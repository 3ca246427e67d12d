"""One line of the journal as bytes: canonical JSON, bodies beside a head that holds their hashes, and the digest of the head.

A body that has been forgotten is `null`. Its hash stays in the head, so the digest chain verifies without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Any

import orjson

from graphstore.errors import EngineError, InvalidError

SCHEMA = 1
REQUIRES: tuple[str, ...] = ()
"""The features that a reader of what is written from now on must understand. Each new head has them under `requires`; those of release 0.1 have none."""

UNDERSTOOD: frozenset[str] = frozenset(REQUIRES)
"""The features that this program understands."""

GENESIS = "0" * 32
FORGOTTEN = b"null"
BODY = b'{"body":['  # how a line begins
OF_LINKS = frozenset({"link", "unlink", "resolve", "decide_link"})  # operations whose subject is a link
OF_BRANCHES = frozenset({"branch", "merge", "pull", "delete_branch"})  # whose subject is the name of a branch
# whose subject is no thing
OF_THE_STORE = OF_BRANCHES | {"define_kind", "define_point", "promote_kind", "set_retention", "snapshot"}
DESCRIBING = frozenset({"revise", "amend"})  # verbs that close rows only to describe their time anew
UNDO = "undo"  # the verb; its subject is the transaction it takes back
RETRACTING = frozenset({"retract", "correct", UNDO})  # verbs that say that it never was so
FORGETTING = {"evict": "evicted", "erase": "erased"}
TOUCH, COUNTS = (
    "touch",
    "accesses",
)  # an operation whose body holds under this name how often things were looked up, by id
_END = b'],"digest":"'  # of the bodies
_HEAD = b'","head":'
_HASHES = b'"body":['
_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z


def dumps(value: Any) -> bytes:
    """Canonical JSON: sorted keys, no spaces, UTC as Z. Raises InvalidError for what JSON cannot hold."""
    try:
        return orjson.dumps(value, option=_CANONICAL)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(
            f"not JSON: {error}. Allowed: objects with text keys, lists, text, 64-bit numbers, true, false, null."
        ) from None


def digest_of(data: bytes) -> str:
    """The hash of a body, or of a head."""
    return blake2b(data, digest_size=16).hexdigest()


def refuse_unknown(head: dict[str, Any], where: str = "") -> None:
    """Raise EngineError when a head requires a feature of its reader that this program does not know. `where`: the place of its line."""
    required = head.get("requires")
    if required and (unknown := sorted(set(required) - UNDERSTOOD)):
        where = where or f"the transaction of {head.get('tx')}"
        raise EngineError(
            f"{where} requires {', '.join(unknown)}, which this graphstore does not know. Install a newer graphstore. Nothing was changed."
        )


def header(segment: int, generation: int = 0) -> bytes:
    """The first line of a segment. The generation counts how often the file was rewritten; from 1 on a digest guards it."""
    fields = {"format": "graphstore journal", "generation": generation, "schema": SCHEMA, "segment": segment}
    if generation:
        fields["digest"] = digest_of(dumps(fields))
    return dumps(fields) + b"\n"


def generation_of(line: bytes, segment: int) -> int:
    """The generation in the first line of a segment, -1 when it is no header."""
    try:
        generation = orjson.loads(line)["generation"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return -1
    if (
        type(generation) is not int
        or generation < 0
        or line.rstrip(b"\n") + b"\n" != header(segment, generation)
    ):
        return -1
    return generation


def compose(head: dict[str, Any], bodies: list[bytes], prev: str) -> tuple[bytes, str, list[int]]:
    """The line of a head and its bodies, its digest, and each body's offset within the line."""
    head["body"] = [blake2b(body, digest_size=16).hexdigest() for body in bodies]
    head["prev"] = prev
    return encode(head, bodies)


def encode(head: dict[str, Any], bodies: list[bytes]) -> tuple[bytes, str, list[int]]:
    """As `compose`, for a head that holds the hashes of its bodies already."""
    head_bytes = dumps(head)
    digest = digest_of(head_bytes)
    line = b'{"body":[%b],"digest":"%b","head":%b}\n' % (b",".join(bodies), digest.encode(), head_bytes)
    return line, digest, starts_of(bodies)


def head_of(line: bytes, bodies: Sequence[bytes]) -> bytes:
    """The bytes of the head in a line that was made of these bodies."""
    written = sum(map(len, bodies)) + max(len(bodies) - 1, 0)
    return line[len(BODY) + written + len(_END) + len(GENESIS) + len(_HEAD) : -2]


def parts_of(line: bytes, spans: Sequence[tuple[int, int]]) -> tuple[bytes, str, list[bytes]]:
    """Take apart a verified line without its end whose bodies have these spans: its head, its digest and its bodies."""
    bodies = [line[at : at + size] if size else FORGOTTEN for at, size in spans]
    digest = len(BODY) + sum(map(len, bodies)) + max(len(bodies) - 1, 0) + len(_END)
    head = digest + len(GENESIS) + len(_HEAD)
    return line[head:-1], line[digest : digest + len(GENESIS)].decode(), bodies


def starts_of(bodies: list[bytes]) -> list[int]:
    """Where each body begins in its line: a comma is between two."""
    return list(accumulate(map((1).__add__, map(len, bodies)), initial=len(BODY)))[:-1]


def spans_of(line: bytes) -> list[tuple[int, int]]:
    """The body spans of one line, each held against its hash and the hashes against the digest: as `check` has them, in half the time where no body is
    forgotten or holds a list of objects.

    Raises ValueError saying what is wrong with it.
    """
    bodies = _as_hashed(line)
    return check(line)[2] if bodies is None else _spans(bodies)


def following(line: bytes, prev: str) -> tuple[dict[str, Any], str, list[tuple[int, int]]]:
    """As `check`, in half the time where `spans_of` takes half of it. What the hashes stand for is taken as it was written: whether a line that came from
    elsewhere is in canonical form is for `check` to say."""
    bodies = _as_hashed(line)
    if bodies is not None:
        at = line.rfind(_END) + len(_END)
        head = orjson.loads(line[at + len(GENESIS) + len(_HEAD) : -1])
        if head["prev"] == prev:
            refuse_unknown(head)
            return head, line[at : at + len(GENESIS)].decode(), _spans(bodies)
    return check(line, prev)


def _as_hashed(line: bytes) -> list[bytes] | None:
    """The bodies of a line of which every byte is what its hashes and its digest stand for; None where parsing has to tell."""
    end = line.rfind(_END)
    digest = end + len(_END)
    head = digest + len(GENESIS) + len(_HEAD)
    if (
        not line.startswith(BODY)
        or line[-1:] != b"}"
        or line[digest + len(GENESIS) : head] != _HEAD
        or digest_of(line[head:-1]).encode() != line[digest : digest + len(GENESIS)]
    ):
        return None
    written, first = line[len(BODY) : end], line.find(_HASHES, head) + len(_HASHES)
    if written[:1] + written[-1:] not in (b"{}", b""):
        return None
    bodies = [b"{%b}" % body for body in written[1:-1].split(b"},{")] if written else []
    hashes = '","'.join([blake2b(body, digest_size=16).hexdigest() for body in bodies])
    stated = line[first : line.find(b"]", first)]
    return bodies if stated.strip(b'"') == hashes.encode() else None


def _spans(bodies: list[bytes]) -> list[tuple[int, int]]:
    return list(zip(starts_of(bodies), map(len, bodies), strict=True))


def check(line: bytes, prev: str | None = None) -> tuple[dict[str, Any], str, list[tuple[int, int]]]:
    """The head, digest and body spans of one line; a forgotten body has the span (0, 0). `prev`: the digest before it, where that is known.

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
    if [blake2b(body, digest_size=16).hexdigest() for body in raw] != hashes:
        for body, expected in zip(raw, hashes, strict=True):
            if body != FORGOTTEN and digest_of(body) != expected:
                raise ValueError("the content of a body does not match its hash")
    spans = _spans(raw)
    if FORGOTTEN in raw:
        spans = [(0, 0) if body == FORGOTTEN else span for span, body in zip(spans, raw, strict=True)]
    if line != b'{"body":[%b],"digest":"%b","head":%b}' % (b",".join(raw), digest.encode(), head_bytes):
        raise ValueError("it is not in canonical form")
    refuse_unknown(head)
    return head, digest, spans
