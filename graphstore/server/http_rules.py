"""Applies the rules of HTTP that hold for any answer: methods, media types, pages of other origins, caching, compression."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping, MutableMapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from graphstore.server.dispatch import EVENTS
from graphstore.server.requests import JSON, Apart, Headers, Refused, Response, Send
from graphstore.values.coordinates import looks_like_time
from graphstore.values.period import Instant, instant
from graphstore.values.worded_times import span_of

FORM = b"application/x-www-form-urlencoded"  # curl's default for any body
LARGE = 1 << 17  # bytes; compressing more would keep others waiting
_SMALL = 1 << 10  # bytes; compressing less is not worth it
_COMPRESSED_KINDS = (
    b"application/json",
    b"text/",
    b"application/jsonl",
    b"application/vnd.graphstore",
    EVENTS,
)
_HOUR = b"private, max-age=3600, immutable"
_DAY = re.compile(r"\d{4}-\d\d")
_ASKED = b"Authorization, Content-Type, If-Match, If-None-Match, Graphstore-Request, Graphstore-Again, Last-Event-ID"
_SHOWN = b"ETag, Retry-After, Graphstore-Valid, Graphstore-Tx, Graphstore-Answer, WWW-Authenticate"


def other_method(method: str, path: str, allowed: Sequence[str]) -> Refused:
    """Return the refusal of a method that a path does not allow."""
    words = (
        f"{method} {path}: ask by {' or '.join(one for one in allowed if one not in ('HEAD', 'OPTIONS'))}."
    )
    return Refused(405, words, headers=((b"allow", ", ".join(allowed).encode()),))


def options(allowed: Sequence[str], headers: Headers, origin: bytes | None) -> Response:
    """Return the answer to OPTIONS: the methods of a path, and for a page of another origin what it may send."""
    methods = ", ".join(allowed).encode()
    found: tuple[tuple[bytes, bytes], ...] = ((b"allow", methods),)
    if origin is not None and b"access-control-request-method" in headers:
        found += (
            (b"access-control-allow-methods", methods),
            (b"access-control-allow-headers", _ASKED),
            (b"access-control-max-age", b"600"),
        )
        if headers.get(b"access-control-request-private-network") == b"true":
            found += ((b"access-control-allow-private-network", b"true"),)
    return Response(204, b"", found)


def with_cors(send: Send, origin: bytes) -> Send:
    """Return a `send` that lets the page of another origin read the answers."""
    more = [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _SHOWN),
        (b"vary", b"origin"),
    ]

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sent


# ---- kinds ------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def accepted(accept: bytes | None, offered: tuple[bytes, ...]) -> bytes:
    """Return the media type that a client prefers among those offered. Raise Refused (406) if it accepts none."""
    if not accept:
        return offered[0]
    asked = _qualities(accept)
    best = max(offered, key=lambda kind: _quality(kind, asked))
    if _quality(best, asked) > 0:
        return best
    kinds = b", ".join(offered).decode()
    raise Refused(
        406, f"Accept {accept.decode('latin-1')!r} admits no kind of this answer. There is: {kinds}."
    )


def _qualities(accept: bytes) -> dict[bytes, float]:
    found = {}
    for part in accept.lower().split(b","):
        kind, *parameters = (piece.strip() for piece in part.split(b";"))
        quality = next((one[2:] for one in parameters if one.startswith(b"q=")), b"1")
        try:
            found[kind] = float(quality)
        except ValueError:
            found[kind] = 1.0
    return found


def _quality(kind: bytes, asked: Mapping[bytes, float]) -> float:
    kind = kind.partition(b";")[0]
    for name in (kind, kind.partition(b"/")[0] + b"/*", b"*/*"):
        if name in asked:
            return asked[name]
    return 0.0


def read_as_json(headers: Headers) -> None:
    """Raise Refused (415) if a body's type is neither JSON nor a form, curl's default."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind and kind not in (JSON, FORM) and not kind.endswith(b"+json"):
        raise Refused(
            415,
            f"a body of {kind.decode('latin-1')!r} cannot be read here. Send Content-Type: application/json.",
            headers=((b"accept", JSON),),
        )


# ---- caching ----------------------------------------------------------------------------------


def cacheable(found: Response, asked: Apart, last: Instant) -> Response:
    """Return an answer with its caching headers. No write can change an answer at coordinates up to `last`, the last tx of the store; only
    erasure can. Such an answer may be cached for an hour and revalidated by its ETag."""
    if not _is_settled(found, asked, last):
        return found._replace(headers=(*found.headers, (b"cache-control", b"no-store")))
    tag = b'W/"%b"' % blake2b(found.kind + found.body, digest_size=12).hexdigest().encode()
    return found._replace(
        headers=(*found.headers, (b"cache-control", _HOUR), (b"etag", tag), (b"vary", b"accept"))
    )


def _is_settled(found: Response, asked: Apart, last: Instant) -> bool:
    if found.status != 200 or asked.branch is not None or asked.transaction is not None:
        return False
    told = dict(found.headers)
    valid, tx = told.get(b"graphstore-valid"), told.get(b"graphstore-tx")
    if valid is None or tx is None or instant(tx.decode()) > last:
        return False
    if asked.as_of is not None:
        return not looks_like_time(asked.as_of)
    return _is_fixed(asked.valid, valid) and _is_fixed(asked.tx, tx)


def _is_fixed(asked: str | None, used: bytes) -> bool:
    """Return True if a text always means the instant that was used: an instant, or the last one of a day or month that is over."""
    span = span_of(asked, 0) if asked is not None and _DAY.match(asked) else None
    return span is not None and instant(used.decode()) == max(span.start, span.end - 1)


def unchanged(found: Response, headers: Headers) -> Response:
    """Return the answer, with status 304 and without a body if the client already has it."""
    known = headers.get(b"if-none-match")
    tag = dict(found.headers).get(b"etag")
    if known is None or tag is None:
        return found
    bare = tag.removeprefix(b"W/")
    if known.strip() == b"*" or bare in (one.strip().removeprefix(b"W/") for one in known.split(b",")):
        return found._replace(status=304, body=b"")
    return found


# ---- compression ------------------------------------------------------------------------------


def is_compressible(found: Response, headers: Headers) -> bool:
    """Return True if an answer is large enough, of a compressible type, and its client reads gzip."""
    accepts = headers.get(b"accept-encoding")
    if accepts is None or len(found.body) < _SMALL or not found.kind.startswith(_COMPRESSED_KINDS):
        return False
    return _quality(b"gzip", _qualities(accepts)) > 0 or _qualities(accepts).get(b"*", 0.0) > 0


def compressed(found: Response) -> Response:
    """Return an answer compressed with gzip."""
    more = ((b"content-encoding", b"gzip"), (b"vary", b"accept-encoding"))
    return found._replace(body=gzip.compress(found.body, 5, mtime=0), headers=(*found.headers, *more))
