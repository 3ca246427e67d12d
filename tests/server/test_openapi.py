"""The OpenAPI document: valid, small, and every answer is what it says. Clients that strangers generate from it work against a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from graphstore import GraphStore
from graphstore.remote import calls as contract
from graphstore.server.http_app import path_of
from graphstore.server.openapi import described
from tests.support.served import TOKENS, Wire, fact, serve_in_process, serve_in_thread

pytestmark = pytest.mark.in_process("has a server of its own")

MOST = 445_000  # bytes of the document
OTHERS = {"/health", "/rights", "/activity", "/media/{event}", "/metrics", "/export", "/batch", "/transaction", "/transaction/{transaction}/commit", "/transaction/{transaction}/abort", "/webhooks/deploy"}  # fmt: skip


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return described(contract.CALLS, path_of)


@pytest.fixture
def wire(disk_store: GraphStore) -> Iterator[Wire]:
    with serve_in_thread(disk_store) as url:
        yield Wire(url, TOKENS.write)


def test_it_is_valid_and_small(document: dict[str, Any]) -> None:
    validate(document)

    assert len(orjson.dumps(document)) < MOST


def test_every_call_shows_its_parameters_its_words_and_its_answer(document: dict[str, Any]) -> None:
    paths = document["paths"]
    assert paths.keys() - {path_of(call) for call in contract.CALLS.values()} == OTHERS
    for call in contract.CALLS.values():
        post = paths[path_of(call)]["post"]
        body = post["requestBody"]["content"]["application/json"]["schema"]
        assert call.parameters.keys() == body["properties"].keys(), call.name
        whole = post.get("description", document["paths"][path_of(call)].get("summary", post.get("summary")))
        assert call.doc == whole, call.name  # a doc of one sentence is the summary
        schema = post["responses"]["200"]["content"]["application/json"]["schema"]
        assert schema or (call.scope == "read" and call.files), call.name
    assert "get" not in paths["/add_node"]


def test_answers_are_what_it_says(document: dict[str, Any], wire: Wire) -> None:
    def asked(name: str, /, **args: Any) -> None:
        answer = wire.post(f"/{name.replace('.', '/')}", args)
        schema = document["paths"][f"/{name.replace('.', '/')}"]["post"]["responses"]["200"]["content"]
        whole = {**schema["application/json"]["schema"], "components": document["components"]}
        Draft202012Validator(whole).validate(answer)

    asked("add_node", **fact("old", key="lunch"))
    asked("add_node", **fact("new"))
    asked("link", source="new", kind="derived_from", target="old")
    asked("supersede", old="old", by="new", reason="the world moved on")
    asked("revise", id="new", content={"n": 2})
    asked("record_event", type="error", description="it broke", id="boom")
    asked("snapshot", name="before")
    asked("branch", name="plan")
    for name in ("node", "history", "versions", "operations", "inspect", "links_from", "what_superseded"):
        asked(name, id="old" if name in ("what_superseded", "inspect") else "new")
    of_all = "nodes events changes shaky contradictions stats verify branches vocabulary snapshots at"
    for name in of_all.split():
        asked(name)
    asked("causes", id="boom")
    asked("compare", other={"tx": "2020-01-01"})
    asked("query", cypher="MATCH (n) RETURN n.id AS id")
    asked("to_arrow")
    asked("recall.recall", text="new")
    asked("timeline.messages")
    asked("memory.stats")


def test_what_stands_apart_elsewhere_is_an_argument_where_a_call_has_one_of_that_name(wire: Wire) -> None:
    asked = {"valid": "2026-01-01", "tx": "2026-01-02"}

    assert wire.post("/as_of", asked) == wire.get("/as_of?valid=2026-01-01&tx=2026-01-02")


# ---------------------------------------------------------------- clients that others generate

PYTHON = """
import sys
from graphstore_client import AuthenticatedClient
from graphstore_client.api.store import post_add_node, post_supersede
from graphstore_client.api.view import get_node, get_nodes, post_what_superseded
from graphstore_client.models import *

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
for id in ("old", "new"):
    body = PostAddNodeBody.from_dict({"kind": "fact", "content": {"name": id}, "id": id})
    made = post_add_node.sync(client=client, body=body)
    assert isinstance(made, Node) and made.id == id and made.content["name"] == id, made
told = post_supersede.sync(client=client, body=PostSupersedeBody.from_dict({"old": "old", "by": "new", "reason": "moved"}))
assert [(link.source, link.target) for link in told] == [("new", "old")], told
assert [node.id for node in get_nodes.sync(client=client)] == ["new"]
found = post_what_superseded.sync(client=client, body=PostWhatSupersededBody.from_dict({"id": "old"}))
assert found.to_dict()["current"][0]["id"] == "new", found
refused = get_node.sync(client=client, id="nothing")
assert isinstance(refused, Error) and refused.error == "NotFoundError", refused
print("good")
"""


def _run(*command: str | Path, cwd: Path, path: Path | None = None) -> str:
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    if path is not None:
        env["PYTHONPATH"] = str(path)
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def written(document: dict[str, Any], tmp_path: Path) -> Path:
    (tmp_path / "openapi.json").write_bytes(orjson.dumps(document))
    return tmp_path


def _against(folder: Path) -> Any:
    return serve_in_process(folder / "memory.gs", "--no-ticks")


@pytest.mark.rest
def test_a_python_client_made_by_strangers_works(written: Path) -> None:
    _run("openapi-python-client", "generate", "--path", "openapi.json", "--output-path", "made", cwd=written)
    (written / "try.py").write_text(PYTHON)
    with _against(written) as (_, url):
        token = (written / "memory.gs/token").read_text().strip()
        assert "good\n" == _run(sys.executable, "try.py", url, token, cwd=written, path=written / "made")
