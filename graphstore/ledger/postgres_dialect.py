"""Translates the statements of the ledger, which are written for SQLite, for PostgreSQL. There is one set of statements.

What differs, and how each is translated:

- parameters: `?`, `?1` and `:name` become `$1`, with the type of the value given; None becomes NULL
- truth: SQLite's is a number. Where a condition is needed, a number becomes `<> 0`; where a value is needed, a condition becomes 0 or 1
- order: text is compared by code points (COLLATE "C"), and NULL is the smallest value. The indexes of `sql/postgres.sql` have the same order
- JSON: `json_each` becomes a function of `sql/postgres.sql` that returns numbers, texts, pairs or lists, as the statement uses them
- CROSS JOIN … ON becomes JOIN. The connection keeps the joins in the order in which they are written, as SQLite does
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import sqlglot
from sqlglot import exp

from graphstore.ledger.scoped_rows import without_functions
from graphstore.ledger.statements import read, schema_statements

Node = Any  # of the syntax tree of sqlglot
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|--[^\n]*|\?(\d*)|(?<!:):(\w+)|\bjson_(?:extract|type|quote|group_array|group_object)(?=\()|\bhex(?=\()"
)
_HIDDEN = 77_7000_0777  # these digits and four more stand for a number while a statement is translated
_HIDDEN_NUMBER = re.compile(rf"{_HIDDEN}(\d{{4}})")
_COMPARED = re.compile(r"(?<![->])((?:[=<>]|\bBETWEEN|\bAND|\bIN \()\s*)(\d+)\b")
_TYPES = {int: "BIGINT", bool: "BIGINT", str: "TEXT", bytes: "BYTEA", float: "DOUBLE PRECISION"}
_TEXTS = frozenset({
    "id", "kind", "key", "scope", "verb", "subject", "author", "word", "standing", "tag", "name", "agent", "branch", "sort", "topic", "thread", "sender",
})  # fmt: skip
"""The columns of text that are compared with values of JSON."""
_BYTES = frozenset({"data", "head"})
_REPLACE, _INSERT = "INSERT OR REPLACE INTO vector", "INSERT INTO vector"
_OR_RENEW = (  # a vector that is replaced gets a new number, as in SQLite, so that others read it again
    " ON CONFLICT (id, text, model) DO UPDATE SET number = nextval(pg_get_serial_sequence('vector', 'number')), data = excluded.data"
)
_CONDITIONS = (exp.Connector, exp.Not, exp.Predicate, exp.Boolean)
_NO_LIMIT = exp.Literal.number(-1)


class Translated(NamedTuple):
    """A statement for PostgreSQL, and the names of its parameters in the order of their numbers. Positional ones are named 1, 2, 3 …"""

    text: str
    names: tuple[str, ...]


@lru_cache(maxsize=2048)
def parameters(statement: str) -> tuple[str, ...]:
    """Return the names of the parameters of a statement, each once, in their order."""
    return _with_names(statement)[1]


def _with_names(statement: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement in which each parameter has a name, and the names."""
    names: dict[str, None] = {}
    last = 0

    def replaced(found: re.Match[str]) -> str:
        nonlocal last
        text = found[0]
        if text[0] in "'-":
            return text
        if text.startswith("json_"):
            return f"{text}_of"  # not functions that the parser knows
        if text[0] == "?":
            last = int(found[1]) if found[1] else last + 1
        name = found[2] or str(last)
        names[name] = None
        return f":p_{name}"

    text = _TOKEN.sub(replaced, without_functions(statement).replace(" NOT INDEXED", ""))
    return text.replace(_REPLACE, _INSERT) + _OR_RENEW if _REPLACE in text else text, tuple(names)


@lru_cache(maxsize=4096)
def translated(statement: str, types: tuple[type, ...], schema: str) -> Translated:
    """Return a statement for PostgreSQL. `types`: the classes of the values of its `parameters`. `schema`: what `main` is in SQLite.

    Statements on branches differ by the numbers of rows in them. Such statements are parsed once.
    """
    numbers: list[str] = []

    def hidden(found: re.Match[str]) -> str:
        numbers.append(found[2])
        return f"{found[1]}{_HIDDEN}{len(numbers) - 1:04}"

    text, names = _parsed(_COMPARED.sub(hidden, statement), types, schema)
    return Translated(_HIDDEN_NUMBER.sub(lambda found: numbers[int(found[1])], text), names)


@lru_cache(maxsize=2048)
def _parsed(statement: str, types: tuple[type, ...], schema: str) -> Translated:
    text, names = _with_names(statement)
    tree = sqlglot.parse_one(text, read="sqlite")
    kinds = dict(zip(names, types, strict=True))
    used = tuple(name for name in names if kinds[name] is not type(None))
    for place in [*tree.find_all(exp.Placeholder)]:
        name = str(place.this).removeprefix("p_")
        place.replace(_parameter(used.index(name) + 1, kinds[name]) if name in used else exp.Null())
    return Translated(_generated(tree, schema), used)


def _parameter(number: int, kind: type) -> Node:
    cast = exp.Cast(
        this=exp.Parameter(this=exp.Literal.number(number)),
        to=exp.DataType.build(_TYPES[kind], dialect="postgres"),
    )
    return exp.Collate(this=cast, expression=exp.to_identifier("C", quoted=True)) if kind is str else cast


def _generated(tree: Node, schema: str) -> str:
    for table in [*tree.find_all(exp.Table)]:
        if table.db:
            table.set("db", exp.to_identifier(schema, quoted=True))
        if isinstance(table.this, exp.Anonymous) and table.this.name == "json_each":
            table.set("this", _each(table))
    for join in tree.find_all(exp.Join):
        if join.args.get("on") is not None and join.kind == "CROSS":
            join.set("kind", None)
    for query in [*tree.find_all(exp.Subquery)]:
        if not query.alias and isinstance(query.parent, exp.From | exp.Join):
            query.set("alias", exp.TableAlias(this=exp.to_identifier("unnamed")))
    for common in [*tree.find_all(exp.CTE)]:
        _join_recursive_parts(common)
    for node in reversed([*tree.walk()]):  # inner nodes first
        if (new := _rewritten(node)) is not node:
            node.replace(new)
    tree = _valued(tree, False)
    text: str = tree.sql(dialect="postgres", identify=True, comments=False)
    return text


def _join_recursive_parts(common: exp.CTE) -> None:
    """Put the recursive parts of a query into one, for PostgreSQL allows only one, and move its LIMIT outside: PostgreSQL computes as many rows as are fetched."""
    union = common.this
    own = common.alias
    if not isinstance(union, exp.Union):
        return
    parts: list[Node] = []
    while isinstance(union, exp.Union):
        parts.insert(0, union.expression)
        union = union.this
    recursive = [part for part in parts if any(table.name == own for table in part.find_all(exp.Table))]
    limit = common.this.args.get("limit")
    if limit is not None and recursive:
        limit.pop()
        outer = common.find_ancestor(exp.Select)
        assert outer is not None
        outer.set("limit", limit)
    if len(recursive) < 2:
        return
    alias = ""
    for part in recursive:
        first = part.args["from_"] if "from_" in part.args else part.args["from"]
        alias = first.this.alias_or_name
        joins = part.args["joins"]
        first.set("this", joins.pop(0).this)
    together = recursive[0]
    for part in recursive[1:]:
        together = exp.union(together, part, distinct=False)
    lateral = exp.Lateral(
        this=exp.Subquery(this=together),
        alias=exp.TableAlias(this=exp.to_identifier("reached"), columns=[exp.to_identifier("number")]),
    )
    select = (
        exp.select("reached.number")
        .from_(exp.alias_(exp.to_table(own), alias, table=True))
        .join(lateral, join_type="cross")
    )
    common.set("this", exp.union(union, select, distinct=True))


# ------------------------------------------------------------------ JSON


def _each(table: exp.Table) -> Node:
    """Return the function for a json_each: of texts, numbers, pairs or lists, by what the statement does with its key and value."""
    given = table.this.expressions
    if len(given) > 1:  # json_each(data, '$.tags')
        return exp.Anonymous(
            this="json_texts", expressions=[exp.Anonymous(this="json_list_of", expressions=given)]
        )
    select = table.find_ancestor(exp.Select)
    assert select is not None
    if "text" in _uses(select, table.alias, "key"):
        name = "json_pairs"
    elif "list" in (uses := _uses(select, table.alias, "value")):
        name = "json_lists"
    else:
        name = "json_texts" if "text" in uses else "json_numbers"
    return exp.Anonymous(this=name, expressions=given)


def _uses(select: exp.Select, alias: str, name: str) -> set[str]:
    """Return how a query, and those around it, use a column of JSON: as a text, a number or a list."""
    found = set[str]()
    for column in select.find_all(exp.Column):
        is_own = column.table == alias or (not column.table and column.find_ancestor(exp.Select) is select)
        if column.name == name and is_own:
            found |= _use(column)
    return found


def _use(column: exp.Column) -> set[str]:
    parent, other = column.parent, None
    if isinstance(parent, (exp.JSONExtractScalar, exp.JSONExtract)):
        return {"list"}
    if isinstance(parent, exp.DPipe):
        return {"text"}
    if isinstance(parent, exp.In):
        other = parent.this
    elif isinstance(parent, exp.Binary):
        other = parent.right if parent.left is column else parent.left
    elif isinstance(parent, exp.Select):
        query = parent.parent
        if isinstance(query, exp.Subquery) and isinstance(outer := query.parent, exp.From | exp.Join):
            around = outer.find_ancestor(exp.Select)
            return _uses(around, query.alias, column.name) if around is not None else set()
        query = query.parent if isinstance(query, exp.Subquery) else query
        other = query.this if isinstance(query, exp.In) else None
    asked = other.find(exp.Column) if other is not None else None
    return {"text" if asked is not None and asked.name in _TEXTS else "number"}


# ------------------------------------------------------------------ functions


def _rewritten(node: Node) -> Node:
    """Return the form of one node in PostgreSQL."""
    if isinstance(node, exp.Anonymous):
        return _function(node)
    if isinstance(node, exp.Filter) and isinstance(node.this, exp.Cast):  # of an aggregate that was rewritten
        whole = node.this.copy()
        inner: Node = whole.find(exp.Anonymous)
        inner.replace(exp.Filter(this=inner.copy(), expression=node.expression.copy()))
        return whole
    if isinstance(node, (exp.JSONExtractScalar, exp.JSONExtract)):
        return _element(node)
    if isinstance(node, exp.Cast):
        return _cast(node)
    if isinstance(node, exp.BitwiseRightShift):
        node.set("expression", exp.cast(node.expression, "INT"))
    elif isinstance(node, exp.Limit) and not isinstance(node.expression, exp.Literal):
        node.set("expression", exp.Nullif(this=node.expression, expression=_NO_LIMIT.copy()))
    elif isinstance(node, exp.Ordered) and isinstance(node.parent, exp.OnConflict):
        return node.this
    elif isinstance(node, exp.HexString):
        return exp.cast(exp.Literal.string(f"\\x{node.name}"), "BYTEA")
    elif isinstance(node, exp.Sum):
        return exp.cast(node.copy(), "BIGINT")
    elif isinstance(node, exp.GroupConcat):
        return exp.Anonymous(
            this="string_agg", expressions=[exp.cast(node.this, "TEXT"), exp.Literal.string(",")]
        )
    elif isinstance(node, exp.Is) and isinstance(node.expression, exp.Literal):
        return exp.NullSafeEQ(this=node.this, expression=node.expression)
    elif isinstance(node, exp.In) and not (
        node.expressions or node.args.get("query") or node.args.get("unnest")
    ):
        return exp.false()
    return node


def _element(node: Node) -> Node:
    """Translate `value ->> 1`, whose place the parser takes for a path."""
    found = node.expression.find(exp.JSONPathSubscript)
    place = exp.Literal.number(int(node.expression.name if found is None else found.this))
    element = exp.Anonymous(this="json_array_element_text", expressions=[node.this, place])
    other = node.parent.left if isinstance(node.parent, exp.Binary) and node.parent.right is node else None
    is_text = isinstance(other, exp.Column) and other.name in _TEXTS
    return element if is_text else exp.cast(element, "BIGINT")


def _function(node: exp.Anonymous) -> Node:
    name, given = node.name.lower(), node.expressions
    if name in ("json_group_array_of", "json_group_object_of"):
        own, nothing = ("json_agg", "[]") if name == "json_group_array_of" else ("json_object_agg", "{}")
        return exp.cast(
            exp.Coalesce(
                this=exp.Anonymous(this=own, expressions=given), expressions=[exp.Literal.string(nothing)]
            ),
            "TEXT",
        )
    if name == "json_array":
        return exp.cast(exp.Anonymous(this="json_build_array", expressions=given), "TEXT")
    if name == "json_quote_of":
        return exp.cast(exp.Anonymous(this="to_json", expressions=[exp.cast(given[0], "TEXT")]), "TEXT")
    return node


def _cast(node: exp.Cast) -> Node:
    """Translate casts between text and bytes, which are UTF-8."""
    inner, to = node.this, node.to.this
    if to == exp.DataType.Type.TEXT and isinstance(inner, exp.Column) and inner.name in _BYTES:
        return exp.Anonymous(this="convert_from", expressions=[inner, exp.Literal.string("UTF8")])
    if to in (
        exp.DataType.Type.VARBINARY,
        exp.DataType.Type.BINARY,
        exp.DataType.Type.BLOB,
    ) and not isinstance(inner, exp.Literal | exp.Parameter):
        return exp.Anonymous(this="convert_to", expressions=[inner, exp.Literal.string("UTF8")])
    return node


# ------------------------------------------------------------------ truth


def _is_condition(node: Node) -> bool:
    """Return True if an expression is a truth value in PostgreSQL."""
    node = node.unnest()
    if isinstance(node, (exp.Case, exp.If)):
        return any(_is_condition(owner.args[name]) for owner, name in _branches(node))
    return isinstance(node, _CONDITIONS)


def _branches(node: Node) -> list[tuple[Node, str]]:
    """Return the results of a CASE, each as the node that has it and its name there."""
    if isinstance(node, exp.If):
        found = [(node, "true"), (node, "false")]
    else:
        found = [*((each, "true") for each in node.args["ifs"]), (node, "default")]
    return [(owner, name) for owner, name in found if owner.args.get(name) is not None]


def _valued(node: Node, wants_condition: bool) -> Node:
    """Return an expression as a condition or as a value, and so what is in it."""
    if isinstance(node, exp.EQ) and isinstance(
        node.parent, exp.Update | exp.OnConflict
    ):  # SET column = value
        node.set("expression", _valued(node.expression, False))
        return node
    is_condition = _is_condition(node)
    inner = wants_condition and is_condition  # what is in parentheses, and the results of a CASE
    if isinstance(node, (exp.Case, exp.If)):
        for owner, name in _branches(node):
            owner.set(name, _valued(owner.args[name], inner))
        for each in node.args["ifs"] if isinstance(node, exp.Case) else [node]:
            each.set("this", _valued(each.this, node is each or node.this is None))
        if isinstance(node, exp.Case) and node.this is not None:
            node.set("this", _valued(node.this, False))
    else:
        for name, value in [*node.args.items()]:
            wants = _wants_condition(node, name, inner)
            if isinstance(value, exp.Expr):
                node.set(name, _valued(value, wants))
            elif isinstance(value, list):
                node.set(
                    name,
                    [_valued(each, wants) if isinstance(each, exp.Expr) else each for each in value],
                )
    if wants_condition and not is_condition:
        return _truth(node)
    if is_condition and not wants_condition and isinstance(node, _CONDITIONS):
        return exp.cast(exp.paren(node, copy=False), "INT")
    return node


def _truth(node: Node) -> Node:
    """Return the condition that a number is not 0."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return exp.false() if node.name == "0" else exp.true()
    return (
        node
        if isinstance(node, exp.Null)
        else exp.NEQ(this=exp.paren(node, copy=False), expression=exp.Literal.number(0))
    )


def _wants_condition(node: Node, name: str, inner: bool) -> bool:
    """Return True if an argument of a node must be a condition."""
    if isinstance(node, exp.Join):
        return name == "on"
    return isinstance(node, (exp.Where, exp.Having, exp.Connector, exp.Not)) or (
        isinstance(node, exp.Paren) and inner
    )


# ------------------------------------------------------------------ schema

_IDENTITY = ("reading", "vector")  # their numbers are given by the server
_CREATED = re.compile(r"CREATE TABLE (\w+)")
_KEY = re.compile(r",?\s*PRIMARY KEY \(([^)]*)\)|(\w+)(\s+\w+) PRIMARY KEY(?: AUTOINCREMENT)?")


def schema_for_postgres(schema: str) -> list[str]:
    """Return the statements of `sql/schema.sql` for PostgreSQL, and those of `sql/postgres.sql`: functions first, views last."""
    own = [each.strip().rstrip(";") for each in read("postgres").split("\n\n")]
    made = [each for each in own if "CREATE FUNCTION" in each]
    for statement in schema_statements():
        text = re.sub(r"--[^\n]*", "", statement).strip().rstrip(";")
        if text.startswith("CREATE TABLE"):
            made += _table(text)
        elif "strftime(" not in text and "VIEW contents" not in text:  # they are written in sql/postgres.sql
            made.append(translated(text, (), schema).text)
    return made + [each for each in own if "CREATE FUNCTION" not in each and "CREATE" in each]


def _table(text: str) -> list[str]:
    """Return the statements for a table: its unique keys are indexes with NULL first, by which PostgreSQL can read in the order of SQLite."""
    created = _CREATED.match(text)
    assert created is not None
    name, keys = created[1], list[str]()
    body = re.sub(r"\)\s*STRICT(?:, WITHOUT ROWID)?$", ")", text)

    def without(found: re.Match[str]) -> str:
        keys.append(found[1] or found[2])
        number = " GENERATED BY DEFAULT AS IDENTITY" if name in _IDENTITY else ""
        return "" if found[1] else f"{found[2]}{found[3]} NOT NULL{number}"

    body = _KEY.sub(without, body)
    for found in re.findall(r",\s*UNIQUE \(([^)]*)\)", body):
        keys.append(found)
    body = re.sub(r",\s*UNIQUE \([^)]*\)", "", body)
    for old, new in (("INTEGER", "BIGINT"), ("TEXT", 'TEXT COLLATE "C"'), ("BLOB", "BYTEA")):
        body = re.sub(rf"\b{old}\b", new, body)
    indexes = []
    for at, key in enumerate(keys):
        columns = ", ".join(
            f'"{each.split()[0]}" {"DESC NULLS LAST" if each.endswith(" DESC") else "NULLS FIRST"}'
            for each in key.split(", ")
        )
        indexes.append(f'CREATE UNIQUE INDEX "{name}_key_{at}" ON "{name}" ({columns})')
    return [body, *indexes]
