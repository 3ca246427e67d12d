"""Admits clients by access tokens of an external OAuth 2.1 issuer.

The server is a protected resource: it publishes its metadata (RFC 9728) and checks signed tokens (RFC 9068) by the public keys of the issuer. It asks the
issuer for its metadata and keys, and for nothing else. It needs the extra `oauth`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import jwt

from graphstore.errors import InvalidError
from graphstore.ledger.tokens import Grant, is_scope
from graphstore.server.agents import PATH as AGENTS
from graphstore.server.requests import LOOPBACK, Refused

READ, WRITE = "graphstore:read", "graphstore:write"
"""The OAuth scopes that stand for the rights of a token."""
WELL_KNOWN = "/.well-known/oauth-protected-resource"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""The accepted signatures: those with a public key."""
_TYPES = (None, "jwt", "at+jwt", "application/at+jwt")
_CLAIMS = ("iss", "aud", "exp", "sub")
_SKEW = 60  # seconds by which two clocks may differ
_FRESH = 600.0  # seconds after which keys are read again
_GRACE = 3600.0  # seconds for which keys are used while the issuer does not answer
_PAUSE = 5.0  # least seconds between two requests to the issuer
_TIMEOUT = 5.0  # seconds that the issuer has to answer
_NAME_LENGTH = 255
_MESSAGE_LENGTH = 500  # characters of a refusal, which quotes what the token says

Header = tuple[tuple[bytes, bytes], ...]


class Issuer:
    """Trusts one issuer of access tokens.

    Args:
      url: the issuer, exactly as its metadata and tokens name it; HTTPS, or HTTP on this machine.
      resource: the address at which clients reach this server. A token must be issued for it, or for its path `/mcp`, which it then opens alone.
      scope_claim: the claim with the scopes of the store that a token sees: one path, or a list of paths. None: every token sees the whole store.
      read_only: offer the right to read alone.

    Raises InvalidError for an address that is not one.
    """

    def __init__(
        self, url: str, resource: str, *, scope_claim: str | None = None, read_only: bool = False
    ) -> None:
        self.url = _address("--issuer", url, secure=True)
        self.resource = _address("--resource", resource).rstrip("/")
        self._scope_claim = scope_claim
        self._offered = (READ,) if read_only else (READ, WRITE)
        self._keys = IssuerKeys(self.url)
        parts = urlsplit(self.resource)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self.documents = {
            f"{WELL_KNOWN}{parts.path}{path}": self._metadata(self.resource + path) for path in ("", AGENTS)
        }
        """The metadata of the protected resources, by path: the server, and its interface for agents."""

    def _metadata(self, resource: str) -> dict[str, Any]:
        return {
            "resource": resource,
            "authorization_servers": [self.url],
            "scopes_supported": list(self._offered),
            "bearer_methods_supported": ["header"],
            "resource_name": "graphstore",
        }

    async def unavailable(self) -> str | None:
        """Read the keys of the issuer. Return why they cannot be read; None if they were."""
        try:
            await self._keys.fitting(None, ALGORITHMS[0])
        except Refused as error:
            return str(error)
        return None

    def challenge(self, path: str, error: str = "", message: str = "") -> Header:
        """Return the header WWW-Authenticate for a path: where a token comes from, which scopes to ask for, and why the given one was refused."""
        document = f"{WELL_KNOWN}{urlsplit(self.resource).path}{AGENTS if path == AGENTS else ''}"
        values = {"error": error, "error_description": _quotable(message)} if error else {}
        values |= {"resource_metadata": self._origin + document, "scope": " ".join(self._offered)}
        shown = ", ".join(f'{name}="{value}"' for name, value in values.items())
        return ((b"www-authenticate", f"Bearer {shown}".encode()),)

    async def grant(self, token: str, path: str) -> Grant:
        """Return what a token permits at a path, under the name of its subject.

        Raises Refused: 401 for a token that is not valid here, 403 for one that permits nothing here, 503 while the keys of the issuer cannot be read.
        """
        claims = await self._claims(token, path)
        name, given = str(claims["sub"]), claims.get("scope", claims.get("scp")) or ()
        if not (0 < len(name) <= _NAME_LENGTH and name.isprintable() and name == name.strip()):
            raise self._invalid(
                path, f"the subject {name[:80]!r} is not a name of one line, up to {_NAME_LENGTH} characters"
            )
        names = given.split() if isinstance(given, str) else given if isinstance(given, list) else []
        if WRITE not in names and READ not in names:
            message = f"the token has the OAuth scopes {names!r:.200}. Ask {self.url} for {' or '.join(self._offered)}."
            raise Refused(403, message, headers=self.challenge(path, "insufficient_scope", message))
        rights = "write" if WRITE in names else "read"
        return Grant(name, rights, self._scopes(claims), float(claims["exp"]), "")

    def _scopes(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the scopes of the store that a token sees; empty for everything."""
        if self._scope_claim is None:
            return ()
        given = claims.get(self._scope_claim)
        scopes = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else ()
        if not scopes or not all(map(is_scope, scopes)):
            raise Refused(
                403,
                f"the claim {self._scope_claim!r} of the token is {given!r}. {self.url} must put a path there, such as team/a, or a list of paths.",
            )
        return scopes

    async def _claims(self, token: str, path: str) -> Mapping[str, Any]:
        """Return the claims of a token whose signature, issuer, time and audience are right."""
        try:
            header = jwt.get_unverified_header(token)
            stated = jwt.decode(token, options={"verify_signature": False})
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise self._invalid(
                path, "that token is not known here, and is not a signed token (JWT)"
            ) from None
        algorithm = header.get("alg")
        if stated.get("iss") != self.url:
            raise self._invalid(
                path, f"the token is of the issuer {stated.get('iss')!r}; this server trusts {self.url}"
            )
        if algorithm not in ALGORITHMS:
            raise self._invalid(path, f"the token is signed by {algorithm!r}. Valid: {', '.join(ALGORITHMS)}")
        kind = header.get("typ")
        if (kind.lower() if isinstance(kind, str) else kind) not in _TYPES or "cnf" in stated:
            raise self._invalid(
                path, f"the token is not a plain access token (typ {kind!r}, or bound to a key of its client)"
            )
        audiences = [self.resource, self.resource + AGENTS] if path == AGENTS else [self.resource]
        for again in (False, True):
            for key in await self._keys.fitting(header.get("kid"), algorithm, again=again):
                try:
                    return jwt.decode(
                        token,
                        key,
                        algorithms=[algorithm],
                        audience=[*audiences, *(f"{each}/" for each in audiences)],
                        leeway=_SKEW,
                        options={"require": list(_CLAIMS)},
                    )
                except jwt.InvalidSignatureError:
                    continue
                except jwt.InvalidTokenError as error:
                    raise self._invalid(path, self._reason(error, stated, audiences[-1])) from None
        raise self._invalid(
            path,
            f"no key that {self.url} publishes made the signature of the token (key {header.get('kid')!r})",
        )

    def _reason(self, error: jwt.InvalidTokenError, stated: Mapping[str, Any], audience: str) -> str:
        if isinstance(error, jwt.ExpiredSignatureError):
            return f"the token expired {time.time() - float(stated['exp']):.0f} seconds ago. Get another one from {self.url}"
        if isinstance(error, jwt.InvalidAudienceError):
            return f"the token is for {stated.get('aud')!r}; this is {audience}. Ask {self.url} for a token with resource={audience}"
        if isinstance(error, jwt.ImmatureSignatureError):
            return "the token is not valid yet. Compare the clocks of its issuer and of this machine"
        return f"the token is not valid: {error}"

    def _invalid(self, path: str, message: str) -> Refused:
        message = f"{message[:_MESSAGE_LENGTH]}."
        return Refused(401, message, headers=self.challenge(path, "invalid_token", message))


class IssuerKeys:
    """Holds the public keys of an issuer. They are read when a token first needs them, and again when they are old or none of them fits."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._keys: list[dict[str, Any]] = []
        self._usable: dict[tuple[int, str], jwt.PyJWK | None] = {}
        self._read_at = self._asked_at = float("-inf")
        self._failure = ""
        self._reading = asyncio.Lock()

    async def fitting(self, kid: str | None, algorithm: str, *, again: bool = False) -> list[jwt.PyJWK]:
        """Return the keys that may have made a signature. `again`: no known key did, so read them again. Raise Refused (503) if they cannot be read."""
        if again or time.monotonic() - self._read_at > _FRESH:
            await self._read()
        return self._of(kid, algorithm)

    def _of(self, kid: str | None, algorithm: str) -> list[jwt.PyJWK]:
        found = []
        for number, data in enumerate(self._keys):
            if kid is not None and data.get("kid") != kid:
                continue
            if (number, algorithm) not in self._usable:
                self._usable[number, algorithm] = _key(data, algorithm)
            if (key := self._usable[number, algorithm]) is not None:
                found.append(key)
        return found

    async def _read(self) -> None:
        """Read the keys, unless that was tried a moment ago. Keep the old ones for a while if the issuer does not answer."""
        is_kept = time.monotonic() - self._read_at <= _GRACE
        if not (is_kept and self._reading.locked()):
            async with self._reading:
                if time.monotonic() - self._asked_at >= _PAUSE:
                    await self._ask()
        if time.monotonic() - self._read_at > _GRACE:
            raise Refused(
                503,
                f"the keys of the issuer {self._issuer} cannot be read: {self._failure}",
                after=round(_PAUSE),
            )

    async def _ask(self) -> None:
        try:
            keys = await asyncio.to_thread(_published, self._issuer)
        except (jwt.PyJWTError, OSError, ValueError, InvalidError) as error:
            self._failure = str(error)
        else:
            self._keys, self._usable, self._read_at = keys, {}, time.monotonic()
        finally:
            self._asked_at = time.monotonic()


def _key(data: dict[str, Any], algorithm: str) -> jwt.PyJWK | None:
    """Return a published key for an algorithm; None if it is not meant for it."""
    if data.get("alg", algorithm) != algorithm or data.get("use", "sig") != "sig":
        return None
    try:
        return jwt.PyJWK(data, algorithm)
    except jwt.PyJWTError:
        return None


def _published(issuer: str) -> list[dict[str, Any]]:
    """Ask an issuer for its keys, by its metadata (RFC 8414, or OpenID Connect Discovery)."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = dict.fromkeys(
        (
            f"{origin}/.well-known/oauth-authorization-server{path}",
            f"{origin}/.well-known/openid-configuration{path}",
            f"{origin}{path}/.well-known/openid-configuration",
        )
    )
    place, metadata = _first_document(places)
    if metadata.get("issuer") != issuer:
        raise InvalidError(
            f"{place} is of the issuer {metadata.get('issuer')!r}. Give its name exactly: --issuer {metadata.get('issuer')}"
        )
    keys = _json(_address("jwks_uri", str(metadata.get("jwks_uri")), secure=True, query=True)).get("keys")
    if not isinstance(keys, list):
        raise InvalidError(f"{metadata['jwks_uri']} has no list of keys.")
    return [key for key in keys if isinstance(key, dict)]


def _first_document(places: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Return the first of some documents that there is, with its place. Raise InvalidError if there is none, or the server does not answer."""
    failures = []
    for place in places:
        try:
            return place, _json(place)
        except (jwt.PyJWTError, OSError, ValueError) as error:
            cause = error.__cause__ or error
            failures.append(f"{place}: {cause}")
            if isinstance(cause, OSError) and not isinstance(cause, HTTPError):
                break  # others would wait for it in vain too
    raise InvalidError("; ".join(failures))


def _json(url: str) -> dict[str, Any]:
    """Return a JSON object from a URL, without following a redirect."""
    found: dict[str, Any] = jwt.PyJWKClient(url, cache_jwk_set=False, timeout=_TIMEOUT).fetch_data()
    return found


def _address(name: str, url: str, *, secure: bool = False, query: bool = False) -> str:
    """Return a URL that may name an issuer, a resource or, with a query, a set of keys. Raise InvalidError for another."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_one = False
    if (
        not is_one
        or (parts.query and not query)
        or parts.fragment
        or parts.username is not None
        or url != url.strip()
    ):
        raise InvalidError(
            f"{name} {url!r} is not the URL of one. Give it as https://HOST/PATH, without a query."
        )
    if secure and parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise InvalidError(
            f"{name} {url!r} is not encrypted: whoever answers for it lets anybody in. Give an https address."
        )
    return url


def _quotable(message: str) -> str:
    """Return a message in the characters that a header may quote."""
    return "".join("'" if char in '"\\' else char if " " <= char <= "~" else "?" for char in message)
