"""The reference pages and pictures of docs/ say what the program does: each is what `make` writes, and nothing is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from graphstore.cli import signatures
from graphstore.cli.common import EXPORT_FORMATS
from graphstore.remote import calls

DOCS = Path(__file__).parents[2] / "docs"
NAMES = ("commands.md", "tools.md", "calls.md", "formats.md")


def script(name: str) -> ModuleType:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, DOCS / name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def references() -> ModuleType:
    return script("references.py")


@pytest.mark.parametrize("name", NAMES)
def test_page_is_up_to_date(references: ModuleType, name: str) -> None:
    assert references.PAGES[name]() == (DOCS / name).read_text(encoding="utf-8"), "run `make references`"


def test_signatures_of_the_command_line_are_up_to_date(references: ModuleType) -> None:
    assert references.signatures() == Path(signatures.__file__).read_text(), "run `make references`"


def test_every_page_is_tested(references: ModuleType) -> None:
    assert set(references.PAGES) == set(NAMES)


def test_every_call_has_a_line() -> None:
    page = (DOCS / "calls.md").read_text(encoding="utf-8")
    paths = {f"/{name.replace('.', '/')}" for name in calls.CALLS}

    assert set() == paths - set(page.split())


def test_every_format_of_export_has_a_line() -> None:
    page = (DOCS / "formats.md").read_text(encoding="utf-8")

    assert [] == [each for each in EXPORT_FORMATS if each != "graphstore" and f"| `{each}` |" not in page]


@pytest.mark.parametrize("name", ["plane.svg", "chain.svg"])
def test_picture_is_up_to_date(name: str) -> None:
    drawn = script("pictures/make.py").PICTURES[name]()

    assert drawn == (DOCS / "pictures" / name).read_text(encoding="utf-8"), "run `make pictures`"
    ElementTree.fromstring(drawn)
