"""The files of calls: below the one folder that is served, or sent in the call; and nothing of what lies elsewhere comes back."""

from __future__ import annotations

import io
import os
import zipfile
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from graphstore import ConflictError, GraphStore, InvalidError
from graphstore.imports import records
from graphstore.remote import calls as contract
from graphstore.remote import remote
from graphstore.server import call_files
from graphstore.server.call_files import CallFiles
from tests.support.ledger_rows import recorded
from tests.support.served import TOKENS, Wire, fact, serve_in_thread

pytestmark = pytest.mark.in_process("has a server of its own")

SECRET = "mellon"
MAPPING = {"id": "name", "kind": "person"}
ROOM = "café"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What is served, beside what is not: a secret, and ways that lead to it."""
    served = tmp_path / "served"
    (served / "inner").mkdir(parents=True)
    (tmp_path / "secret.csv").write_text(f"name\n{SECRET}\n{SECRET},{SECRET}\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.jsonl").write_text(f'{{"{SECRET}": }}\n')
    (served / "rows.csv").write_text("name\nada\n")
    (served / "link.csv").symlink_to(tmp_path / "secret.csv")
    (served / "links").symlink_to(tmp_path / "elsewhere")
    (served / "inner" / "link.csv").symlink_to("../../secret.csv")
    os.mkfifo(served / "pipe.csv")
    return served


@pytest.fixture
def url(disk_store: GraphStore, folder: Path) -> Iterator[str]:
    with serve_in_thread(disk_store, files=folder) as served:
        yield served


@pytest.fixture
def bare(disk_store: GraphStore) -> Iterator[str]:
    with serve_in_thread(disk_store) as served:
        yield served


def reads_files() -> list[tuple[str, str, dict[str, Any]]]:
    """Each call that reads a file, the argument that names it, and what else it needs."""
    found = []
    for name, call in contract.CALLS.items():
        for each in sorted(call.files) if call.scope == "write" else ():
            others = {other: MAPPING if other == "mapping" else ROOM for other in call.required - {each}}
            if each == "mapping":
                rows = {"name": "rows.csv", "base64": b64encode(b"name\nada\n").decode()}
                others = dict.fromkeys(call.required - {each}, rows)
            found.append((name, each, others))
    return found


OUTSIDE = ["../secret.csv", "inner/../../secret.csv", "link.csv", "inner/link.csv", "links/secret.jsonl", "links", "pipe.csv",
           "{above}/secret.csv", "{above}/served/../secret.csv", "/etc/passwd", "/proc/self/environ", "/proc/self/fd/0", "/dev/zero",
           "nothing.csv", "~/.bashrc", "rows.csv\0", "rows.csv/more", ""]  # fmt: skip


@pytest.mark.parametrize("place", OUTSIDE, ids=lambda place: place[:30].replace("\0", "0"))
def test_no_call_reads_what_lies_elsewhere(url, folder, place):
    wire = Wire(url)
    named = place.format(above=folder.parent)
    for name, argument, others in reads_files():
        if argument == "media_path":
            continue
        if place == "" and name in (
            "sessions.ingest",
            "pi_brain.import_pi_brain",
            "memory.index_soul",
            "gasoline.import_gasoline",
        ):
            continue  # the folder that is served itself
        status, told, _ = wire.ask("POST", "/" + name.replace(".", "/"), {**others, argument: named})
        if status == 200:  # a message without a place: what is written of it holds nothing
            assert place == "", (name, told)
        assert status < 500, (name, told)
        assert SECRET not in orjson.dumps(told).decode()
        assert "root:" not in orjson.dumps(told).decode()


def test_what_a_link_leads_to_is_not_told_by_the_whole_folder_either(url, disk_store):
    wire = Wire(url)
    for path, argument in (
        ("/sessions/ingest", "path"),
        ("/pi_brain/import_pi_brain", "folder"),
        ("/gasoline/import_gasoline", "path"),
    ):
        _, told, _ = wire.ask("POST", path, {argument: ""})
        assert SECRET not in orjson.dumps(told).decode()
    assert not disk_store.nodes()


def test_a_file_that_is_served_is_read_by_its_name_or_its_whole_path(url, folder, disk_store):
    wire = Wire(url)
    wire.post("/imports/import_csv", {"path": "rows.csv", "mapping": MAPPING})
    wire.post("/imports/import_csv", {"path": str(folder / "rows.csv"), "mapping": MAPPING})

    assert ["ada"] == [node.id for node in disk_store.nodes()]


def test_the_token_for_reading_names_no_file(url, folder):
    wire = Wire(url, TOKENS.read)
    assert 403 == wire.ask("POST", "/imports/import_csv", {"path": "rows.csv", "mapping": MAPPING})[0]
    for name in ("otlp.export_otlp", "gasoline.export_gasoline", "pi_brain.export_pi_brain"):
        (argument,) = contract.CALLS[name].files
        assert 403 == wire.ask("POST", "/" + name.replace(".", "/"), {argument: "out"})[0]
        assert 422 == wire.ask("GET", f"/{name.replace('.', '/')}?{argument}=out")[0]
    assert not (folder / "out").exists()


def test_where_no_folder_is_served_no_call_names_a_file_whoever_asks(bare, folder):
    wire = Wire(bare)
    for name, argument, others in reads_files():
        if argument == "media_path":
            continue
        status, told, _ = wire.ask(
            "POST", "/" + name.replace(".", "/"), {**others, argument: str(folder / "rows.csv")}
        )
        assert (403, True) == (status, "--files" in told["message"]), name
    told = {"path": str(folder / "rows.csv"), "mapping": MAPPING}
    for headers in ({}, {"X_Forwarded_For": "127.0.0.1"}, {"Forwarded": "for=127.0.0.1"}):
        assert 403 == wire.ask("POST", "/imports/import_csv", told, **headers)[0]
        assert 403 == wire.ask("POST", "/batch", {"calls": [["imports.import_csv", told]]}, **headers)[0]


def test_damage_in_a_place_is_told_without_what_is_there(url, folder):
    (folder / "damaged.csv").write_text(f"name,age\n{SECRET},{SECRET}\n")
    (folder / "damaged.toml").write_text(f'{SECRET} = "x"\n')
    wire = Wire(url)
    typed = {**MAPPING, "types": {"age": "int"}}
    found = wire.post("/imports/import_csv", {"path": "damaged.csv", "mapping": typed})
    assert [("damaged.csv", 2)] == [(each["file"], each["line"]) for each in found["damaged"]]
    assert SECRET not in str(found)
    for body in (
        {"path": "damaged.csv", "mapping": {**MAPPING, "text": "none"}},
        {"path": "damaged.csv", "mapping": "damaged.toml"},
    ):
        status, told, _ = wire.ask("POST", "/imports/import_csv", body)
        assert (422, False) == (status, SECRET in str(told))


# ---------------------------------------------------------------- sent and answered in the call


def test_a_file_may_be_sent_in_the_call(bare, disk_store):
    sent = {"name": "/home/ada/rows.csv", "base64": b64encode(b"name,age\nada,36\nbea,old\n").decode()}
    told = {"path": sent, "mapping": {**MAPPING, "types": {"age": "int"}}}
    found = Wire(bare).post("/imports/import_csv", told)

    assert [3] == [each["line"] for each in found["damaged"]]
    assert "'old'" in found["damaged"][0]["reason"]
    assert ["ada"] == [node.id for node in disk_store.nodes()]


@pytest.mark.parametrize("path", ["../out", "/out", "a/../../out", "", "a//b", "a\\b", "a\0b"])
def test_a_folder_that_is_sent_stays_in_itself(bare, tmp_path, path):
    sent = {"name": "brain", "files": {path: b64encode(b"{}").decode()}}
    status, told, _ = Wire(bare).ask("POST", "/pi_brain/import_pi_brain", {"folder": sent})

    assert (422, "InvalidError") == (status, told["error"])


def test_an_export_is_answered_and_nothing_is_written(bare, disk_store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    disk_store.record_event("error", "it broke", id="e1")
    before = sorted(tmp_path.rglob("*"))
    for wire in (Wire(bare), Wire(bare, TOKENS.read)):
        for method in ("GET", "POST"):
            status, body, headers = wire.ask(
                method, "/gasoline/export_gasoline", None if method == "GET" else {}
            )
            assert (200, "1", "application/jsonl") == (
                status,
                headers["graphstore-answer"],
                headers["content-type"],
            )
            assert "e1" == orjson.loads(body.splitlines()[0])["id"]
        assert 200 == wire.ask("GET", "/otlp/export_otlp")[0]
        status, body, headers = wire.ask("GET", "/pi_brain/export_pi_brain")
        assert ["edges.json"] == zipfile.ZipFile(io.BytesIO(body)).namelist()
    assert before == sorted(tmp_path.rglob("*"))


def test_an_export_may_be_written_to_a_new_place(url, folder, disk_store):
    wire = Wire(url)
    disk_store.record_event("error", "it broke", id="e1")
    assert 1 == wire.post("/gasoline/export_gasoline", {"path": "inner/events.jsonl"})
    assert b"it broke" in (folder / "inner" / "events.jsonl").read_bytes()
    for taken, status in (
        ("inner/events.jsonl", 409),
        ("link.csv", 409),
        ("links/x", 404),
        ("../x", 422),
        ("none/x", 404),
        ("pipe.csv", 409),
    ):
        assert status == wire.ask("POST", "/gasoline/export_gasoline", {"path": taken})[0], taken
    assert not (folder.parent / "x").exists()
    assert not (folder.parent / "elsewhere" / "x").exists()


# ---------------------------------------------------------------- what things of the store name


def test_things_that_name_a_file_lead_nowhere(url, folder, disk_store):
    """A session that says where its file is, a session file that names its parent, a message that names its medium."""
    wire = Wire(url)
    secret = str(folder.parent / "elsewhere" / "secret.jsonl")
    header = {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": "2026-01-25T10:00:00.000Z",
        "cwd": "/work",
        "parentSession": secret,
    }
    entry = {"type": "message", "id": "aaaa0001", "parentId": None, "timestamp": "2026-01-25T10:00:01.000Z",
             "message": {"role": "user", "content": "hello"}}  # fmt: skip
    lines = b"\n".join(map(orjson.dumps, (header, entry))) + b"\n"
    (folder / "s.jsonl").write_bytes(lines)
    found = wire.post("/sessions/ingest", {"path": "s.jsonl"})
    assert [str(folder / "s.jsonl")] == [each["file"] for each in found["sessions"]]
    sent = wire.post(
        "/sessions/ingest", {"path": {"name": "/home/a/s.jsonl", "base64": b64encode(lines).decode()}}
    )
    assert SECRET not in orjson.dumps([found, sent]).decode()
    (session,) = [node for node in disk_store.nodes(kind="session") if node.content["sessionId"] == "s1"]
    wire.post("/amend", {"id": session.id, "patch": {"file": secret, "analyzerVersion": "0"}})
    told = wire.post("/sessions/reanalyze", {})
    assert SECRET not in orjson.dumps(told).decode()
    message = {"type": "IMAGE", "id": "m1", "media_path": secret}
    assert wire.post("/timeline/record_message", message)["event"]["media_hash"] is None
    seen = wire.post(
        "/timeline/record_message", {"type": "IMAGE", "id": "m2", "media_path": str(folder / "rows.csv")}
    )
    assert 64 == len(seen["event"]["media_hash"])


@pytest.mark.parametrize("way", ["alternates", "commondir", "gitfile", "config"])
def test_a_repository_that_leads_elsewhere_is_refused(url, folder, way):
    git = folder / "repo" / ".git"
    if way == "gitfile":
        git.parent.mkdir()
        git.write_text(f"gitdir: {folder.parent}\n")
    else:
        (git / "objects" / "info").mkdir(parents=True)
        name = {"alternates": "objects/info/alternates", "commondir": "commondir", "config": "config"}[way]
        (git / name).write_text(
            f"[include]\n\tpath = {folder.parent}/secret.csv\n" if way == "config" else f"{folder.parent}\n"
        )
    status, told, _ = Wire(url).ask("POST", "/imports/import_git", {"path": "repo"})

    assert (422, "InvalidError") == (status, told["error"])
    assert "leads to other folders" in told["message"]


def test_a_link_that_is_put_in_place_of_a_folder_meanwhile_is_not_followed(folder):
    """What was looked at is what is read: the parts of a path are opened one from the other."""
    files = CallFiles(folder)
    (folder / "inner" / "secret.jsonl").write_text("mine\n")
    call = contract.CALLS["gasoline.import_gasoline"]
    with files.staged(call, {"path": "inner/secret.jsonl"}) as staged:
        (folder / "inner" / "secret.jsonl").unlink()
        (folder / "inner" / "link.csv").unlink()
        (folder / "inner").rmdir()
        (folder / "inner").symlink_to(folder.parent / "elsewhere")
        assert "mine\n" == Path(staged.args["path"]).read_text()
    with pytest.raises(InvalidError), files.staged(call, {"path": "inner/secret.jsonl"}):
        pass


# ---------------------------------------------------------------- the client


def test_the_client_sends_its_own_files_and_writes_its_own(bare, tmp_path, disk_store):
    (tmp_path / "rows.csv").write_text("name\nada\n")
    (tmp_path / "m.toml").write_text('id = "name"\nkind = "person"\n')
    there = remote.connect(bare, TOKENS.write)
    assert 1 == records.import_csv(there, tmp_path / "rows.csv", tmp_path / "m.toml").nodes
    from graphstore.imports import gasoline, otlp, pi_brain

    there.record_event("error", "it broke", id="e1")
    assert 1 == gasoline.export_gasoline(there, tmp_path / "events.jsonl")
    assert 0 == otlp.export_otlp(there, tmp_path / "traces.pb")
    assert 0 == pi_brain.export_pi_brain(there, tmp_path / "brain").nodes
    assert b"it broke" in (tmp_path / "events.jsonl").read_bytes()
    assert (tmp_path / "brain").is_dir()
    with pytest.raises(ConflictError, match="exists"):
        gasoline.export_gasoline(there, tmp_path / "events.jsonl")
    with pytest.raises(InvalidError, match=r"there is no file or folder .* --files"):
        gasoline.import_gasoline(there, tmp_path / "nothing")
    there.close()


def test_what_is_sent_is_what_was_read(tmp_path):
    from graphstore.remote import arguments

    (tmp_path / "a").write_bytes(b"\0\xff")
    given = arguments.arguments(contract.CALLS["memobrain.import_messages"], (tmp_path / "a",), {})
    assert (str(tmp_path / "a"), b"\0\xff") == (given["path"]["name"], b64decode(given["path"]["base64"]))
    assert fact("a")["id"] == "a"


@pytest.mark.rest
def test_reads_by_get_and_head_write_nothing(url, disk_store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    disk_store.add_node("fact", {"n": 1}, id="n1")
    wire = Wire(url, TOKENS.read)
    ledger = recorded(disk_store.path)
    before = sorted(each for each in tmp_path.rglob("*") if disk_store.path not in each.parents)
    for name, call in contract.CALLS.items():
        if call.scope == "read":
            query = "&".join(
                f"{each}=RETURN%201" if each == "cypher" else f"{each}=n1" for each in sorted(call.required)
            )
            for method in ("GET", "HEAD"):
                assert wire.ask(method, f"/{name.replace('.', '/')}?{query}")[0] < 500
        else:
            assert 405 == wire.ask("GET", f"/{name.replace('.', '/')}")[0]
    assert ledger == recorded(disk_store.path)
    assert before == sorted(each for each in tmp_path.rglob("*") if disk_store.path not in each.parents)


def test_a_folder_that_cannot_be_written_whole_leaves_nothing(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "a.txt").write_text("whole")
    (copy / "b.txt").symlink_to(tmp_path / "nowhere")  # cannot be read
    served = tmp_path / "served"
    served.mkdir()
    above = os.open(served, os.O_RDONLY)
    try:
        with pytest.raises(FileNotFoundError):
            call_files._place(copy, above, "out")
    finally:
        os.close(above)
    assert [] == list(served.iterdir())
