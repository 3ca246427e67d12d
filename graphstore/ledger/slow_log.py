"""Logs warnings about slow operations, in the log of the program that has a store open."""

from __future__ import annotations

SLOW = 1.0  # seconds; slower operations are logged


def warn(message: str, *values: object) -> None:
    """Log a warning."""
    import logging  # not needed by most processes

    logger = logging.getLogger("graphstore")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # a library must not print unless logging is configured
    logger.warning(message, *values)
