"""The whole way of an agent to a remote store: the SDK's own client finds the issuer, a person signs in there, and its token opens the tools.

The issuer is `oidc-provider` for Node, with PKCE, registration of clients and resource indicators.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

import graphstore
from tests.support.agent import Agent, agent
from tests.support.served import Wire, serve_in_process
from tools import typescript_client as node

httpx2 = pytest.importorskip("httpx2")
from mcp.client.auth import OAuthClientProvider  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata  # noqa: E402

pytestmark = [pytest.mark.rest, pytest.mark.in_process("has a server of its own")]
PACKAGE = "oidc-provider@8.8.1"  # the newest that runs on Node 20
ISSUER = """
import Provider, { errors } from "oidc-provider";

const [, , port, resource] = process.argv;
const provider = new Provider(`http://127.0.0.1:${port}`, {
  cookies: { keys: ["secret"] },
  scopes: ["openid", "offline_access", "graphstore:read", "graphstore:write"],
  pkce: { required: () => true },
  features: {
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo(_, indicator) {
        if (!indicator.startsWith(resource)) throw new errors.InvalidTarget();
        return { scope: "graphstore:read graphstore:write", audience: indicator, accessTokenTTL: 60, accessTokenFormat: "jwt", jwt: { sign: { alg: "RS256" } } };
      },
    },
  },
  extraTokenClaims: (_, token) => ({ teams: [`team/${token.accountId}`] }),
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
"""
CALLBACK = "http://127.0.0.1:7/callback"  # nobody listens there: the test reads the address


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the program that is the issuer."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("issuer")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "issuer.js").write_text(ISSUER)
    node.npm(folder, *node.INSTALL, PACKAGE)
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def served(provider: Path, folder: Path, *options: str) -> Iterator[tuple[str, str]]:
    """The URLs of an issuer, and of a server of the store in a folder that trusts it."""
    issuer_port, port = free_port(), free_port()
    issuer, resource = f"http://127.0.0.1:{issuer_port}", f"http://127.0.0.1:{port}"
    program = subprocess.Popen(
        ["node", "issuer.js", str(issuer_port), resource],
        cwd=provider, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert program.stdout is not None
        while "ready" not in (line := program.stdout.readline()):
            assert line, "the issuer did not start"
        with serve_in_process(folder, "--no-ticks", "--port", str(port), "--issuer", issuer, *options) as (
            _,
            url,
        ):
            assert url == resource
            yield issuer, url
    finally:
        program.kill()
        program.wait(30)
        program.stdout.close()


class Person:
    """Signs in under a name, and lets the client have what it asks for. `asked`: the query of the client's request; `token`: what it got."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: dict[str, str] = {}
        self.tokens: list[Any] = []
        self._came_back: dict[str, str] = {}
        self._client: Any = None

    async def sign_in(self, address: str) -> None:
        self.asked = dict(parse_qsl(urlsplit(address).query))
        async with httpx2.AsyncClient() as browser:
            page = await browser.get(address)
            for form in ({"prompt": "login", "login": self.name, "password": "x"}, {"prompt": "consent"}):
                page = await self._follow(browser, page)
                [action] = re.findall(r'action="([^"]+)"', page.text)
                page = await browser.post(action, data=form)
            await self._follow(browser, page)

    async def _follow(self, browser: Any, page: Any) -> Any:
        """Follow redirects until a page, or until they leave the issuer for the client."""
        while page.is_redirect:
            where = str(page.url.join(page.headers["location"]))
            if where.startswith(CALLBACK):
                self._came_back = dict(parse_qsl(urlsplit(where).query))
                return page
            page = await browser.get(where)
        return page

    async def come_back(self) -> AuthorizationCodeResult:
        back = self._came_back
        return AuthorizationCodeResult(code=back["code"], state=back["state"], iss=back.get("iss"))

    # what the client keeps

    async def get_tokens(self) -> Any:
        return self.tokens[-1] if self.tokens else None

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens.append(tokens)

    async def get_client_info(self) -> Any:
        return self._client

    async def set_client_info(self, client_info: Any) -> None:
        self._client = client_info


@contextlib.contextmanager
def signed_in(person: Person, url: str) -> Iterator[Agent]:
    """An agent of a person at a server, by the SDK's own client."""
    described = OAuthClientMetadata(
        client_name="an agent", redirect_uris=[CALLBACK], token_endpoint_auth_method="none"
    )  # type: ignore[list-item]
    auth = OAuthClientProvider(f"{url}/mcp", described, person, person.sign_in, person.come_back)
    with agent(
        streamable_http_client(f"{url}/mcp", http_client=httpx2.AsyncClient(auth=auth, timeout=60))
    ) as made:
        yield made


def test_a_person_signs_in_and_their_agent_remembers_under_their_name(provider: Path, tmp_path: Path) -> None:
    place, ana = tmp_path / "memory.gs", Person("ana")
    with served(provider, place) as (issuer, url):
        with signed_in(ana, url) as hers:
            hers.ask("remember", statement="lunch is at noon")
            assert "noon" in str(hers.ask("search", query="lunch"))
        assert (ana.asked["code_challenge_method"], ana.asked["resource"]) == ("S256", f"{url}/mcp")
        assert ana.asked["scope"].split()[:2] == ["graphstore:read", "graphstore:write"]

        token = ana.tokens[-1].access_token
        refused = Wire(url, token).ask("GET", "/nodes")
        assert refused[0] == 401 and f"resource={url}" in refused[1]["message"]  # it is for agents alone
        with graphstore.open(place) as store:
            assert [node.author for node in store.nodes()] == ["ana"]

        session = {"Mcp-Session-Id": "0" * 32, "Accept": "application/json, text/event-stream"}
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert 401 == Wire(url, token[:-8] + "A" * 8).ask("POST", "/mcp", ping, **session)[0]
        assert 404 == Wire(url, token).ask("POST", "/mcp", ping, **session)[0]
        assert issuer not in token


def test_each_sees_the_scopes_of_their_claim(provider: Path, tmp_path: Path) -> None:
    place = tmp_path / "memory.gs"
    with served(provider, place, "--scope-claim", "teams") as (_, url):
        for name in ("ana", "ben"):
            with signed_in(Person(name), url) as theirs:
                theirs.ask("remember", statement=f"the budget of {name} is secret")
                seen = json.dumps(theirs.ask("search", query="secret budget"))
                assert [each for each in ("ana", "ben") if f"budget of {each}" in seen] == [name]
    with graphstore.open(place) as store:
        assert {node.scope for node in store.nodes()} == {"team/ana", "team/ben"}


def test_a_client_whose_token_is_refused_gets_another(provider: Path, tmp_path: Path) -> None:
    with served(provider, tmp_path / "memory.gs") as (_, url):
        ana = Person("ana")
        with signed_in(ana, url) as hers:
            hers.ask("remember", statement="lunch is at noon")
            first = len(ana.tokens)
        ana.tokens[-1] = ana.tokens[-1].model_copy(
            update={"access_token": "a.b.c", "expires_in": int(time.time())}
        )
        with signed_in(ana, url) as hers:
            assert "noon" in str(hers.ask("search", query="lunch"))
        assert len(ana.tokens) > first
