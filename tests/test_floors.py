"""The floors of the house as data: what may import what, where Cypher may stand, what the package says it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import graphstore

PACKAGE = Path(graphstore.__file__).parent

# From the ground up. A module imports from its own floor and from those below.
FLOORS = {
    "pure": {
        "calls",
        "collecting",
        "errors",
        "period",
        "models",
        "vocabulary",
        "keys",
        "layers",
        "diff",
        "inputs",
        "coordinates",
        "result",
        "fingerprints",
        "fields",
        "escapes",
        "spans",
        "statements",
        "smalltalk",
        "observations",
        "conventions",
        "strategies",
        "pairing",
        "painter",
        "decay",
        "threeway",
        "wording",
        "session_nodes",
        "session_steps",
        "session_words",
        "session_rules",
        "likeness",
    },
    "truth": {
        "blocks",
        "files",
        "line",
        "journal",
        "dump",
        "index",
        "index_columns",
        "cutting",
        "bearing",
        "strands",
        "laying",
        "places",
        "saved",
        "forgetting",
        "vectors",
        "compacting",
        "folder",
        "resting",
    },
    "engine": {
        "happened",
        "libraries",
        "texts",
        "guard",
        "queries",
        "engine",
        "columns",
        "graph_file",
        "projection",
        "viewgraph",
        "graphs",
    },
    "core": {
        "accesses",
        "weighing",
        "scenes",
        "drawing",
        "pictures",
        "nearby",
        "topic_rows",
        "rows",
        "search",
        "source",
        "postings",
        "naming",
        "sight",
        "succession",
        "writing",
        "recording",
        "act",
        "verbs",
        "linking",
        "conflicts",
        "resolving",
        "proposals",
        "links",
        "sweeping",
        "bulk",
        "walks",
        "meanings",
        "view",
        "waiting",
        "transacting",
        "store",
        "comparing",
        "merging",
        "weaving",
        "opening",
        "wire",
        "contract",
        "giving",
        "connection",
        "remote",
        "retention",
        "hops",
        "slots",
        "keeping",
        "snapshots",
        "whole",
        "serving",
        "announced",
        "tokens",
    },
    "rooms": {
        "windows",
        "correlation",
        "metrics",
        "patterns",
        "recorder",
        "events",
        "transcript_entries",
        "transcript_lines",
        "transcripts",
        "analysing",
        "session_links",
        "session_catalog",
        "session_revisions",
        "session_writing",
        "ingesting",
        "doubts",
        "following",
        "pieces",
        "connecting",
        "asking",
        "lineages",
        "sessions",
        "topics",
        "memory",
        "indexers",
        "observer",
        "working",
        "context",
        "timeline",
        "embedders",
        "lifecycle",
        "recall",
        "consolidation",
        "chains",
        "ticking",
    },
    "doors": {"tell", "git_history", "imports", "demo", "mcp", "notebook", "server", "__main__", "cli"}
    | {"cli_commands", "cli_common", "cli_files", "cli_made", "cli_signatures", "cli_words"}
    | {
        "gasoline",
        "gasoline_lines",
        "otlp",
        "otlp_json",
        "new_file",
        "row_files",
    }
    | {"cloud_events", "memobrain", "pi_brain"}
    | {
        "flat_graph",
        "gexf_timeline",
        "graph_files",
        "history_tables",
        "interchange",
        "neo4j_files",
        "parquet",
        "prov_document",
        "cli_doors",
        "mcp_answers",
        "mcp_desk",
        "mcp_graph",
        "mcp_meant",
        "mcp_memory",
        "mcp_paragraphs",
        "mcp_prompts",
    }
    | {
        "server_agents",
        "server_calls",
        "server_docs",
        "server_metrics",
        "server_openapi",
        "server_requests",
        "server_run",
    }
    | {
        "shell",
        "shell_answers",
        "shell_completion",
        "shell_schema",
        "shell_terminal",
        "shell_text",
    }
    | {"mcp_reads", "mcp_refusals", "mcp_shapes", "mcp_serving", "mcp_writes"},
}
ORDER = {module: floor for floor, name in enumerate(FLOORS) for module in FLOORS[name]}

# Longer than they should be, each with the reason.
LONG_MODULES: dict[str, str] = {"store": "the store makes its branches, and a branch is a store"}
LONG_FUNCTIONS: dict[str, str] = {}

MODULES = sorted(path for path in PACKAGE.glob("*.py") if path.stem != "__init__")


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> dict[str, int]:
    """The modules of the package that a module imports, wherever in it, with the line."""
    found = {}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            found[(node.module or "").split(".")[0]] = node.lineno
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "graphstore":
            parts = (node.module or "").split(".")
            for name in parts[1:2] or [alias.name for alias in node.names]:
                found[name if (PACKAGE / f"{name}.py").exists() else "__init__"] = node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "graphstore":
                    found[parts[1] if len(parts) > 1 else "__init__"] = node.lineno
    return found


def typed_only(path: Path) -> set[str]:
    """What is imported for the type checker alone."""
    return {
        (node.module or "").split(".")[-1]
        for block in ast.walk(tree(path))
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
    }


def test_the_package_is_flat():
    assert [] == [
        path.name
        for path in PACKAGE.iterdir()
        if path.is_dir() and path.name not in ("__pycache__", "_cypher")
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_module_stands_on_a_floor(path):
    assert path.stem in ORDER, f"{path.name}: put it on one of the floors {', '.join(FLOORS)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_imports_never_point_up(path):
    here = ORDER.get(path.stem, 0)
    doors = list(FLOORS).index("doors")
    for name, line in imports(path).items():
        if name == "__init__":
            assert here == doors, f"{path.name}:{line} imports the package itself: only a door may"
        elif name not in typed_only(path):
            assert ORDER[name] <= here, f"{path.name}:{line} imports {name} from a floor above"


def test_the_rooms_do_not_reach_below_the_core():
    for path in MODULES:
        if path.stem in FLOORS["rooms"] | FLOORS["doors"]:
            assert not imports(path).keys() & (FLOORS["truth"] | {"projection"}), path.name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_only_the_core_reads_the_arrays(path):
    """A room or a door asks a view, its `scan`, or what its `reading` gives."""
    if path.stem in FLOORS["truth"] | FLOORS["engine"] | FLOORS["core"]:
        return
    reaching = [
        f"{path.name}:{node.lineno} says .{node.attr}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and (
            node.attr in ("_core", "_sight")
            or (isinstance(node.value, ast.Attribute) and node.value.attr == "index")
            or (node.attr in ("core", "index") and getattr(node.value, "id", None) == "sight")
        )
    ]

    assert [] == reaching


def test_importing_the_package_is_cheap():
    """What only some callers need is imported when it is needed."""
    for path in MODULES:
        if path.stem in ORDER and ORDER[path.stem] <= ORDER["store"]:
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
    seen = {
        alias.name
        for node in ast.walk(tree(PACKAGE / "__init__.py"))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("graphstore.")
        for alias in node.names
    }

    assert sorted(seen) == sorted(graphstore.__all__)
    assert sorted(graphstore.__all__) == list(graphstore.__all__)
    assert set(graphstore.__all__) <= set(dir(graphstore))
    for name in graphstore.__all__:
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
    "query",
    "to_networkx",
    "to_arrow",
]


def test_the_store_has_every_verb_and_every_read_and_the_view_every_read():
    assert [] == [name for name in VERBS + READS if not callable(getattr(graphstore.GraphStore, name, None))]
    assert [] == [name for name in [*READS, "path"] if not callable(getattr(graphstore.View, name, None))]
    assert [] == [name for name in VERBS if hasattr(graphstore.View, name) and name not in ("export",)]


@pytest.mark.parametrize("name", [name for name in PROMISED if name[0].isupper()])
def test_every_public_class_says_what_it_is(name):
    assert getattr(graphstore, name).__doc__, name


def test_every_public_method_says_what_it_means():
    silent = [
        f"{kind.__name__}.{name}"
        for kind in (graphstore.GraphStore, graphstore.View, graphstore.Result)
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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_cypher_stands_in_python(path):
    found = [
        f"{path.name}:{line}: {text.strip()[:60]}" for line, text in strings(path) if CYPHER.search(text)
    ]
    assert [] == found


# ---------------------------------------------------------------- size


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_is_one_thing(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    most = 900 if path.stem in LONG_MODULES else 700
    assert lines <= most, f"{path.name} has {lines} lines and asks to be two"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_function_is_one_thing(path):
    long = [
        f"{path.stem}.{node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > 60
        and f"{path.stem}.{node.name}" not in LONG_FUNCTIONS
    ]
    assert [] == long
