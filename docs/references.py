"""The reference pages of docs/, each made from the program it describes: `make references` writes them, and a test fails when one is out of date.

Every page is one function here; `PAGES` names the file it fills.
"""

from __future__ import annotations

import inspect
import textwrap
from collections import abc
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import anyio
import typer
from mcp import Client

import graphstore
from graphstore import interchange, mcp
from graphstore.cli import signatures as cli_signatures
from graphstore.cli.command_line import GROUP_OF, app
from graphstore.cli.commands import COMMANDS, GROUPS
from graphstore.remote import calls as contract

HERE = Path(__file__).parent
WIDTH = 112
EVERYWHERE = ("--json", "--author", "--help")
MADE = "<!-- Made by `make references`. Change the program, not this page. -->"


def write() -> None:
    """Write every page, and the signatures before them: the commands are made of these."""
    Path(cli_signatures.__file__).write_text(signatures(), encoding="utf-8")
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", MADE, *(part.strip("\n") for part in parts)]) + "\n"


def _block(lines: Iterable[str]) -> str:
    return "\n".join(["```text", *lines, "```"])


def _folded(line: str, indent: str = "    ") -> list[str]:
    return textwrap.wrap(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _said(text: str) -> list[str]:
    """The first paragraph of a description, set in."""
    words = " ".join(text.split("\n\n")[0].split())
    return textwrap.wrap(words, WIDTH, initial_indent="    ", subsequent_indent="    ")


def _called(name: str, needed: Iterable[str], free: Iterable[str]) -> list[str]:
    optional = " ".join(free)
    return _folded(" ".join([name, *needed, *([f"[{optional}]"] if optional else [])]))


# ---- the command line -------------------------------------------------------------------------


def commands() -> str:
    """Every command with its arguments, its options and what it is for."""
    lines: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name, command in _commands(typer.main.get_command(app)):
        arguments = [_argument(one) for one in command.params if one.param_type_name == "argument"]
        options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
        needed = [f"{one.opts[0]} {_metavar(one)}" for one in options if one.required]
        free = [one.opts[0] for one in options if not one.required and one.opts[0] not in EVERYWHERE]
        group = lines[GROUP_OF[name.split()[1]]]
        group += _called(name, [*arguments, *needed], free) + _said(command.short_help or "")
    parts = [f"## {group.capitalize()}\n\n{_block(each)}" for group, each in lines.items()]
    return _page("Commands", _COMMANDS, *parts)


def _commands(group: Any, prefix: str = "graphstore") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def _argument(argument: Any) -> str:
    return _metavar(argument) if argument.required else f"[{_metavar(argument)}]"


def _metavar(parameter: Any) -> str:
    return (parameter.metavar or parameter.name.upper()).strip("[]{}")


_COMMANDS = """
Every command is a method. `STORE` is the store's folder, or the address of a server. `graphstore help COMMAND` has every option in full;
`graphstore help GROUP` lists a group of this page.

- `--valid` and `--tx` take a date or month (its end, or now), an ISO 8601 instant, words (`last Friday`, `3 months ago`), an age (`7d`) or the name of a snapshot. `--as-of` sets both axes at once.
- `--json` prints one JSON document. `--author NAME` says who writes. Both exist on every command.
- `graphstore --branch NAME COMMAND …` reads and writes on a branch. `GRAPHSTORE_BRANCH` does the same.
- Exit codes: 0 done, 1 refused or problems found, 2 wrong usage.
"""

# ---- the tools of agents ----------------------------------------------------------------------


def tools() -> str:
    """Every MCP tool with its arguments, and the resources and prompts beside them."""

    async def listed() -> tuple[list[Any], list[str]]:
        with graphstore.open(":memory:") as store:
            async with Client(mcp.server(store, tools=["all"])) as client:
                resources = [
                    f"- resource `{one.uri}`: {one.description}"
                    for one in (await client.list_resources()).resources
                ]
                templates = [
                    f"- resource `{one.uri_template}`: {one.description}"
                    for one in (await client.list_resource_templates()).resource_templates
                ]
                prompts = [
                    f"- prompt `{one.name}`: {one.description}"
                    for one in (await client.list_prompts()).prompts
                ]
                return list((await client.list_tools()).tools), resources + templates + prompts

    found, beside = anyio.run(listed)
    parts = []
    for reads, title in ((True, "Tools that read"), (False, "Tools that write")):
        lines: list[str] = []
        for tool in found:
            if bool(tool.annotations.read_only_hint) is reads:
                needed = tool.input_schema.get("required", [])
                free = [name for name in tool.input_schema["properties"] if name not in needed]
                lines += _called(tool.name, needed, free) + _said(tool.description)
        parts.append(f"## {title}\n\n{_block(lines)}")
    return _page("Tools for agents", _TOOLS, *parts, "## Beside the tools\n\n" + "\n".join(beside))


_TOOLS = """
`graphstore mcp STORE` serves these tools by the Model Context Protocol. Arguments in brackets are optional.

- `valid` and `tx` set the coordinate: a date or month (its end, or now), an instant, words (`last Friday`, `3 months ago`), an age (`7d`) or the name of a snapshot. Every answer states its coordinate in `at`.
- `budget_tokens` limits an answer. `more` in the answer is the cursor of the next page; pass it as `cursor`.
- Few calls need some arguments, so the list that agents read leaves them out: `budget_tokens` of every tool that reads; `decay` of `search`;
  `depth` of `why` and `trace`; `limit` and `timezone` of `events`; `id`, `trace_id`, `span_id` and `parent_span_id` of `record_event`; `source` of `amend`;
  `strength`, `inferred` and `valid_to` of `link`; `valid_from` and `valid_to` of `unlink`; `valid`, `tx` and `cursor` of `schema`; `cursor` of `what_superseded` and `why`.
- `--tools` names sets: `memory`, `graph`, `events`, `sessions`, `usual` (without it; all but `sessions` and the tools of what is known for a user:
  `context`, `layers`, `expertise`, `keep`, `scratchpad`, `observe`, `record_outcome`) or `all`. `forget` is offered with `--allow-erase` alone.
- `--read-only` offers only the tools that read. `--profile memory` offers the nine tools of the reference memory server instead.

[Agents](semantics/agents.md) describes the corner cases.
"""

# ---- the calls over HTTP ----------------------------------------------------------------------


def calls() -> str:
    """Every call over HTTP with its arguments, by the room it belongs to."""
    rooms: dict[str, dict[str, list[contract.Call]]] = {}
    for call in contract.CALLS.values():
        room = call.name.rpartition(".")[0]
        rooms.setdefault(room, {}).setdefault(call.scope, []).append(call)
    parts = []
    for room, scopes in sorted(rooms.items()):
        lines: list[str] = []
        for scope, verb in (("read", "reads"), ("write", "writes")):
            for call in sorted(scopes.get(scope, ()), key=lambda one: one.name):
                free = [name for name in call.parameters if name not in call.required]
                needed = [name for name in call.parameters if name in call.required]
                path = "/" + call.name.replace(".", "/")
                lines += _called(f"{verb:<7}{path}", needed, free) + _said(call.doc)
        parts.append(f"## {room or 'The store'}\n\n{_block(lines)}")
    return _page("Calls over HTTP", _CALLS, *parts)


_CALLS = """
`graphstore serve STORE` answers these calls; a running server describes them at `/docs` and `/openapi.json`. A call has the name and the arguments
of the Python method. Arguments in brackets are optional.

| | |
|---|---|
| `POST /{name}` | the arguments as a JSON object. A read also answers `GET`, with the arguments in the query |
| `?valid= tx= as_of= branch= author= transaction= seconds=` | the coordinate (or a snapshot), the branch, who writes, the transaction, the time limit. These are always in the query. A read returns its coordinate in the headers `Graphstore-Valid` and `Graphstore-Tx` |
| `If-Match: "<number>"` | the same as `if_number`: refused with a `ConflictError` (409) that shows what holds when another version holds now |
| `/batch`, `/transaction`, `/bulk_load?tables=nodes,versions` | many writes at one instant: as a list, as a conversation, as Arrow streams one after the other |
| `/changes`, `/export`, `/metrics`, `/health`, `/mcp` | server-sent events, the dump as a stream, Prometheus, a liveness check (no token), MCP |
| errors | `{"error": "NotFoundError", "message": "…"}` with 404, 422, 409, 400, 423 or 500. The server itself answers 401, 403, 413, 503 or 504 |

[The server](semantics/server.md) describes the corner cases.
"""

# ---- files for other tools --------------------------------------------------------------------

_READERS = {
    "parquet": "DuckDB, pandas, polars, Spark",
    "graphml": "networkx, yEd",
    "gexf": "Gephi",
    "gexf-timeline": "Gephi's timeline",
    "node-link": "networkx, D3",
    "prov-json": "provenance tools (extra `prov`)",
    "prov-xml": "provenance tools (extra `prov`)",
    "prov-n": "provenance tools (extra `prov`)",
    "prov-o": "RDF tools (extra `prov`)",
    "neo4j-csv": "`neo4j-admin database import`",
    "neo4j-cypher": "a small, empty Neo4j database",
}


def formats() -> str:
    """Every format that `export` writes and every one that `import` reads."""
    written = [
        f"| `{name}` | {'the whole history up to a tx' if each.history else 'the graph of one view'} | {each.counted} | {_READERS[name]} |"
        for name, each in interchange.FORMATS.items()
    ]
    imports = typer.main.get_command(app).commands["import"]  # type: ignore[attr-defined]
    read = [
        f"| `{name}` | {' '.join((command.short_help or '').split(chr(10) * 2)[0].split())} |"
        for name, command in imports.commands.items()
        if not command.hidden
    ]
    return _page(
        "Formats",
        _FORMATS,
        "\n".join(
            ["| `--format` | it holds | counted in | read by |", "|---|---|---|---|", *written, _OWN.strip()]
        ),
        _NOTES,
        "## What `graphstore import` reads",
        "\n".join(["| source | what it does |", "|---|---|", *read]),
        _GIT,
    )


_GIT = """
### git

Git keeps a graph of commits, and a store has one time line of what was recorded. `import git` flattens the graph: commits are written parents first, older
first, one transaction each. It does not keep the graph as a partial order, since then "what did we know at T" would have several answers.

So between two commits of branches that ran in parallel, a view has the files of neither branch. After the last commit the files are exactly those of `HEAD`.
The report counts these commits: `2 commits of parallel branches put into one sequence`. Which commits a commit followed is in the `parents` of its event.
"""
_FORMATS = """
`graphstore export STORE PATH --format FORMAT`, or `interchange.export(source, path, format=…)` in Python, writes a file for another tool.
Without `--format`, `export` writes the dump that `graphstore restore` reads. The dump is the only backup.
"""
_OWN = """
| `delta` | the whole history up to a tx, appended to what is there | rows and closings | DuckDB, Spark, any lakehouse (extra `lake`) |
| `gasoline` | the events of one view | lines | Gasoline |
| `otlp` | the traces of one view | spans | OpenTelemetry (extra `otel`) |
| `pi-brain` | the segments of coding sessions | files | pi-brain |
"""
_NOTES = """
`parquet`, `delta`, `neo4j-csv` and `pi-brain` write a folder, the others a file. The library that owns a format reads it back in the tests.
[Files for other tools](semantics/interchange.md) says what each format cannot hold.
"""

# ---- the signatures of the command line -------------------------------------------------------


def signatures() -> str:
    """The calls that commands are made of: what they do, what they are asked of, and each parameter that words can give."""
    found = sorted({command.call for command in COMMANDS.values() if command.call})
    lines = [
        f'    "{name}": ("{call.scope}", "{call.on}", "{_parameters(call)}"),'
        for name in found
        for call in [contract.CALLS[name]]
    ]
    return "\n".join([_SIGNATURES, *lines, "}  # fmt: skip", ""])


def _parameters(call: contract.Call) -> str:
    told = []
    for name, each in call.parameters.items():
        type = _type(call.hints[name], each)
        if type is not None and not name.startswith("its_"):
            by_name = "--" if name in call.required and each.kind is each.KEYWORD_ONLY else ""
            default = (
                f"={each.default}" if each.default and isinstance(each.default, str | int | float) else ""
            )
            told.append(
                f"{by_name}{name}{'!' if name in call.required else ''}{'' if type == 'text' else ':' + type}{default}"
            )
    return " ".join(told)


def _type(hint: Any, each: inspect.Parameter) -> str | None:
    """What the command line takes for a parameter; None for what words cannot give."""
    options = [
        one
        for one in (get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,))
        if one is not NoneType
    ]
    kinds = [get_origin(one) or one for one in options]
    if Literal in kinds:
        return "|".join(get_args(options[kinds.index(Literal)]))
    for type, kind in (
        ("many", abc.Iterable),
        ("time", datetime),
        ("path", Path),
        ("bool", bool),
        ("int", int),
        ("float", float),
    ):
        if kind in kinds:
            return "side" if type == "bool" and each.default is None else type
    if str in kinds or (hint is Any and isinstance(each.default, str)):
        return "text"
    if abc.Mapping in kinds or dict in kinds:
        return "json"
    return "function" if "Analyser" in str(hint) else None


_SIGNATURES = '''"""The calls that commands are made of, so that help needs no store. Made by `make references`: change the call, not this table.

Of each: whether it reads or writes, what it is asked of, and its parameters as `name:type=default`, with `!` where it is required and `--` where by name.
"""

SIGNATURES: dict[str, tuple[str, str, str]] = {'''

PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "tools.md": tools,
    "calls.md": calls,
    "formats.md": formats,
}
"""The files of docs/ and the function that makes each."""

if __name__ == "__main__":
    write()
