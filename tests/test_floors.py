"""The floors of the house as data: what may import what, where Cypher may stand, what the package says it is."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import graphstore
from graphstore.store.store import Store

PACKAGE = Path(graphstore.__file__).parent

# From the ground up: folders, and the modules that lie in none. Each imports from itself and from those before it.
FLOORS = [
    "errors",
    "faces",
    "chat_client",
    "values",
    "ledger",
    "read",
    "graph",
    "search",
    "view",
    "write",
    "show",
    "store",
    "events",
    "topics",
    "memory",
    "sessions/transcripts",
    "sessions/segments",
    "sessions",
    "context",
    "imports",
    "interchange",
    "remote",
    "opening",
    "adapters",
    "mcp",
    "server",
    "cli",
    "__main__",
]
DOORS = ("mcp", "server", "cli", "__main__")  # these may import the package itself
APART = ("adapters",)  # nobody else imports from these: what they stand on may not be installed
INSIDE = ("ledger", "read", "graph", "search", "view", "write", "store")

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
HOUSE = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in MODULES}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def floor_of(module: str) -> str:
    """The listed folder that a module lies in; the shell is of the command line."""
    folder = "/".join(module.split(".")[:-1]) or module
    return "cli" if folder == "cli/shell" else folder


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> dict[str, int]:
    """What a module imports of the package, wherever in it and for whatever reason, with the line: modules by their names, "" for the package itself."""
    found: dict[str, int] = {}
    for node in ast.walk(tree(path)):
        asked: list[str] = []
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno} imports from a dot"
            module = node.module or ""
            asked = [module if module[11:] in HOUSE else f"{module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            asked = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            [what] = node.args[:1]
            assert not isinstance(what, ast.JoinedStr | ast.BinOp), (
                f"{path}:{node.lineno} puts the name of a module together"
            )
            asked = [what.value] if isinstance(what, ast.Constant) else []
        for each in asked:
            if each.split(".")[0] == "graphstore":
                inside = each[11:]
                found[inside if inside in HOUSE else ""] = node.lineno
    return found


def test_every_folder_and_module_is_on_a_floor_and_no_floor_is_a_ghost():
    assert sorted(FLOORS) == sorted({floor_of(module) for module in HOUSE})


def test_no_module_has_the_name_of_another():
    """A module may have the name of the folder it lies in."""
    folders = {part for floor in FLOORS for part in floor.split("/")}
    stems = Counter(path.stem for path in MODULES)
    assert [] == sorted(stem for stem, times in stems.items() if times > 1)
    assert [] == sorted(
        name_of(path)
        for path in MODULES
        if path.stem in folders and path.parent != PACKAGE and path.stem != path.parent.name
    )


def test_imports_never_point_up():
    found = []
    for path in MODULES:
        here = floor_of(name_of(path))
        for module, line in imports(path).items():
            there = floor_of(module) if module else ""
            if not module and here not in DOORS:
                found.append(f"{path}:{line} imports the package itself: only a door may")
            elif module and FLOORS.index(there) > FLOORS.index(here):
                found.append(f"{path}:{line} imports {module}, which is above")
            elif there != here and there in APART:
                found.append(f"{path}:{line} imports {module}, which is apart")
    assert [] == found


def test_no_folder_has_a_circle():
    for floor in FLOORS:
        known = {
            module: {each for each in imports(path) if each and floor_of(each) == floor}
            for module, path in HOUSE.items()
            if floor_of(module) == floor
        }
        try:
            TopologicalSorter(known).prepare()
        except CycleError as error:
            pytest.fail(" → ".join(error.args[1]))


def test_a_folder_says_what_it_is_for_and_imports_nothing():
    for folder in sorted({*PACKAGE.rglob("__init__.py")} - {PACKAGE / "__init__.py"}):
        assert ast.get_docstring(tree(folder)), folder
        eager = {
            node.module
            for node in tree(folder).body
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("graphstore")
        }
        assert eager <= {"graphstore.faces"}, folder


def test_only_the_parts_below_and_the_store_know_the_core_and_the_index_of_a_store():
    reaching = [
        f"{path}:{node.lineno} says .{node.attr}"
        for path in MODULES
        if not floor_of(name_of(path)).startswith(INSIDE)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and (
            node.attr in ("_core", "_sight")
            or (isinstance(node.value, ast.Attribute) and node.value.attr == "index")
        )
    ]
    assert [] == reaching


def test_importing_the_package_is_cheap():
    """What only some callers need is imported when it is needed."""
    store = FLOORS.index("store")
    for path in MODULES:
        floor = floor_of(name_of(path))
        if FLOORS.index(floor) <= store or floor == "opening":
            top = {
                (alias.name if isinstance(node, ast.Import) else node.module or "").split(".")[0]
                for node in tree(path).body
                if isinstance(node, ast.Import | ast.ImportFrom)
                for alias in node.names
            }
            assert not top & {"pandas", "polars", "networkx", "rich", "typer", "dulwich", "numpy"}, path.name


# ---------------------------------------------------------------- the public names


def test_all_is_exact():
    """What the type checker sees, what is fetched on first use and what `__all__` says are the same names."""
    [typed] = [node for node in tree(PACKAGE / "__init__.py").body if isinstance(node, ast.If)]
    seen = {
        alias.asname or alias.name
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    } - graphstore._ROOMS.keys()

    assert sorted(seen) == sorted(graphstore.__all__)
    constants_first = sorted(graphstore.__all__, key=lambda name: (not name.isupper(), name))
    assert constants_first == list(graphstore.__all__)
    assert set(graphstore.__all__) <= set(dir(graphstore))
    for name in graphstore.__all__[1:]:  # OPEN is a text
        assert getattr(graphstore, name).__module__.startswith("graphstore."), name
    with pytest.raises(AttributeError):
        graphstore.no_such_name  # noqa: B018


PROMISED = [
    "open",
    "restore",
    "verify",
    "GraphStore",
    "View",
    "Result",
    "Node",
    "Version",
    "Event",
    "Link",
    "Recorded",
    "FieldChange",
    "ViewDiff",
    "Inspection",
    "Step",
    "Supersession",
    "Chain",
    "Contradiction",
    "Change",
    "Verification",
    "GraphStoreError",
    "NotFoundError",
    "InvalidError",
    "ConflictError",
    "QueryError",
    "EngineError",
    "DamageError",
    "LockedError",
]


def test_what_is_promised_is_there():
    assert [] == [name for name in PROMISED if name not in graphstore.__all__]


VERBS = [
    "add_node",
    "revise",
    "supersede",
    "end",
    "retract",
    "link",
    "unlink",
    "resolve",
    "sweep",
    "record_event",
    "transaction",
    "bulk_load",
    "query_tables",
    "as_of",
    "knowledge_at",
    "changes",
    "snapshot",
    "snapshots",
    "touch",
    "flush_accesses",
    "refresh",
    "verify",
    "export",
    "close",
    "define_kind",
    "define_point",
    "promote_kind",
    "rebuild",
    "stats",
    "branch",
    "on",
    "branches",
    "merge",
    "delete_branch",
]
READS = [
    "node",
    "event",
    "nodes",
    "events",
    "history",
    "versions",
    "diff",
    "changes_to",
    "compare",
    "links_from",
    "backlinks_to",
    "inspect",
    "operations",
    "what_superseded",
    "supersedes",
    "causes",
    "effects",
    "walk",
    "paths",
    "contradictions",
    "contradiction",
    "warnings_of",
    "query",
    "to_networkx",
    "to_arrow",
]


def test_the_store_has_every_verb_and_every_read_and_the_view_every_read():
    assert [] == [name for name in VERBS + READS if not callable(getattr(graphstore.GraphStore, name, None))]
    assert [] == [name for name in [*READS, "path"] if not callable(getattr(graphstore.View, name, None))]
    assert [] == [name for name in VERBS if hasattr(graphstore.View, name) and name not in ("export",)]


def test_every_public_class_says_what_it_is():
    assert [] == [name for name in PROMISED if name[0].isupper() and not getattr(graphstore, name).__doc__]


def test_every_public_method_says_what_it_means():
    silent = [
        f"{kind.__name__}.{name}"
        for kind in (Store, graphstore.GraphStore, graphstore.View, graphstore.Result)
        for name, method in vars(kind).items()
        if callable(method) and not name.startswith("_") and not method.__doc__
    ]
    assert [] == silent


# ---------------------------------------------------------------- Cypher stands in cypher/

CYPHER = re.compile(
    r"\b(MATCH\s*\(|CREATE\s+(NODE|REL)\b|CREATE\s*\(|MERGE\s*\(|UNWIND\s+\$|LOAD FROM\s+[\$'\"]|COPY\s+\w+\s+(FROM|TO)|"
    r"DETACH DELETE|ALTER TABLE|DROP TABLE|RETURN\s+\w+\.\w+)"
)


def strings(path: Path) -> list[tuple[int, str]]:
    """Every text in a module that is not a docstring."""
    root = tree(path)
    docs = {id(node.value) for node in ast.walk(root) if isinstance(node, ast.Expr)}
    return [
        (node.lineno, node.value)
        for node in ast.walk(root)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


def test_no_cypher_stands_in_python():
    found = [
        f"{path.name}:{line}: {text.strip()[:60]}"
        for path in MODULES
        for line, text in strings(path)
        if CYPHER.search(text) and not (path.parent.name == "ledger" and text.startswith("DROP TABLE"))  # SQL
    ]
    assert [] == found


# ---------------------------------------------------------------- size


def test_a_function_is_one_thing():
    long = [
        f"{name_of(path)}.{node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno + 1 > 60
    ]
    assert [] == long
