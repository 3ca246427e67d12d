"""Limits on the size of a query and of its answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits one query and its answer. The engine's parser and binder handle at least twice as much of each in under a second."""

    characters: int = 100_000
    tokens: int = 10_000
    clauses: int = 256
    depth: int = 32
    """Nested brackets of any kind: lists, maps, calls, subqueries, types."""
    cases: int = 8
    """Nested CASE: each level doubles the parser's work."""
    signs: int = 64
    """Consecutive NOT, - and +."""
    rows: int = 1_000_000


LIMITS = QueryLimits()
