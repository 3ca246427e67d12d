"""How much a query may say and get."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits what one query may say and get. The engine's parser and binder take no less than twice as much of each, in under a second."""

    characters: int = 100_000
    tokens: int = 10_000
    clauses: int = 256
    depth: int = 32
    """Brackets of any kind within each other: lists, maps, calls, subqueries, types."""
    cases: int = 8
    """CASE within CASE: each level doubles what the parser does."""
    signs: int = 64
    """NOT, - and + before one another."""
    rows: int = 1_000_000


LIMITS = QueryLimits()
