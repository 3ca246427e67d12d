"""The context of an agent before it answers: files, scratchpads, observations, memory. It does not depend on the interfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphstore.faces import face

if TYPE_CHECKING:
    from graphstore.context.sections import *  # noqa: F403

__getattr__ = face(__name__, "graphstore.context.sections")
