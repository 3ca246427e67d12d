"""Serves the files of the page at `/` from `page/`: HTML, styles and modules, with headers that isolate it.

No other script runs, nothing is loaded from elsewhere, and no other page may show this one in a frame.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

_FOLDER = Path(__file__).parent / "page"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}
FIRST = "index.html"
NAMES = tuple(sorted(each.name for each in _FOLDER.iterdir() if each.suffix in _KINDS))


@cache
def _file(name: str) -> tuple[bytes, str]:
    body = (_FOLDER / name).read_bytes()
    return body, f'"{blake2b(body, digest_size=12).hexdigest()}"'


def _answer(request: Request) -> Response:
    name = request.url.path.removeprefix("/page/") if request.url.path != "/" else FIRST
    body, tag = _file(name)
    headers = {**_HEADERS, "etag": tag}
    if name.endswith((".svg", ".webmanifest")):
        headers["cache-control"] = "max-age=86400"  # a browser requests the icon at every new address
    if request.headers.get("if-none-match") in (tag, f"W/{tag}"):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=_KINDS[Path(name).suffix], headers=headers)


ENDPOINTS = dict.fromkeys(["/", *(f"/page/{name}" for name in NAMES)], _answer)
"""The endpoint of each path. They reveal nothing of the store."""
