"""Pin what `make` and CI install, with the hash of every file: `make requirements`.

Writes `requirements/{demo,dev,s3-server}-{Python}.txt` for each Python the project names that is on this machine. What is pinned is what `pyproject.toml` allows, and
what builds the package; for a program in an environment of its own, what its `requirements/*.in` allows. The versions are the newest on the day. The files name no
index: pip takes the packages from where it is set to take them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from release_check import interpreter

ROOT = Path(__file__).resolve().parents[1]
SETS = {"demo": ("git", "server"), "dev": ("dev", "ladybug")}
"""What each mark of the Makefile stands for: extras of the package."""
BUILD = ("hatchling", "editables")
"""What builds the package in an environment without isolation."""
TOOL = "pip-tools>=7.5,<8"
OPTIONS = ("--generate-hashes", "--allow-unsafe", "--strip-extras", "--upgrade", "--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host", "--no-emit-options")  # fmt: skip


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    last = " :: "
    for version in [line.rpartition(last)[2] for line in project["classifiers"] if "Python :: 3." in line]:
        python = interpreter(version)
        if python is None:
            print(f"python{version} is not on this machine; its files stay as they are")
            continue
        with tempfile.TemporaryDirectory(prefix="graphstore-requirements-") as made:
            pin(project, version, python, Path(made))


def pin(project: dict[str, object], version: str, python: str, made: Path) -> None:
    """Write the files of one Python, with a pip-tools of its own in `made`."""
    subprocess.run([python, "-m", "venv", made], check=True)
    own = made / "bin" / "python"
    subprocess.run([own, "-m", "pip", "-qq", "install", TOOL], check=True)
    sets = {name: made / f"{name}.in" for name in SETS}
    for name, asked in sets.items():
        asked.write_text("\n".join([*wanted(project, SETS[name]), *BUILD, ""]), encoding="utf-8")
    for name, asked in (sets | {path.stem: path for path in (ROOT / "requirements").glob("*.in")}).items():
        written = ROOT / "requirements" / f"{name}-{version}.txt"
        written.parent.mkdir(exist_ok=True)
        answer = subprocess.run(
            [own, "-m", "piptools", "compile", "--quiet", *OPTIONS, "--output-file", written, asked],
            env={**os.environ, "CUSTOM_COMPILE_COMMAND": "make requirements"},
        )
        if answer.returncode:
            sys.exit(f"nothing could be pinned for {written.name}; it stays as it was")
        text = written.read_text(encoding="utf-8")
        written.write_text(re.sub(r"^ +# via.*\n(?: +#  .*\n)*", "", text, flags=re.M), encoding="utf-8")
        print(f"{written.relative_to(ROOT)}: {len(re.findall('^[a-z].*==', text, re.M))} packages")


def wanted(project: dict[str, object], extras: tuple[str, ...]) -> Iterator[str]:
    """Each requirement of the package with these extras, extras that name extras followed."""
    yield from project["dependencies"]  # type: ignore[misc]
    open_ends, seen = list(extras), set()
    while open_ends:
        extra = open_ends.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for each in project["optional-dependencies"][extra]:  # type: ignore[index]
            own = re.fullmatch(r"graphstore\[(.*)\]", each)
            if own:
                open_ends += own.group(1).split(",")
            else:
                yield each


if __name__ == "__main__":
    main()
