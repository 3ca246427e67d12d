"""Build the TypeScript client and pack it: `make typescript`, or `python tools/typescript_client.py [FOLDER]`.

Copies `clients/typescript` to a folder (build/typescript), writes the OpenAPI document beside it, generates the types, compiles and packs. Nothing that npm
installs or makes is left in the sources.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from graphstore.remote.calls import CALLS
from graphstore.server.http_app import path_of
from graphstore.server.openapi import described

SOURCE = Path(__file__).resolve().parents[1] / "clients" / "typescript"
INSTALL = ("install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")


def npm(folder: Path, *words: str) -> str:
    """Run npm in a folder, and return what it prints. Raises CalledProcessError."""
    program = shutil.which("npm")
    if program is None:
        sys.exit("npm is missing. It comes with Node: https://nodejs.org")
    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
        done.check_returncode()
    return done.stdout


def build(folder: Path) -> Path:
    """Build the client in a folder, and return its package."""
    shutil.copytree(SOURCE, folder, dirs_exist_ok=True)
    (folder / "openapi.json").write_text(json.dumps(described(CALLS, path_of)), encoding="utf-8")
    npm(folder, *INSTALL)
    npm(folder, "run", "build")
    [packed] = json.loads(npm(folder, "pack", "--json"))
    return folder / packed["filename"]


if __name__ == "__main__":
    print(build(Path(*sys.argv[1:]) if sys.argv[1:] else SOURCE.parents[1] / "build" / "typescript"))
