"""The event log: reports, the recorder, recurrences, correlation, regressions, the timeline. It imports neither sessions nor any interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphstore.faces import face

if TYPE_CHECKING:
    from graphstore.events.report import *  # noqa: F403

__getattr__ = face(__name__, "graphstore.events.report")
