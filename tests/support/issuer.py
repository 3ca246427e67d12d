"""An issuer of access tokens on this machine: it serves metadata and keys, and signs what it is told to."""

from __future__ import annotations

import contextlib
import hmac
import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

jose = pytest.importorskip("joserfc.jwt")
from joserfc.jwk import ECKey, Key, RSAKey  # noqa: E402

METADATA = "/.well-known/oauth-authorization-server"


class LocalIssuer:
    """Signs tokens by one key, and publishes its keys. `asked`: the paths it was asked for. `down`: answer 500."""

    def __init__(self, url: str, *, kind: str = "ES256", metadata: str = METADATA) -> None:
        self.url, self.metadata_path = url, metadata
        self.issuer = url  # as its metadata names it
        self.keys: dict[str, Key] = {}
        self.asked: list[str] = []
        self.down = False
        self.rotate(kind)

    def rotate(self, kind: str = "ES256") -> None:
        """Publish a new key alone, and sign by it."""
        self.alg = kind
        self.kid = f"key-{time.monotonic_ns()}"
        made = ECKey.generate_key("P-256") if kind == "ES256" else RSAKey.generate_key(2048)
        self.keys = {self.kid: made}

    def token(
        self,
        audience: str | list[str] | None,
        *,
        key: Key | None = None,
        header: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """Return a signed token of Ana that lasts a minute. A claim of None is left out."""
        now = time.time()
        usual = {
            "iss": self.url,
            "sub": "ana",
            "aud": audience,
            "iat": now,
            "exp": now + 60,
            "scope": "graphstore:write",
        }
        given = {name: value for name, value in (usual | claims).items() if value is not None}
        head = {"alg": self.alg, "kid": self.kid, "typ": "at+jwt", **(header or {})}
        algorithms = ["RS256", "ES256"]
        return jose.encode(
            {name: value for name, value in head.items() if value is not None}, given, key or self.keys[self.kid], algorithms=algorithms
        )  # fmt: skip

    def token_by_public_key(self, audience: str) -> str:
        """Return a token whose symmetric signature has the published key as its secret. Libraries refuse to make one."""
        claims = self.token(audience).split(".")[1].encode()
        signed = _base64(json.dumps({"alg": "HS256", "kid": self.kid}).encode()) + b"." + claims
        secret = self.keys[self.kid].as_pem(private=False)
        return (signed + b"." + _base64(hmac.digest(secret, signed, "sha256"))).decode()

    def answer(self, path: str) -> tuple[int, Any]:
        """Return the status and the JSON of a path."""
        self.asked.append(path)
        if self.down:
            return 500, {}
        if path == self.metadata_path:
            return 200, {"issuer": self.issuer, "jwks_uri": f"{self.url}/keys"}
        if path.endswith("/keys"):
            published = [
                {**key.as_dict(private=False), "kid": kid, "use": "sig"} for kid, key in self.keys.items()
            ]
            return 200, {"keys": published}
        return 404, {}


def _base64(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


@contextlib.contextmanager
def local_issuer(path: str = "", **options: Any) -> Iterator[LocalIssuer]:
    """Yield an issuer that answers on this machine; its URL ends with `path`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = made.answer(self.path)
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = LocalIssuer(f"http://127.0.0.1:{server.server_port}{path}", **options)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
