"""Public names that stay importable wherever the files are; loaded on first use, so that importing stays cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


def face(package: str, home: str) -> Callable[[str], Any]:
    """The `__getattr__` of a folder: its own modules by their names, and all names of the module `home`."""
    no_modules = set[str]()

    def attribute(name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        inside = f"{package}.{name}"
        if name not in no_modules:
            if inside in sys.modules or PathFinder.find_spec(inside, sys.modules[package].__path__):
                return import_module(inside)
            no_modules.add(name)  # the folder is looked through once
        return getattr(import_module(home), name)

    return attribute


class Aliases:
    """Finds modules by their public names: `graphstore.decay` is `graphstore.memory.decay`."""

    def __init__(self, package: str, homes: Mapping[str, str]) -> None:
        self._package, self._homes = package, homes
        self._specs: dict[int, ModuleSpec | None] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, last = name.rpartition(".")
        found = package == self._package and self._homes.get(last, name) != name
        return ModuleSpec(name, self) if found else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._homes[spec.name.rpartition(".")[2]])
        self._specs[id(module)] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._specs.pop(id(module))  # the import system has set that of the alias
