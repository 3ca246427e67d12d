"""Name coordinates as snapshots. A name is given once and never moved, so a read by name can be repeated.

Each snapshot is a setting of the store, so a follower, a reopened store and a dump have it too.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.read.settings import KEPT, snapshot_of
from graphstore.read.working_set import WorkingSet
from graphstore.values.coordinates import looks_like_time
from graphstore.values.inputs import printable, text_of
from graphstore.values.models import Snapshot
from graphstore.values.period import Instant, TimeLike, instant


def name_of(name: object) -> str:
    """Return the checked name of a new snapshot, without surrounding spaces. Raises InvalidError for a name that reads as a time."""
    plain = printable("snapshot name", text_of("snapshot name", name).strip())
    if looks_like_time(plain):
        raise InvalidError(
            f"snapshot name {plain!r} looks like a time, and would be read as one. Put a word first, such as {'before-' + plain!r}."
        )
    return plain


def refuse_taken(index: WorkingSet, name: str) -> None:
    """Raise ConflictError if a snapshot already has that name."""
    kept = index.setting(KEPT + name)
    if kept is not None:
        raise ConflictError(
            f"{name!r} is a snapshot already, of tx {kept['tx']}, and a name is never moved. Choose another name."
        )


def known(index: WorkingSet, tx: Instant) -> list[Snapshot]:
    """Return the snapshots made by `tx`, in order."""
    made = (
        snapshot_of(name.removeprefix(KEPT), kept)
        for setting in index.settings
        for name, kept in setting.items()
        if name.startswith(KEPT)
    )
    return [snapshot for snapshot in made if instant(snapshot.tx) <= tx]


def find(made: Sequence[Snapshot], name: TimeLike) -> Snapshot | None:
    """Return the snapshot with that name among those `made` so far; None for a time. Raises NotFoundError with the nearest names."""
    plain = name.strip() if isinstance(name, str) else ""
    found = next((one for one in made if one.name == plain), None)
    if found is None and isinstance(name, str) and not looks_like_time(name):
        missing = NotFoundError.nearest("snapshot", plain, lambda: [one.name for one in made])
        raise NotFoundError(f"{missing} snapshots() lists them; a time is ISO 8601, such as '2026-01-30'.")
    return found
