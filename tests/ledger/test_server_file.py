"""The file that says where a store is served."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphstore.errors import EngineError
from graphstore.ledger import files, server_file


def test_who_opens_the_store_meanwhile_does_not_keep_a_server_from_saying_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept, really = [], os.fsync

    def synced(fd: int) -> None:
        if len(swept) < 3:  # as an opening removes what a killed process left
            swept.extend(tmp_path.glob("*.new"))
            swept[-1].unlink()
        really(fd)

    monkeypatch.setattr(files.os, "fsync", synced)
    server_file.announce(tmp_path, "http://127.0.0.1:1")
    monkeypatch.undo()

    assert 3 == len(swept)
    assert "http://127.0.0.1:1" == server_file.served(tmp_path)["url"]
    assert ["server.json"] == [each.name for each in tmp_path.iterdir()]


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"cannot write .*server\.json"):
        server_file.announce(tmp_path / "gone", None)
