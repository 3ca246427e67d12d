"""The media of messages: only what was recorded, only audio and images, whole or in ranges."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from graphstore import GraphStore
from graphstore.events import timeline
from graphstore.server.media import kind_of
from tests.support.served import TOKENS, serve_in_thread

pytestmark = pytest.mark.in_process("has a server of its own")

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(100))


def ask(url: str, token: str = TOKENS.read, **headers: str) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {token}", **headers})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def test_whole_and_in_ranges(disk_store: GraphStore, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(PNG)
    timeline.record_message(disk_store, "IMAGE", id="evt_1", media_path=tmp_path / "a.html")
    with serve_in_thread(disk_store) as url:
        at = f"{url}/media/evt_1"
        status, headers, body = ask(at)
        assert (200, "image/png", PNG) == (status, headers["content-type"], body)
        assert "sandbox" in headers["content-security-policy"]
        assert "nosniff" == headers["x-content-type-options"]
        status, headers, body = ask(at, range="bytes=8-11")
        assert (206, f"bytes 8-11/{len(PNG)}", PNG[8:12]) == (status, headers["content-range"], body)
        assert PNG[-4:] == ask(at, range="bytes=-4")[2]
        assert PNG[100:] == ask(at, range="bytes=100-")[2]
        assert 416 == ask(at, range="bytes=1000-")[0]
        assert 401 == ask(at, token="nobody")[0]
        assert 404 == ask(f"{url}/media/evt_1?tx=2020-01-01")[0]


def test_what_is_no_medium_is_not_sent(disk_store: GraphStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the password")
    svg = tmp_path / "x.svg"
    svg.write_text("<svg onload='alert(1)'/>")
    for id, path in (("evt_text", secret), ("evt_svg", svg), ("evt_dir", tmp_path)):
        timeline.record_message(
            disk_store, "IMAGE", id=id, media_path=path, media_hash=None if path.is_file() else "0" * 64
        )
    disk_store.add_node("fact", {}, id="n1")
    timeline.record_message(disk_store, "TEXT", "nothing", id="evt_none")
    with serve_in_thread(disk_store) as url:
        assert [415, 415, 404, 404] == [
            ask(f"{url}/media/{id}")[0] for id in ("evt_text", "evt_svg", "evt_dir", "evt_none")
        ]
        assert b"password" not in ask(f"{url}/media/evt_text")[2]
        assert ask(f"{url}/media/n1")[0] in (404, 422)
        assert 404 == ask(f"{url}/media/..%2f..%2fetc%2fpasswd")[0]


def test_missing_and_altered_are_said(disk_store: GraphStore, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    timeline.record_message(disk_store, "IMAGE", id="evt_1", media_path=path)
    with serve_in_thread(disk_store) as url:
        assert 200 == ask(f"{url}/media/evt_1")[0]
        path.write_bytes(PNG + b"more")
        status, _, body = ask(f"{url}/media/evt_1")
        assert (409, True) == (status, b"altered" in body)
        path.unlink()
        status, _, body = ask(f"{url}/media/evt_1")
        assert (404, True) == (status, b"missing" in body)


def test_a_path_without_a_hash_is_not_read_unless_it_is_served(
    disk_store: GraphStore, tmp_path: Path
) -> None:
    path = tmp_path / "late.png"
    timeline.record_message(disk_store, "IMAGE", id="evt_1", media_path=path)
    path.write_bytes(PNG)
    with serve_in_thread(disk_store) as url:
        assert 403 == ask(f"{url}/media/evt_1")[0]
    with serve_in_thread(disk_store, files=tmp_path) as url:
        assert 200 == ask(f"{url}/media/evt_1")[0]


def test_the_rights_of_a_token(disk_store: GraphStore) -> None:
    with serve_in_thread(disk_store) as url:
        assert b'{"rights":"read"}' == ask(f"{url}/rights")[2]
        assert b'{"rights":"write"}' == ask(f"{url}/rights", token=TOKENS.write)[2]
    with serve_in_thread(disk_store, read_only=True) as url:
        assert b'{"rights":"read"}' == ask(f"{url}/rights", token=TOKENS.write)[2]


@pytest.mark.parametrize(
    ("begin", "kind"),
    [
        (b"OggS", b"audio/ogg"),
        (b"RIFF....WAVEfmt ", b"audio/wav"),
        (b"RIFF....WEBP", b"image/webp"),
        (b"RIFF....AVI ", None),
        (b"....ftypM4A ", b"audio/mp4"),
        (b"<svg", None),
        (b"<!doctype html>", None),
        (b"", None),
    ],
)
def test_the_kind_is_read_from_the_bytes(begin: bytes, kind: bytes | None) -> None:
    assert kind == kind_of(begin)
