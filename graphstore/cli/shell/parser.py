"""What is typed into the shell, as text: where a statement ends, what is a command, which word is what.

A statement ends with `;` outside strings, names in backticks and comments. A command is a line that begins with `:`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphstore.graph.statement import pieces

COMMAND = ":"
WORDS_THAT_ARE_COMMANDS = ("exit", "help", "quit")
"""What people type first; alone on a line they are commands."""

KEYWORDS = (
    "ALL", "AND", "ANY", "AS", "ASC", "BY", "CALL", "CASE", "CONTAINS", "COUNT", "DESC", "DISTINCT", "ELSE", "END", "ENDS", "EXISTS",
    "EXPLAIN", "FALSE", "IN", "IS", "LIMIT", "MATCH", "NONE", "NOT", "NULL", "OPTIONAL", "OR", "ORDER", "PROFILE", "RETURN", "SHORTEST",
    "SINGLE", "SKIP", "STARTS", "THEN", "TRUE", "UNION", "UNWIND", "WHEN", "WHERE", "WITH", "XOR", "YIELD",
)  # fmt: skip
FUNCTIONS = (
    "avg", "cast", "coalesce", "collect", "concat", "contains", "count", "date", "date_part", "interval", "keys", "label", "length",
    "list_contains", "list_sort", "lower", "max", "min", "nodes", "properties", "range", "regexp_matches", "rels", "round", "size",
    "split", "starts_with", "string_split", "substring", "sum", "timestamp", "upper",
)  # fmt: skip


def cut(text: str) -> tuple[list[str], str]:
    """The statements that are ended, without their `;`, and what stands behind the last of them."""
    ended: list[str] = []
    held: list[str] = []
    open, before = False, ""
    for kind, piece in pieces(text):
        open = open or (kind == "mark" and (piece in "'\"`" or before + piece == "/*"))
        if piece == ";" and kind == "mark" and not open:
            ended.append("".join(held))
            held = []
        else:
            held.append(piece)
        before = piece
    return ended, "".join(held)


def is_blank(text: str) -> bool:
    """Return True if a text is white space and comments alone."""
    return all(kind in ("space", "comment") for kind, _ in pieces(text))


def is_command(text: str) -> bool:
    """Return True if a text that begins here is a command, and so ends with its line."""
    plain = text.strip()
    return plain.startswith(COMMAND) or plain.rstrip(";").lower() in WORDS_THAT_ARE_COMMANDS


def is_complete(text: str) -> bool:
    """Return True if Enter sends what was typed; otherwise it begins a new line."""
    left = cut(text)[1]
    return is_command(text) or is_blank(left) or is_command(left)


def inputs(lines: Iterable[str]) -> Iterator[str]:
    """Each statement (without its `;`) and each command of some lines, as soon as it is whole; what is left at the end is a statement too."""
    held = ""
    for line in lines:
        if is_blank(held) and is_command(line):
            held = ""
            yield line.strip()
            continue
        ended, held = cut(held + line)
        yield from (statement.strip() for statement in ended if not is_blank(statement))
        if ended and is_command(held):
            yield held.strip()
            held = ""
    if not is_blank(held):
        yield held.strip()
