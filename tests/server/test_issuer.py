"""Access tokens of an issuer: whom they let in, to what, and what a client that is refused reads."""

from __future__ import annotations

import re
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from graphstore import GraphStore, InvalidError
from graphstore.server import issuer as trusting
from graphstore.server.dispatch import ServerLimits
from graphstore.server.issuer import READ, WELL_KNOWN, WRITE, Issuer
from tests.support.issuer import LocalIssuer, local_issuer
from tests.support.served import TOKENS, Wire, fact, serve_in_process, serve_in_thread

pytestmark = pytest.mark.in_process("has a server of its own")
RESOURCE = "https://memory.example/graph"


class Served(NamedTuple):
    """A server that trusts an issuer."""

    url: str
    issuer: LocalIssuer
    store: GraphStore

    def wire(self, **claims: Any) -> Wire:
        return Wire(self.url, self.issuer.token(claims.pop("audience", RESOURCE), **claims))

    def refused(self, token: str, path: str = "/nodes") -> tuple[int, str, str]:
        """The status, message and challenge of a token that is refused."""
        status, answer, headers = Wire(self.url, token).ask("GET", path)
        assert status != 200, answer
        return status, answer["message"], headers.get("www-authenticate", "")


@pytest.fixture
def served(disk_store: GraphStore) -> Iterator[Served]:
    with local_issuer() as issuer:
        trusted = Issuer(issuer.url, RESOURCE)
        with serve_in_thread(disk_store, issuer=trusted, hosts=["memory.example"]) as url:
            yield Served(url, issuer, disk_store)


def parts(challenge: str) -> dict[str, str]:
    """The parts of a challenge, as a client reads them."""
    assert challenge.startswith("Bearer ")
    return dict(re.findall(r'(\w+)="([^"\\]*)"', challenge))


def test_a_client_without_a_token_is_led_to_the_issuer(served: Served) -> None:
    stranger = Wire(served.url, None)
    status, _, headers = stranger.ask("POST", "/mcp", {})
    found = parts(headers["www-authenticate"])

    assert (status, found["scope"], "error" in found) == (401, f"{READ} {WRITE}", False)
    assert found["resource_metadata"] == f"https://memory.example{WELL_KNOWN}/graph/mcp"
    document = stranger.get(f"{WELL_KNOWN}/graph/mcp")
    assert document == {
        "resource": f"{RESOURCE}/mcp",
        "authorization_servers": [served.issuer.url],
        "scopes_supported": [READ, WRITE],
        "bearer_methods_supported": ["header"],
        "resource_name": "graphstore",
    }
    assert stranger.get(f"{WELL_KNOWN}/graph")["resource"] == RESOURCE
    assert 401 == stranger.ask("GET", f"{WELL_KNOWN}/other")[0]
    assert served.issuer.asked == []


def test_a_token_reads_or_writes_by_its_scopes_under_the_name_of_its_subject(served: Served) -> None:
    writer, reader = served.wire(), served.wire(scope=f"openid {READ}", sub="ben")
    also = served.wire(scope=None, scp=[WRITE], sub="eve")

    assert writer.post("/add_node", fact("lunch"))["author"] == "ana"
    served.store.set_trust({"ana": 1})
    assert also.post("/add_node?author=ana", fact("tea"))["author"] == "eve"
    assert [node["id"] for node in reader.get("/nodes")] == ["lunch", "tea"]
    status, answer, headers = reader.ask("POST", "/add_node", fact("more"))
    assert (status, answer["error"]) == (403, "Forbidden")
    assert parts(headers["www-authenticate"])["error"] == "insufficient_scope"
    assert (reader.get("/rights"), writer.get("/rights")) == ({"rights": "read"}, {"rights": "write"})
    assert 200 == Wire(served.url, TOKENS.read).ask("GET", "/nodes")[0]


@pytest.mark.rest  # it imports what answers agents
def test_an_audience_is_the_server_or_the_path_of_agents_alone(served: Served) -> None:
    agents_alone = served.issuer.token(f"{RESOURCE}/mcp")

    for audience in (RESOURCE, f"{RESOURCE}/", ["https://other.example", RESOURCE]):
        assert 200 == served.wire(audience=audience).ask("GET", "/nodes")[0]
    status, message, challenge = served.refused(agents_alone)
    assert status == 401 and f"resource={RESOURCE}" in message
    assert parts(challenge)["error"] == "invalid_token"
    assert 401 != Wire(served.url, agents_alone).ask("POST", "/mcp", {})[0]
    for audience in ("https://other.example", RESOURCE + "s", "https://memory.example", None):
        assert 401 == served.refused(served.issuer.token(audience))[0]
        assert 401 == served.refused(served.issuer.token(audience), "/mcp")[0]


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"exp": time.time() - 3600}, "expired "),
        ({"exp": None}, '"exp" claim'),
        ({"sub": None}, '"sub" claim'),
        ({"sub": "two\nlines"}, "name of one line"),
        ({"nbf": time.time() + 3600}, "clocks"),
        ({"iss": "https://other.example"}, "other.example"),
        ({"iss": None}, "None"),
        ({"iss": "x" * 9000}, "issuer"),
        ({"exp": str(int(time.time()) - 3600)}, "expired "),
        ({"cnf": {"jkt": "x"}}, "bound to a key"),
        ({"header": {"typ": "dpop+jwt"}}, "dpop+jwt"),
        ({"header": {"kid": "other"}}, "'other'"),
    ],
)
def test_a_token_that_is_not_valid_is_refused_with_its_reason(
    served: Served, claims: dict[str, Any], says: str
) -> None:
    status, message, challenge = served.refused(served.issuer.token(RESOURCE, **claims))

    assert (status, parts(challenge)["error"]) == (401, "invalid_token")
    assert says in message
    assert parts(challenge)["error_description"]


def test_a_clock_may_be_off_by_a_minute(served: Served) -> None:
    now = time.time()

    assert 200 == served.wire(exp=now - 30, nbf=now + 30, iat=now + 30).ask("GET", "/nodes")[0]


def test_a_signature_of_another_kind_or_key_is_refused(served: Served) -> None:
    issuer = served.issuer
    unsigned = issuer.token(RESOURCE).rpartition(".")[0].partition(".")[2]
    good = issuer.token(RESOURCE)
    changed = good[:-8] + ("A" * 8 if good[-8:] != "A" * 8 else "B" * 8)
    with local_issuer() as other:
        forged = issuer.token(RESOURCE, key=other.keys[other.kid])

    none = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0"
    assert "signed by 'none'" in served.refused(f"{none}.{unsigned}.")[1]
    assert "signed by 'HS256'" in served.refused(issuer.token_by_public_key(RESOURCE))[1]
    assert "no key" in served.refused(changed)[1]
    assert "no key" in served.refused(forged)[1]
    surrogate = urlsafe_b64encode(b'{"iss": "\\ud800"}').decode().rstrip("=")
    assert "ud800" in served.refused(f"eyJhbGciOiJSUzI1NiJ9.{surrogate}.AAAA")[1]
    for rubbish in ("a.b.c", "..", f"{none}.{'W' * 5000}.x", "eyJhbGciOiJSUzI1NiJ9." + "W1tb" * 3000 + ".x"):
        assert 401 == served.refused(rubbish)[0]


def test_a_token_without_a_scope_of_ours_is_refused_with_those_it_has(served: Served) -> None:
    status, message, challenge = served.refused(served.issuer.token(RESOURCE, scope="openid email"))

    assert (status, parts(challenge)["error"]) == (403, "insufficient_scope")
    assert "'openid', 'email'" in message and WRITE in message
    for scope in (None, 5, {"a": 1}, [5], ""):
        assert 403 == served.refused(served.issuer.token(RESOURCE, scope=scope))[0]


def test_keys_are_read_once_and_again_when_they_changed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = served.issuer
    for _ in range(3):
        assert 200 == served.wire().ask("GET", "/nodes")[0]
    assert issuer.asked == ["/.well-known/oauth-authorization-server", "/keys"]
    old = issuer.token(RESOURCE)

    issuer.rotate("RS256")
    for _ in range(3):  # so soon after the last time it is not asked again
        assert 401 == served.refused(issuer.token(RESOURCE))[0]
    assert len(issuer.asked) == 2
    monkeypatch.setattr(trusting, "_PAUSE", 0.0)
    assert 200 == served.wire().ask("GET", "/nodes")[0]
    assert "no key" in served.refused(old)[1]
    kid = issuer.kid
    issuer.rotate()
    issuer.keys[kid] = issuer.keys.pop(issuer.kid)  # another key under the same name
    issuer.kid = kid
    assert 200 == served.wire().ask("GET", "/nodes")[0]


def test_an_issuer_that_is_down_refuses_its_tokens_alone_and_old_keys_serve_for_a_while(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trusting, "_PAUSE", 0.0)
    served.issuer.down = True
    status, message, _ = served.refused(served.issuer.token(RESOURCE))
    assert status == 503 and served.issuer.url in message and "500" in message
    assert 200 == Wire(served.url, TOKENS.read).ask("GET", "/nodes")[0]

    served.issuer.down = False
    assert 200 == served.wire().ask("GET", "/nodes")[0]
    served.issuer.down = True
    monkeypatch.setattr(trusting, "_FRESH", 0.0)
    assert 200 == served.wire().ask("GET", "/nodes")[0]
    monkeypatch.setattr(trusting, "_GRACE", 0.0)
    assert 503 == served.refused(served.issuer.token(RESOURCE))[0]


@pytest.mark.parametrize(
    ("path", "metadata"),
    [
        ("", "/.well-known/openid-configuration"),
        ("/tenant", "/.well-known/oauth-authorization-server/tenant"),
        ("/tenant", "/.well-known/openid-configuration/tenant"),
        ("/tenant", "/tenant/.well-known/openid-configuration"),
    ],
)
def test_metadata_is_found_where_the_standards_put_it(
    disk_store: GraphStore, path: str, metadata: str
) -> None:
    with (
        local_issuer(path, metadata=metadata) as issuer,
        serve_in_thread(disk_store, issuer=Issuer(issuer.url, RESOURCE)) as url,
    ):
        assert 200 == Wire(url, issuer.token(RESOURCE)).ask("GET", "/nodes")[0]


def test_metadata_of_another_issuer_is_refused_with_its_name(served: Served) -> None:
    served.issuer.issuer = "https://other.example/"

    status, message, _ = served.refused(served.issuer.token(RESOURCE))
    assert status == 503 and "--issuer https://other.example/" in message


def test_a_claim_names_the_scopes_that_a_token_sees(disk_store: GraphStore) -> None:
    for name in ("team/a", "team/b"):
        disk_store.add_node("fact", {"says": f"lunch of {name}"}, id=name.replace("/", "-"), scope=name)
    with local_issuer() as issuer:
        trusted = Issuer(issuer.url, RESOURCE, scope_claim="teams")
        with serve_in_thread(disk_store, issuer=trusted) as url:

            def seen(**claims: Any) -> tuple[int, Any]:
                status, answer, _ = Wire(url, issuer.token(RESOURCE, **claims)).ask("GET", "/nodes")
                return status, [node["id"] for node in answer] if status == 200 else answer["message"]

            assert seen(teams="team/a") == (200, ["team-a"])
            assert seen(teams=["team/a", "team/b"]) == (200, ["team-a", "team-b"])
            assert seen(teams=["team"]) == (200, ["team-a", "team-b"])
            for wrong in (None, [], "", "/team", ["team/a", 5], {"a": 1}):
                status, message = seen(teams=wrong)
                assert status == 403 and "'teams'" in message
            ana = Wire(url, issuer.token(RESOURCE, teams=["team/a"]))
            made = ana.post("/add_node", {"kind": "fact", "content": {"says": "tea"}})
            assert (made["scope"], made["author"]) == ("team/a", "ana")


def test_what_many_people_used_is_closed_again(disk_store: GraphStore) -> None:
    with local_issuer() as issuer:
        trusted = Issuer(issuer.url, RESOURCE, scope_claim="sub")
        before = threading.active_count()
        with serve_in_thread(disk_store, issuer=trusted, limits=ServerLimits(parts=2)) as url:
            for number in [*range(12), 0, 11, 5]:
                person = Wire(url, issuer.token(RESOURCE, sub=f"person-{number}"))
                made = person.post("/add_node", {"kind": "fact", "content": {"says": "mine"}})
                assert made["id"] in [node["id"] for node in person.get("/nodes")]
                person.close()
            until = time.monotonic() + 20
            while threading.active_count() > before + 14 and time.monotonic() < until:
                time.sleep(0.02)
            assert threading.active_count() <= before + 14
    assert len(disk_store.nodes()) == 15


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"url": "http://issuer.example"}, "not encrypted"),
        ({"url": "issuer.example"}, "--issuer 'issuer.example'"),
        ({"url": "https://user@issuer.example"}, "--issuer"),
        ({"url": "https://issuer.example/?x=1"}, "without a query"),
        ({"resource": "memory.example"}, "--resource 'memory.example'"),
        ({"resource": "https://memory.example:x"}, "--resource"),
    ],
)
def test_an_address_that_is_none_is_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidError, match=re.escape(says)):
        Issuer(**{"url": "https://issuer.example", "resource": RESOURCE, **given})


@pytest.mark.rest
def test_a_session_of_agents_is_of_who_began_it(tmp_path: Any) -> None:
    pytest.importorskip("mcp")
    asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}
    kinds = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    with (
        local_issuer() as issuer,
        serve_in_process(tmp_path / "memory.gs", "--no-ticks", "--issuer", issuer.url) as (_, url),
    ):
        ana, ben = (Wire(url, issuer.token(f"{url}/mcp", sub=name)) for name in ("ana", "ben"))
        status, _, headers = ana.ask("POST", "/mcp", first, **kinds)
        session = {**kinds, "Mcp-Session-Id": headers["mcp-session-id"]}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        statuses = [each.ask("POST", "/mcp", ping, **session)[0] for each in (ana, ben)]
    assert (status, statuses) == (200, [200, 404])


@pytest.mark.rest
def test_a_command_trusts_an_issuer_and_says_so(tmp_path: Any) -> None:
    with local_issuer() as issuer:
        with serve_in_process(tmp_path / "memory.gs", "--no-ticks", "--issuer", issuer.url) as (process, url):
            assert process.stdout is not None
            assert process.stdout.readline() == f"access tokens of {issuer.url} for {url} are admitted\n"
            assert Wire(url, issuer.token(url)).post("/add_node", fact("lunch"))["author"] == "ana"
        public = ("--issuer", issuer.url, "--resource", "https://memory.example", "--scope-claim", "sub")
        issuer.down = True
        with serve_in_process(tmp_path / "memory.gs", "--no-ticks", *public) as (process, url):
            assert process.stdout is not None
            process.stdout.readline()
            assert "note: the keys of the issuer" in process.stdout.readline()
            _, _, headers = Wire(url, None).ask("GET", "/nodes", Host="memory.example")
            assert f"https://memory.example{WELL_KNOWN}" in headers["www-authenticate"]
