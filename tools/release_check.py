"""Build the release and use it as a stranger would: `make release-check`.

The wheel is made from the source archive and installed into an empty environment of each Python the project names. There it runs the demo, imports every
module, and passes tests of the source archive with the extras that have wheels for every Python; in that of this Python it gives its types to mypy. A Python that
is not on this machine is skipped by name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "git,server,mcp,shell,notebook,otel,cloudevents,prov,vectors,pandas,polars,langgraph,anthropic,openai-agents,llama-index"
BY_HAND = ("graphstore.adapters.google_adk", "graphstore.adapters.strands")
"""Adapters of frameworks of half a gigabyte each: `make frameworks` installs and tests them."""
TESTS = ("api", "bad_input", "properties", "view_query", "git", "slots", "timeline")
"""Tests of the wheel, by the names of their files: the verbs, the graph, the files. Where all tests run, the first shows that it works."""

OLDEST_MCP = "mcp==1.22.0"
"""The oldest release of the SDK that the extra `mcp` admits; the other tests run on the newest."""

IMPORTS = """
import importlib, sys
from graphstore.errors import GraphStoreError
missing = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except (GraphStoreError, ModuleNotFoundError) as error:
        missing.append(f"{name}: {error}")
print("\\n".join(missing))
"""


TYPED = """
from typing import assert_type

import graphstore
from graphstore import GraphStore, Node, Supersession, View, events, memory, timeline

with graphstore.open(":memory:") as store:
    assert_type(store, GraphStore)
    node = store.add_node("fact", {"auth": "JWT"}, valid_from="2026-01-30")
    assert_type(node, Node)
    assert_type(store.as_of(), View)
    assert_type(store.what_superseded(node.id), Supersession)
    store.add_node("fact", 5)  # type: ignore[arg-type]  # an error only where the types are seen
"""


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    last = " :: "
    named = [line.rpartition(last)[2] for line in project["classifiers"] if "Python :: 3." in line]
    with tempfile.TemporaryDirectory(prefix="graphstore-release-") as made:
        below = Path(made)
        archive, wheel = build()
        look(wheel, archive)
        tree = unpack(archive, below)
        for version in named:
            python = interpreter(version)
            if python is None:
                print(f"Python {version}: skipped, there is none here", flush=True)
            else:
                start = time.monotonic()
                use(wheel, python, below / version, tree)
                print(f"Python {version}: good ({time.monotonic() - start:.0f} s)", flush=True)


def build() -> tuple[Path, Path]:
    """The source archive, and the wheel made from it, in `dist`."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", "dist", ".", cwd=ROOT)
    return next((ROOT / "dist").glob("*.tar.gz")), next((ROOT / "dist").glob("*.whl"))


def look(wheel: Path, archive: Path) -> None:
    """The wheel has every file of the package, its Cypher, the examples of the demo, the licence and the facts an index shows."""
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        info = next(name.partition("/")[0] for name in names if ".dist-info/" in name)
        facts = Parser().parsestr(opened.read(f"{info}/METADATA").decode())
        scripts = opened.read(f"{info}/entry_points.txt").decode()
    tracked = subprocess.run(
        ["git", "ls-files", "graphstore", "cypher", "sql"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split() or [str(path.relative_to(ROOT)) for path in (ROOT / "graphstore").rglob("*.py")]
    expected = {
        f"graphstore/_{name}" if name.startswith(("cypher/", "sql/")) else name
        for name in tracked
        if not name.endswith(".c")
    }
    expected |= {f"graphstore/_examples/team.{end}" for end in ("jsonl", "toml")}
    expected |= {"graphstore/py.typed", f"{info}/licenses/LICENSE"}
    absent = sorted(expected - names)
    assert not absent, f"not in the wheel: {', '.join(absent)}"
    for fact in ("Version", "Author", "License-Expression", "Project-URL", "Requires-Python", "Description"):
        assert facts[fact] or (fact == "Description" and facts.get_payload()), f"the wheel has no {fact}"
    assert "graphstore = graphstore.cli:main" in scripts
    print(f"{archive.name}, {wheel.name}: {len(names)} files", flush=True)


def unpack(archive: Path, below: Path) -> Path:
    """The tree of the source archive without the package, so that its tests can only find the one that is installed."""
    with tarfile.open(archive) as opened:
        opened.extractall(below / "source", filter="data")
    tree = next((below / "source").iterdir())
    shutil.rmtree(tree / "graphstore")
    return tree


def interpreter(version: str) -> str | None:
    """A Python of this version that can make an environment: this one, one on the PATH, or one of pyenv's."""
    name = f"python{version}"
    folders = [Path(part) for part in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found: Iterator[Path] = (path for path in [
        Path(sys.executable), *(folder / name for folder in folders), *sorted(pyenv.glob(f"{version}.*/bin/python")),
    ] if path.exists())  # fmt: skip
    ask = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
    for path in found:
        answer = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
        if answer.stdout.strip() == version:
            return str(path)
    return None


def use(wheel: Path, python: str, below: Path, tree: Path) -> None:
    """Install the wheel alone and use it; then with the extras, and run the tests."""
    below.mkdir()
    run(python, "-m", "venv", below / "env")
    inside = below / "env" / "bin"
    pip = (inside / "python", "-m", "pip", "-q", "--disable-pip-version-check")
    run(*pip, "install", wheel)
    run(*pip, "check")
    empty = below / "empty"
    empty.mkdir()
    said = run(inside / "graphstore", "demo", cwd=empty)
    assert "What superseded" in said and "standing now" in said, said
    with zipfile.ZipFile(wheel) as opened:
        files = [
            Path(name)
            for name in opened.namelist()
            if name.startswith("graphstore/") and name.endswith(".py")
        ]
    modules = [
        ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        for path in files
        if path.stem != "__main__"
    ]
    missing = run(inside / "python", "-c", IMPORTS, *modules, cwd=empty).split("\n")
    print(
        f"  {len(modules) - len(list(filter(None, missing)))} of {len(modules)} modules need no extra",
        flush=True,
    )
    (empty / "typed.py").write_text(TYPED)
    is_ours = python == sys.executable
    if is_ours:  # types are the same for each
        mypy = (sys.executable, "-m", "mypy", "--strict", "--python-executable")
        run(*mypy, inside / "python", "typed.py", cwd=empty)

    run(*pip, "install", f"{wheel}[{EXTRAS}]", "pytest", "hypothesis")
    modules = [name for name in modules if name not in BY_HAND]
    missing = run(inside / "python", "-c", IMPORTS, *modules, cwd=empty).strip()
    assert not missing, f"with the extras these modules cannot be imported:\n{missing}"
    names = TESTS[:1] if is_ours else TESTS
    tests = [str(path) for name in names for path in sorted((tree / "tests").rglob(f"test_{name}.py"))]
    assert len(tests) == len(names), tests
    pytest = (inside / "python", "-m", "pytest", "-x", "-p", "no:cacheprovider")
    run(*pytest, "-m", "not rest", *tests, cwd=tree)
    if is_ours:
        run(*pip, "install", OLDEST_MCP)
        run(*pytest, "-m", "rest", tree / "tests" / "mcp" / "test_sdk_releases.py", cwd=tree)


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """The output of a command that must succeed; it sees no path of this environment."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV", "MYPYPATH")
    }
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=kept | {"HYPOTHESIS_PROFILE": "quick", "COLUMNS": "120"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        asked = " ".join(str(part) for part in command[:6])
        sys.exit(f"{done.stdout}\nexit code {done.returncode}: {asked} …")
    return done.stdout


if __name__ == "__main__":
    main()
