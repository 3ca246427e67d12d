"""Modules that run on first use."""

from __future__ import annotations

import inspect
import sys
import threading
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from graphstore.faces import LateModules

COUNTED = "import time\ntime.sleep(0.05)\nfrom later_runs import runs\nruns.append(__name__)\nvalue = 1\n"
FAILING = "from later_runs import runs\nruns.append(__name__)\nif len(runs) < 2:\n    raise ValueError('not yet')\nvalue = 2\n"


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules that ran, of a package whose modules run late."""
    package = tmp_path / "later"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "counted.py").write_text(COUNTED)
    (package / "failing.py").write_text(FAILING)
    runs = ModuleType("later_runs")
    runs.runs = names = []  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "later_runs", runs)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [LateModules("later"), *sys.meta_path])
    for name in ("later", "later.counted", "later.failing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return names


def test_a_module_runs_when_it_is_asked_for_a_name(later):
    module = import_module("later.counted")
    hasattr(module, "__path__")  # as imports ask
    assert ("later.counted", []) == (module.__name__, later)

    assert 1 == module.value
    assert (ModuleType, ["later.counted"]) == (type(module), later)
    assert module is import_module("later.counted")


def test_importing_a_name_runs_the_module(later):
    exec("from later.counted import value\nassert value == 1", {})

    assert ["later.counted"] == later


def test_what_is_set_in_a_module_that_has_not_run_stays_set(later):
    module = import_module("later.counted")
    module.value = 7  # type: ignore[attr-defined]

    assert (7, ["later.counted"]) == (module.value, later)


def test_threads_that_ask_at_once_run_it_once_and_wait_for_it(later):
    module = import_module("later.counted")
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(module.value)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ([1] * 8, ["later.counted"]) == (found, later)


def test_a_module_that_failed_runs_again(later):
    module = import_module("later.failing")
    with pytest.raises(ValueError, match="not yet"):
        module.value  # noqa: B018

    assert 2 == module.value


def test_the_source_of_a_module_is_found_before_it_runs_and_after(later):
    module = import_module("later.counted")
    assert COUNTED == module.__loader__.get_source("later.counted")  # type: ignore[union-attr]

    assert COUNTED.startswith(inspect.getsource(module)[:11])


def test_a_name_that_a_module_has_not_is_refused(later):
    with pytest.raises(AttributeError, match="absent"):
        import_module("later.counted").absent  # noqa: B018
