"""The cases of the fuzzers, one for each line of standard input: a seed in, what became of it out."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.client
import json
import os
import random
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import graphstore
from graphstore import GraphStoreError, events
from lab import end_with_parent
from lab.cypher import text_of
from lab.fuzz import changed

Case = Callable[[str], tuple[str, str]]
EQUAL, REFUSED = ("equal", ""), ("refused", "")


def told(path: Path) -> None:
    """A store with something of everything, in several segments, closed in peace."""
    instants = iter(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number) for number in range(10_000))
    with graphstore.open(path, clock=lambda: next(instants), author="maria") as store:
        for number in range(12):
            store.add_node(
                "fact",
                {"name": f"fact {number}", "n": number, "pad": "x" * 60},
                id=f"fact-{number}",
                tags=("hot",),
            )
        store.record_event("deploy", "v1", id="deploy-1", metadata={"sha": 'a"b\\c\n'})
        store.add_node("plan", {"ü": "☃", "n": 1.5}, id="plan-1", key="plan")
        store.revise("plan-1", {"ü": "☂"}, reason="rain", valid_to="2026-03-01")
        with store.transaction():
            store.add_node("plan", {}, id="plan-2", supersedes=["plan-1"])
            store.link("plan-2", "related_to", "deploy-1", metadata={"why": "so"})
        store.bulk_load(
            nodes=[{"id": "bulk-1", "kind": "x"}], versions=[{"node_id": "bulk-1", "content": {"a": 1}}]
        )
        store.link("fact-1", "derived_from", "fact-2", strength=3)
        store.retract("fact-3", reason="wrong")
        store.erase("fact-4", reason="private")
        branch = store.branch("aside")
        branch.add_node("fact", {"name": "aside"}, id="aside-1")
        store.query_tables("MATCH (n:Node) RETURN count(*) AS n")


def answers(store: Any) -> str:
    """A digest of what a store tells of everything, from the index and from the tables."""
    ids = [node.id for node in store.as_of(valid="2026-02-01").nodes()] + ["fact-3", "fact-4", "plan-1"]
    parts: list[Any] = [store.versions(id) for id in ids]
    parts += [store.links_from(id) for id in ids]
    parts += [store.events(), store.changes(), store.on("aside").nodes()]
    parts += [
        sorted(map(repr, store.query_tables(text)))
        for text in (
            "MATCH (v:Version) RETURN v.*",
            "MATCH (e:Event) RETURN e.*",
            "MATCH (n:Node)-[r]->(m:Node) RETURN n.id, m.id, r.*",
        )
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def journal_case(folder: Path) -> Case:
    """Files of a store changed: it tells the truth, or says what is wrong."""
    whole = folder / "whole.gs"
    told(whole)
    with graphstore.open(whole) as store:
        truth = answers(store)
    names = [
        name
        for name in sorted(whole.rglob("*"))
        if name.is_file() and name.name not in ("lock", "graph.lock", "graph.kuzu", "ledger.db-shm")
    ]

    def case(seed: str) -> tuple[str, str]:
        chance = random.Random(seed)
        path = folder / "case.gs"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        file = chance.choice([whole / "ledger.db", *names])
        victim = path / file.relative_to(whole)
        if not victim.exists():
            return EQUAL
        victim.write_bytes(changed(chance, file.read_bytes()))
        try:
            with graphstore.open(path, read_only=chance.random() < 0.5) as store:
                found = answers(store)
                good = store.verify()
                notices = " ".join(store.notices)
        except GraphStoreError:
            return REFUSED
        if found == truth and good.ok:
            return EQUAL
        if found == truth and file.name == "ledger.db":
            return REFUSED  # the answers came from the rows; verify names the damage
        if found == truth:
            return ("found", f"{file.name}: the answers are the truth, and verify says {good.problems[:2]}")
        return (
            "found",
            f"{file.name}: another answer; verify says {good.ok} {good.problems[:2]}; notices: {notices}",
        )

    return case


def dump_case(folder: Path) -> Case:
    """A dump changed: it is restored as it was, or refused with nothing left."""
    told(folder / "whole.gs")
    with graphstore.open(folder / "whole.gs") as store:
        store.export(folder / "whole.jsonl")
        truth = answers(store)
    data = (folder / "whole.jsonl").read_bytes()

    def case(seed: str) -> tuple[str, str]:
        chance = random.Random(seed)
        dump, path = folder / "case.jsonl", folder / "again.gs"
        shutil.rmtree(path, ignore_errors=True)
        dump.write_bytes(changed(chance, data))
        try:
            with graphstore.restore(dump, path) as store:
                found = answers(store)
        except GraphStoreError:
            left = [name.name for name in folder.iterdir() if name.name.startswith("again.gs")]
            return ("found", f"refused, and {left} is left") if left else REFUSED
        return EQUAL if found == truth else ("found", "it was restored as another store")

    return case


# ---------------------------------------------------------------------- imports


def _rows(store: Any, file: Path, *, format: str) -> Any:
    from graphstore.imports import records

    mapping = {"id": "{name}", "kind": "row", "content": "*", "valid_from": "since", "tags": ["{tag}"]}
    return records.import_rows(store, file, mapping, format=format)  # type: ignore[arg-type]


def importers(folder: Path) -> dict[str, tuple[Path, Callable[[Any, Path], Any]]]:
    """A file or folder of the shape that each importer reads, and the importer."""
    from graphstore.imports import gasoline, memobrain, otlp, pi_brain
    from graphstore.sessions import ingesting

    own = folder / "files"
    own.mkdir()
    with graphstore.open(":memory:") as store:
        recorder = events.Recorder(store)
        del recorder
        store.record_event("error", "TypeError in cart", id="evt_1", metadata={"n": [1, None]}, trace_id="5b8efff798038103d269b633813fc60c", span_id="eee19b7ec3c1b174")  # fmt: skip
        store.record_event("fix", "mended", id="evt_2", related_to="evt_1")
        gasoline.export_gasoline(store, own / "events.jsonl")
    span = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "pay", "startTimeUnixNano": "1769904000000000001",
            "endTimeUnixNano": "1769904000000000901", "attributes": [{"key": "n", "value": {"intValue": "3"}}], "status": {"code": 2}}  # fmt: skip
    traces = {
        "resourceSpans": [
            {"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "web"}, "spans": [span]}]}
        ]
    }
    (own / "spans.json").write_text(json.dumps(traces))
    with graphstore.open(":memory:") as store:
        otlp.import_otlp(store, own / "spans.json")
        otlp.export_otlp(store, own / "spans.pb")
    thoughts = {str(n): {"node_id": n, "kind": "evidence", "thought": f"thought {n}", "related_turn_ids": [n], "active": True, "created_at": "2026-01-01",
                         "session_id": "s", "version": 1, "supersedes": [n - 1] if n > 1 else []} for n in range(1, 5)}  # fmt: skip
    (own / "graph.json").write_text(
        json.dumps({"nodes": thoughts, "edges": [{"src": 1, "dst": 2, "rationale": "needs"}]})
    )
    messages = [
        {"role": "user", "content": f"message {n}", "timestamp": f"2026-01-0{n + 1}T10:00:00Z", "id": f"m{n}"}
        for n in range(5)
    ]
    (own / "messages.json").write_text(json.dumps(messages))
    (own / "rows.csv").write_text('name,since,tag\nada,2026-01-01,x\n"gr,ace",2026-01-02,y\n')
    (own / "rows.jsonl").write_text(
        '{"name":"ada","since":"2026-01-01","tag":"x","n":1.5}\n{"name":"grace","since":null,"tag":"y"}\n'
    )
    (own / "pi.jsonl").write_text("\n".join(_pi_lines()) + "\n")
    (own / "claude.jsonl").write_text("\n".join(_claude_lines()) + "\n")
    with graphstore.open(":memory:") as store:
        ingesting.ingest(store, own / "pi.jsonl")
        pi_brain.export_pi_brain(store, own / "brain")
    return {
        "gasoline": (own / "events.jsonl", gasoline.import_gasoline),
        "otlp": (own / "spans.json", otlp.import_otlp),
        "protobuf": (own / "spans.pb", otlp.import_otlp),
        "memobrain": (own / "graph.json", memobrain.import_memobrain),
        "messages": (own / "messages.json", memobrain.import_messages),
        "csv": (own / "rows.csv", functools.partial(_rows, format="csv")),
        "jsonl": (own / "rows.jsonl", functools.partial(_rows, format="jsonl")),
        "pi": (own / "pi.jsonl", ingesting.ingest),
        "claude": (own / "claude.jsonl", ingesting.ingest),
        "pi_brain": (own / "brain", pi_brain.import_pi_brain),
    }


def _pi_lines() -> Iterator[str]:
    yield json.dumps(
        {
            "type": "session",
            "version": 3,
            "id": "sess",
            "timestamp": "2026-01-25T10:00:00.000Z",
            "cwd": "/work",
        }
    )
    parent = None
    for number in range(8):
        role = ("user", "assistant")[number % 2]
        content = [{"type": "text", "text": f"please mend test {number}"}]
        yield json.dumps({"type": "message", "id": f"m{number}", "parentId": parent, "timestamp": f"2026-01-25T10:0{number}:00.000Z",
                          "message": {"role": role, "content": content, "usage": {"input": 5, "output": 6}}})  # fmt: skip
        parent = f"m{number}"
    yield json.dumps(
        {
            "type": "compaction",
            "id": "c1",
            "parentId": parent,
            "timestamp": "2026-01-25T10:09:00.000Z",
            "summary": "so far",
            "tokensBefore": 9,
        }
    )


def _claude_lines() -> Iterator[str]:
    parent = None
    for number in range(8):
        role = ("user", "assistant")[number % 2]
        message = {
            "role": role,
            "content": [{"type": "text", "text": f"look at file {number}"}],
            "model": "m",
            "usage": {"input_tokens": 3},
        }
        yield json.dumps({"type": role, "uuid": f"u{number}", "parentUuid": parent, "sessionId": "5e41ef2f-689e-4d7d-b917-06ebc40107bc",
                          "timestamp": f"2026-01-25T10:0{number}:00.000Z", "cwd": "/work", "version": "2.0", "isSidechain": False, "message": message})  # fmt: skip
        parent = f"u{number}"


def imports_case(folder: Path) -> Case:
    """A file changed: it is taken in, wholly or with remarks, or refused; the store is whole afterwards."""
    known = importers(folder)

    def case(seed: str) -> tuple[str, str]:
        chance = random.Random(seed)
        name = chance.choice(sorted(known))
        source, take = known[name]
        here = folder / "case"
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir()
        if source.is_dir():
            given = here / source.name
            shutil.copytree(source, given)
            victim = chance.choice(sorted(file for file in given.rglob("*") if file.is_file()))
        else:
            victim = given = here / source.name
            shutil.copy(source, given)
        victim.write_bytes(changed(chance, victim.read_bytes()))
        with graphstore.open(":memory:") as store:
            try:
                take(store, given)
                word = EQUAL
            except GraphStoreError:
                word = REFUSED
            found = store.verify()
        return word if found.ok else ("found", f"{name}: verify says {found.problems[:2]}")

    return case


# ---------------------------------------------------------------------- the wire


def wire_case(folder: Path) -> Case:
    """What a client sends, changed: it is answered by no 5xx, the server lives, answers others at once, and what was there is there."""
    store = folder / "served.gs"
    told(store)
    server, port = _serving(store)
    tokens = [(store / name).read_text().strip() for name in ("token", "token-read")]

    def asking(chance: random.Random) -> bytes:
        calls: list[tuple[str, str, Any]] = [
            ("GET", "/node?id=fact-1", None), ("GET", "/nodes?kind=fact&tx=2026-01-01", None), ("GET", "/health", None), ("GET", "/versions?id=plan-1", None),
            ("POST", "/query", {"cypher": "MATCH (n:Node) WHERE n.id = $id RETURN n.id", "parameters": {"id": "fact-1"}}),
            ("POST", "/add_node", {"kind": "fuzz", "content": {"a": [1, 2.5, None]}, "valid_from": "2026-01-05"}),
            ("POST", "/link", {"source": "fact-5", "kind": "related_to", "target": "fact-6", "strength": 2}),
            ("POST", "/record_event", {"type": "error", "description": "boom", "metadata": {"n": 1}}),
            ("POST", "/batch", {"calls": [["add_node", {"kind": "fuzz", "content": {}}], ["stats", {}]]}),
            ("POST", "/bulk_load", {"nodes": [{"id": "loaded", "kind": "x"}], "versions": [{"node_id": "loaded", "content": {}}]}),
            ("GET", "/changes?since=2026-01-01T05:00:00Z", None), ("POST", "/as_of", {"valid": "2026-01-01"}), ("GET", "/openapi.json", None),
        ]  # fmt: skip
        method, path, body = chance.choice(calls)
        sent = b"" if body is None else json.dumps(body).encode()
        if chance.random() < 0.5:
            sent = changed(chance, sent)
        token = chance.choice([*tokens, "nobody"])
        length = len(sent) if chance.random() < 0.9 else chance.choice((-1, 0, len(sent) + 5, 10**30))
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()  # fmt: skip
        return (changed(chance, head) if chance.random() < 0.5 else head) + sent

    def case(seed: str) -> tuple[str, str]:
        nonlocal server, port
        chance = random.Random(seed)
        sent = asking(chance)
        got = _exchanged(port, sent)
        statuses = [part[:3] for part in got.split(b"HTTP/1.1 ")[1:]]
        if server.poll() is not None:
            code = server.poll()
            server, port = _serving(store)
            return ("found", f"the server ended with {code} after {sent[:600]!r}")
        if bad := [
            status
            for status in statuses
            if status.startswith(b"5") and status not in (b"503", b"501", b"505")
        ]:
            return ("found", f"{bad[0].decode()} to {sent[:900]!r}: {got[-400:]!r}")
        start = time.monotonic()
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        line.request("GET", "/node?id=fact-1", headers={"Authorization": f"Bearer {tokens[1]}"})
        answer = line.getresponse()
        value = json.loads(answer.read())
        line.close()
        if answer.status != 200 or value["content"]["name"] != "fact 1":
            return ("found", f"afterwards fact-1 is {value} after {sent[:600]!r}")
        if time.monotonic() - start > 10:
            return ("found", f"another waited {time.monotonic() - start:.1f} s after {sent[:600]!r}")
        return (statuses[0].decode() if statuses else "closed", "")

    return case


def _serving(store: Path) -> tuple[subprocess.Popen[bytes], int]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [sys.executable, "-m", "graphstore", "serve", str(store), "--port", str(port), "--no-ticks"]
    server = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=end_with_parent
    )
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            if (store / "token-read").exists():
                return server, port
        time.sleep(0.02)
    raise RuntimeError("the server did not start")


def _exchanged(port: int, sent: bytes) -> bytes:
    """What is answered until nothing more comes."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as line, contextlib.suppress(OSError):
        line.sendall(sent)
        line.shutdown(socket.SHUT_WR)
        while part := line.recv(65536):
            got += part
            if len(got) > 1 << 20:
                break
    return got


def cypher_case(folder: Path) -> Case:
    """A text of Cypher to a server, with the read token: it is answered or refused in its time, and the server goes on."""
    store = folder / "memory.gs"
    told(store)
    server, port = _serving(store)
    allowed = 2.0

    def ask(call: str, cypher: str) -> tuple[int, Any]:
        token = (store / "token-read").read_text().strip()
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        with contextlib.closing(line):
            body = json.dumps({"cypher": cypher})
            line.request("POST", f"/{call}?seconds={allowed}", body, {"Authorization": f"Bearer {token}"})
            answer = line.getresponse()
            return answer.status, json.loads(answer.read())

    def case(seed: str) -> tuple[str, str]:
        nonlocal server, port
        chance = random.Random(seed)
        call = chance.choice(("query", "query", "query_tables"))
        text = text_of(chance)
        began = time.monotonic()
        try:
            status, value = ask(call, text)
        except (OSError, http.client.HTTPException) as error:
            what = f"{call} {text[:600]!r}: {error!r}; the server {'lives' if server.poll() is None else 'ended'}"
            server.kill()
            server.wait()
            server, port = _serving(store)
            return ("found", what)
        took = time.monotonic() - began
        if took > allowed + 15:  # a process may have to start, and its graph to be made
            return ("found", f"{call} {text[:600]!r} took {took:.1f} s")
        if status == 200:
            return ("answered", "")
        said = str(value.get("message") or value)
        if status >= 500 or value.get("error") not in ("QueryError", "InvalidError"):
            return ("found", f"{call} {text[:600]!r}: {status} {value}")
        for sign, word in (("ended the engine", "ended a process"), ("stopped", "stopped"), ("allowed", "too much"), ("memory", "memory")):  # fmt: skip
            if sign in said:
                return (word, "")
        return REFUSED

    return case


def mcp_case(folder: Path) -> Case:
    """Lines that an agent sends, changed: the process lives, and answers the next question."""
    store = folder / "agent.gs"
    told(store)
    agent = _agent(store)

    def line_of(chance: random.Random) -> bytes:
        tool = chance.choice([
            ("search", {"text": "fact 3"}), ("get", {"id": "fact-1"}), ("what_superseded", {"id": "plan-1"}), ("history", {"id": "plan-1"}),
            ("cypher", {"query": "MATCH (n:Node) RETURN n.id LIMIT 3"}), ("schema", {}), ("record", {"kind": "fact", "content": {"a": 1}}),
            ("diff", {"id": "plan-1", "one": 1, "two": 2}), ("trace", {"id": "fact-1"}), ("timeline", {"id": "plan-1"}), ("events", {}),
        ])  # fmt: skip
        method = chance.choice(
            (
                "tools/call",
                "tools/call",
                "tools/call",
                "tools/list",
                "resources/list",
                "resources/read",
                "prompts/list",
            )
        )
        params = (
            {"name": tool[0], "arguments": tool[1]}
            if method == "tools/call"
            else {"uri": "graphstore://schema"}
        )
        return changed(
            chance, json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode()
        )

    def case(seed: str) -> tuple[str, str]:
        nonlocal agent
        line = line_of(random.Random(seed))
        ping = f"ping-{seed}"
        assert agent.stdin is not None and agent.stdout is not None
        try:
            agent.stdin.write(
                line.replace(b"\n", b" ")
                + b"\n"
                + json.dumps({"jsonrpc": "2.0", "id": ping, "method": "ping"}).encode()
                + b"\n"
            )
            agent.stdin.flush()
            heard = b""
            while select.select([agent.stdout], [], [], 20)[0]:
                heard = agent.stdout.readline()
                if not heard:
                    break
                said = json.loads(heard)
                if said.get("error", {}).get("code") == -32603:
                    return ("found", f"an internal error to {line[:600]!r}: {said}")
                if said.get("id") == ping:
                    return ("answered", "")
            what = f"ended with {agent.wait(5)}" if not heard else "did not answer within 20 s"
        except (BrokenPipeError, ValueError) as error:
            what = f"broke: {error!r}"
        agent.kill()
        agent.wait()
        agent = _agent(store)
        return ("found", f"the process {what} after {line[:600]!r}")

    return case


def _agent(store: Path) -> subprocess.Popen[bytes]:
    with open(store.parent / "agent-errors", "ab") as errors:
        agent = subprocess.Popen(
            [sys.executable, "-m", "graphstore", "mcp", str(store)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,  # select() sees all there is
            preexec_fn=end_with_parent,
        )
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}}  # fmt: skip
    assert agent.stdin is not None and agent.stdout is not None
    agent.stdin.write(
        json.dumps(hello).encode() + b"\n" + b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    )
    agent.stdin.flush()
    agent.stdout.readline()
    return agent


def main() -> None:
    """Do cases until standard input ends."""
    target, folder = sys.argv[1], Path(tempfile.mkdtemp(dir=sys.argv[2]))
    answer = os.dup(1)
    os.dup2(2, 1)  # whatever prints, only answers go out
    case = {
        "journal": journal_case,
        "dump": dump_case,
        "imports": imports_case,
        "wire": wire_case,
        "mcp": mcp_case,
        "cypher": cypher_case,
    }[target](folder)
    for line in sys.stdin:
        try:
            found = case(line.strip())
        except Exception as error:
            found = ("found", f"not an error of ours: {error!r} {traceback.format_exc()[-1500:]}")
        os.write(answer, json.dumps(found).encode() + b"\n")


if __name__ == "__main__":
    main()
