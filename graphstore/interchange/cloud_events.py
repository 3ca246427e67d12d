"""Exports each transaction as a CloudEvent 1.0 for any consumer: structured JSON, one event per transaction.

`source` and `id` (the tx instant, which strictly rises) identify a transaction forever, so a consumer can skip what it has seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from graphstore.errors import InvalidError
from graphstore.store import registry
from graphstore.values.findings import Change
from graphstore.values.period import TimeLike, instant, iso

try:
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent
except ImportError:
    raise InvalidError(
        "CloudEvents need cloudevents. Install it: pip install 'graphstore[cloudevents]'"
    ) from None

if TYPE_CHECKING:
    from graphstore.store.store import Store

__all__ = ["TYPE", "cloud_events", "structured"]

TYPE = "graphstore.transaction.v1"


@registry.read("cloud_events", here=True)
def cloud_events(
    store: Store, since: TimeLike | None = None, *, source: str | None = None
) -> Iterator[CloudEvent]:
    """The store's transactions as CloudEvents, oldest first; with `since`, only what came after that tx: pass the last `time` to go on.

    `source` is a URI; without it that of the store's folder. `subject` is what the transaction was about, left out where that is more than one
    thing. The data are its operations in order: `{"changes": [{"tx", "verb", "subject", "author", "reason"}, …]}`.
    """
    where = source or ("urn:graphstore:memory" if store.path is None else store.path.absolute().as_uri())
    for _, group in groupby(store.changes(since), key=lambda change: change.tx):
        yield _event(where, list(group))


def _event(source: str, changes: list[Change]) -> CloudEvent:
    first = changes[0]
    tx = iso(instant(first.tx))
    attributes = {"specversion": "1.0", "id": tx, "source": source, "type": TYPE, "time": first.tx}
    attributes["datacontenttype"] = "application/json"
    subjects = {change.subject for change in changes}
    if len(subjects) == 1 and first.subject:
        attributes["subject"] = first.subject
    return CloudEvent(attributes, {"changes": [{**change.__dict__, "tx": tx} for change in changes]})


def structured(event: CloudEvent) -> bytes:
    """A CloudEvent as one JSON object on one line (`application/cloudevents+json`)."""
    written: bytes = JSONFormat().write(event)
    return written
