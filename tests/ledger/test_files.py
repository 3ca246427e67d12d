"""Files that are written beside their name: the name is given to the whole or to nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphstore import ConflictError, EngineError
from graphstore.ledger import files
from graphstore.ledger.files import new_file, new_folder

pytestmark = pytest.mark.in_process("no store")

LEAVER = """
import os, signal, sys
from pathlib import Path
from graphstore.ledger.files import new_file, new_folder
making, target = {"file": new_file, "folder": new_folder}[sys.argv[1]], Path(sys.argv[2])
with making(target) as made:
    if sys.argv[1] == "file":
        made.write(b"half of it")
        made.flush()
    else:
        (made / "part-1").write_bytes(b"half of it")
    if sys.argv[3] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    print("writing", flush=True)
    sys.stdin.read()
"""


def other_process(kind: str, target: Path, end: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LEAVER, kind, str(target), end],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def fill(kind: str, target: Path) -> None:
    if kind == "file":
        with new_file(target) as sink:
            sink.write(b"whole")
    else:
        with new_folder(target) as folder:
            (folder / "part-2").write_bytes(b"whole")


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


WHOLE = {"file": ["target"], "folder": ["target", "target/part-2"]}


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_removed_by_the_next(kind, tmp_path):
    other_process(kind, tmp_path / "target", "kill").wait()
    assert [".target.part"] == [path.name for path in tmp_path.iterdir()]

    fill(kind, tmp_path / "target")
    assert WHOLE[kind] == names(tmp_path)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_name_that_is_being_written_is_refused(kind, tmp_path):
    with other_process(kind, tmp_path / "target", "wait") as other:
        assert other.stdout is not None and "writing\n" == other.stdout.readline()
        with pytest.raises(ConflictError, match="target is being written just now"):
            fill(kind, tmp_path / "target")
        other.communicate("")
    assert (tmp_path / "target").exists()
    assert not (tmp_path / ".target.part").exists()


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("call", ["fsync", "link"])
def test_a_disk_that_refuses_leaves_nothing(kind, call, tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if call == "link":
        monkeypatch.setattr(os, "link", refuse)
        monkeypatch.setattr(Path, "rename", refuse)
        monkeypatch.setattr(Path, "replace", refuse)
    else:
        monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(EngineError, match=r"cannot write .*target: No space left"):
        fill(kind, tmp_path / "target")
    assert [] == names(tmp_path)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_error_in_the_block_leaves_nothing(kind, tmp_path):
    with (
        pytest.raises(ZeroDivisionError),
        {"file": new_file, "folder": new_folder}[kind](tmp_path / "target"),
    ):
        raise ZeroDivisionError
    assert [] == names(tmp_path)


@pytest.mark.parametrize("taken", [Path.touch, lambda path: path.symlink_to("nothing")])
def test_a_taken_name_is_never_replaced(taken, tmp_path):
    with pytest.raises(ConflictError, match="target exists"), new_file(tmp_path / "target") as sink:
        sink.write(b"mine")
        taken(tmp_path / "target")  # meanwhile, by another process
    assert ["target"] == names(tmp_path)
    assert not (tmp_path / "target").exists() or b"" == (tmp_path / "target").read_bytes()
    with pytest.raises(ConflictError, match="target exists"):
        fill("file", tmp_path / "target")


def test_a_disk_without_links_takes_files_too(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(files.os, "link", refuse)
    fill("file", tmp_path / "target")
    assert ["target"] == names(tmp_path)


def test_a_link_in_place_of_the_part_is_not_followed(tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / ".target.part").symlink_to(tmp_path / "precious")
    with pytest.raises(EngineError, match="cannot write"):
        fill("file", tmp_path / "target")
    assert b"precious" == (tmp_path / "precious").read_bytes()
