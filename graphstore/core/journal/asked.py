"""The error of a request that another server of the same store has done."""

from graphstore.errors import EngineError


class DoneElsewhere(EngineError):
    """A request was sent to another server of the store too, which was first."""
