"""Imports records of others: tables, JSON lines, git, traces, logs. It imports none of the interfaces."""

from __future__ import annotations

from graphstore.faces import face

__getattr__ = face(__name__, "graphstore.imports.records")
