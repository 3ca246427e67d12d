"""Finds the files of `sql/`."""

from __future__ import annotations

from pathlib import Path


def read(name: str) -> str:
    """Read a file of `sql/`: that of the package, else of the working copy."""
    installed = Path(__file__).parents[1] / "_sql"
    folder = installed if installed.is_dir() else Path(__file__).parents[2] / "sql"
    return (folder / f"{name}.sql").read_text(encoding="utf-8")
