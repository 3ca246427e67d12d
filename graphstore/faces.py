"""Public names that stay importable wherever the files are; modules that run on first use, so that importing stays cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
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


class LateModules:
    """Finds the modules of some packages. Each runs when it is first asked for a name, not when it is imported.

    `from graphstore.write import verbs` runs nothing; the first `verbs.add_node` does, and so does `from graphstore.write.verbs import add_node`. So a
    module that few calls need is imported as a module. Packages themselves run at once.
    """

    def __init__(self, *packages: str) -> None:
        self._packages = frozenset(packages)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.rpartition(".")[0] not in self._packages:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None and spec.submodule_search_locations is None:
            spec.loader = _LateLoader(spec.loader)  # type: ignore[assignment]
        return spec


class _LateLoader:
    """Makes a module that waits for its first use."""

    def __init__(self, loader: Any) -> None:
        self._loader, self._lock, self._is_running = loader, RLock(), False

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _LateModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leave it for later."""

    def run(self, module: ModuleType) -> None:
        """Run the module once. While it runs, it has only the names that it has set so far."""
        with self._lock:
            if self._is_running or type(module) is not _LateModule:
                return
            self._is_running = True
            try:
                self._loader.exec_module(module)
                object.__setattr__(module, "__class__", ModuleType)
            finally:
                self._is_running = False

    def __getattr__(self, name: str) -> Any:
        """Return what the loader of the file has: its source, its path."""
        return getattr(self._loader, name)


class _LateModule(ModuleType):
    """A module that has not run. It has only the names that the import system gives to each."""

    def __getattribute__(self, name: str) -> Any:
        if name not in _GIVEN_AT_IMPORT:
            object.__getattribute__(self, "__loader__").run(self)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _GIVEN_AT_IMPORT:
            self.__loader__.run(self)  # type: ignore[union-attr]
        ModuleType.__setattr__(self, name, value)


_GIVEN_AT_IMPORT = frozenset(
    ("__class__", "__name__", "__spec__", "__loader__", "__package__", "__path__", "__file__", "__cached__")
)
