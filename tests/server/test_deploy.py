"""What `deploy/` gives to whoever runs a server: systemd reads the unit, its options are those of `serve`, and the container's steps give a server."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import graphstore
from tests.support.browser import program
from tests.support.served import Wire

pytestmark = [pytest.mark.in_process("processes of their own"), pytest.mark.rest]
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def run(*words: object, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, words)),
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=600,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def instructions() -> list[tuple[str, str]]:
    """The container file, an instruction and what it is of each."""
    lines = (DEPLOY / "Containerfile").read_text(encoding="utf-8").splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines) if word.isupper()]


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    analyze = program("systemd-analyze", package="systemd")
    text = (DEPLOY / "graphstore.service").read_text(encoding="utf-8")
    (tmp_path / "graphstore.service").write_text(
        text.replace("/opt/graphstore/bin/graphstore", sys.executable)
    )

    assert "" == run(analyze, "verify", "--man=no", tmp_path / "graphstore.service")


def test_the_unit_starts_a_server_with_the_options_of_the_file() -> None:
    (line,) = re.findall(
        r"^ExecStart=\S+ (.*)$", (DEPLOY / "graphstore.service").read_text(encoding="utf-8"), re.MULTILINE
    )
    words = line.replace("/etc/graphstore", str(DEPLOY)).split()
    told = run(sys.executable, "-m", "graphstore", *words, "--print-config").splitlines()

    given = (DEPLOY / "graphstore.toml").read_text(encoding="utf-8")
    names = re.findall(r"^(\w+) = ", given, re.MULTILINE)
    assert names
    assert set(names) == {one.split()[0] for one in told if one.endswith("graphstore.toml")}


def test_the_steps_of_the_container_give_a_server_that_ends_well(tmp_path: Path) -> None:
    source, wheels, data = tmp_path / "source", tmp_path / "wheels", tmp_path / "data"
    for folder in (source, data):
        folder.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", source], input=archive, check=True)
    venv.create(tmp_path / "made", with_pip=True)
    path = f"{tmp_path / 'made' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    clean = {"PATH": path, "PYTHONPATH": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    steps = [rest for word, rest in instructions() if word == "RUN" and "pip " in rest]
    assert 2 == len(steps)
    if not os.environ.get("CI") and not registry():
        pytest.skip("the package registry cannot be reached")
    for step in steps:
        run("sh", "-ec", step.replace("/wheels", str(wheels)), cwd=source, **clean)

    (entry,) = (words_of(rest) for word, rest in instructions() if word == "ENTRYPOINT")
    (last,) = (words_of(rest) for word, rest in instructions() if word == "CMD")
    environment = dict(
        each.split("=") for word, rest in instructions() if word == "ENV" for each in shlex.split(rest)
    )
    assert "0.0.0.0" == environment["GRAPHSTORE_HOST"]
    environment |= {"GRAPHSTORE_HOST": "127.0.0.1", "GRAPHSTORE_PORT": "0", **clean}
    command = [*entry, *(each.replace("/data", str(data)) for each in last)]
    command[0] = str(tmp_path / "made" / "bin" / command[0])
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=data,
        env={**os.environ, **environment},
    ) as made:
        try:
            assert made.stdout is not None
            url = made.stdout.readline().partition(" on ")[2].partition(" ")[0]
            assert "ok" == Wire(url, None).get("/health")["status"]
            token = (data / "memory.gs" / "token").read_text().strip()
            Wire(url, token).post("/add_node", {"kind": "fact", "content": {}, "id": "n1"})
            made.send_signal(signal.SIGTERM)
            _, said = made.communicate(timeout=30)
            assert (0, True) == (made.returncode, '"what":"start"' in said), said
        finally:
            if made.poll() is None:
                made.kill()
    with graphstore.open(data / "memory.gs") as store:
        assert "n1" == store.node("n1").id


def registry() -> bool:
    """Whether pip finds the registry."""
    words = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--dry-run",
        "--ignore-installed",
        "--no-deps",
        "typer",
    ]
    return subprocess.run(words, capture_output=True).returncode == 0


def words_of(text: str) -> list[str]:
    """The words of an instruction in the form of JSON."""
    found: list[str] = json.loads(text)
    return found
