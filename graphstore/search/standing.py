"""Record what stands at a coordinate, as a mask over all versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphstore.values.period import OPEN, Instant

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Standing:
    """Holds the version of each thing that stands at (valid, tx), and the range [since, until) of valid time around it in which this does not change."""

    __slots__ = ("_words", "alive", "ops", "planned", "since", "until", "version_of")

    def __init__(self, ops: int) -> None:
        import numpy as np

        self.ops = ops  # the number of known operations
        self.since, self.until = -OPEN, OPEN + 1
        self.version_of: NDArray[np.int32] = np.zeros(0, dtype=np.int32)  # by entity; -1: it does not stand
        self.alive: NDArray[np.bool_] = np.zeros(0, dtype=bool)  # by version: whether it stands
        self.planned: dict[int, int] = {}  # the versions that begin later, and the thing of each
        self._words = -1  # words of all that stands; -1: not counted

    def count(self) -> int:
        """Return the number of things that stand."""
        import numpy as np

        return int(np.count_nonzero(self.alive))

    def mean(self, lengths: NDArray[Any]) -> float:
        """Return the mean number of words of the things that stand."""
        import numpy as np

        if self._words < 0:
            self._words = int(lengths[np.flatnonzero(self.alive)].sum())
        return self._words / max(self.count(), 1)

    def copy(self) -> Standing:
        """Return a copy to be brought up to date, while other threads use this one."""
        twin = Standing(self.ops)
        twin.since, twin.until = self.since, self.until
        twin.version_of, twin.alive = self.version_of.copy(), self.alive.copy()
        twin.planned = dict(self.planned)
        return twin

    def plans(self) -> NDArray[np.bool_]:
        """Return a mask over all versions: true for those of things that do not stand yet and begin after everything known."""
        import numpy as np

        mask = np.zeros(len(self.alive), dtype=bool)
        mask[[ver for ver, ent in self.planned.items() if self.version_of[ent] < 0]] = True
        return mask

    def grow_to(self, versions: int, entities: int) -> None:
        """Extend to this many versions and things; the new ones do not stand."""
        import numpy as np

        if (more := versions - len(self.alive)) > 0:
            self.alive = np.concatenate([self.alive, np.zeros(more, dtype=bool)])
        if (more := entities - len(self.version_of)) > 0:
            self.version_of = np.concatenate([self.version_of, np.full(more, -1, dtype=np.int32)])

    def narrow(self, start: Instant, stop: Instant, valid: Instant) -> None:
        """Narrow [since, until) by two instants at which something changes, each on either side of `valid`."""
        for bound in (start, stop):
            if bound > valid:
                self.until = min(self.until, bound)
            else:
                self.since = max(self.since, bound)
