"""Renders the calls of a server as a page for people, from its OpenAPI document alone. It loads nothing, so it can be read without a network."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from typing import Any

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
code, pre { font: 13px/1.4 ui-monospace, monospace; background: #f3f3f3; border-radius: 3px; padding: .1em .3em; }
pre { padding: .6em; overflow-x: auto; white-space: pre-wrap; }
details { border: 1px solid #ddd; border-radius: 4px; margin: .3em 0; padding: .3em .6em; }
summary { cursor: pointer; }
table { border-collapse: collapse; } td { padding: .15em .8em .15em 0; vertical-align: top; }
nav a { margin-right: .8em; }
.write { color: #a33; } .read { color: #285; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818; } code, pre { background: #2a2a2a; } details { border-color: #444; } a { color: #8bf; } }
"""
_APART = """curl -H "Authorization: Bearer $TOKEN" -d '{"id": "n1"}' SERVER/node
curl -H "Authorization: Bearer $TOKEN" 'SERVER/node?id=n1&amp;valid=2026-01-30&amp;tx=2026-02-01'"""


def page(schema: dict[str, Any]) -> bytes:
    """Return the page of an OpenAPI document. It links to nothing outside itself except `/openapi.json`."""
    groups: defaultdict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for path, methods in schema["paths"].items():
        operation = methods.get("post") or methods["get"]
        groups[operation["tags"][0]].append((path, methods))
    order = sorted(groups, key=lambda name: (name not in ("view", "store", "branch"), name))
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(schema['info']['title'])}</title><style>{_STYLE}</style>",
        f"<h1>{escape(schema['info']['title'])} {escape(schema['info']['version'])}</h1>",
        "<p>Every call by its name: <code>POST /NAME</code> takes the arguments as a JSON object, <code>GET</code> those of a read in the query. ",
        "The coordinate, the branch, the author and the transaction stand in the query always. ",
        "The same for programs: <a href=/openapi.json>/openapi.json</a>.</p>",
        f"<pre>{_APART}</pre>",
        "<nav>" + " ".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in order) + "</nav>",
    ]
    for name in order:
        parts.append(f'<h2 id="{escape(name)}">{escape(name)}</h2>')
        parts += [_call(path, methods) for path, methods in sorted(groups[name])]
    return "".join(parts).encode()


def _call(path: str, methods: dict[str, Any]) -> str:
    operation = methods.get("post") or methods["get"]
    summary = methods.get("summary") or operation.get("summary", "")
    scope = "read" if "get" in methods else "write"
    body = _body(operation)
    needed = body.get("required", ())
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code>{'' if name in needed else ' (may be left out)'}<td>{_kind(each)}"
        for name, each in body.get("properties", {}).items()
    )
    gives = operation["responses"]["200"]["description"]
    return (
        f"<details><summary><code>{escape(path)}</code> <span class={scope}>{scope}</span> {_marked(summary)}</summary>"
        f"<pre>{escape(operation.get('description', ''))}</pre><table>{rows}</table><p>Gives {_marked(gives)}.</details>"
    )


def _body(operation: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a request body; one without properties if there is no body."""
    if "requestBody" not in operation:
        return {"properties": {}}
    found: dict[str, Any] = operation["requestBody"]["content"]["application/json"]["schema"]
    return found


def _kind(schema: dict[str, Any]) -> str:
    types = schema.get("type", "")
    plain = types if isinstance(types, str) else " or ".join(types)
    shown = _marked(schema.get("description", plain))
    if "default" in schema:
        shown += f", by default <code>{escape(str(schema['default']))}</code>"
    return shown


def _marked(text: str) -> str:
    """Return text as HTML, with `code` marked."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if at % 2 else piece for at, piece in enumerate(pieces))
