"""Other people's records: tables, JSON lines, git, traces, logs. It knows nothing of the doors."""

from __future__ import annotations

from graphstore.faces import face

__getattr__ = face(__name__, "graphstore.imports.records")
