"""One branch: a store of its own to read and to write, in the journal, with the lock and on the line of instants of its trunk."""

from __future__ import annotations

from typing import Any, NoReturn

from graphstore import laying
from graphstore.branching import Branching
from graphstore.errors import InvalidError
from graphstore.graphs import Graphs
from graphstore.index import Index
from graphstore.line import FORGETTING
from graphstore.models import BranchInfo, Verification
from graphstore.period import Instant, moment
from graphstore.search import Search
from graphstore.sight import Core
from graphstore.store import GraphStore
from graphstore.strands import Strand
from graphstore.vocabulary import Vocabulary


class Branch(GraphStore):
    """A branch of a store, with all its reads and verbs. What is told here shows nowhere else. `GraphStore.branch` and `on` give it.

    Its index is laid when it is first asked; until then it holds nothing. `close` lets go of that; closing the store closes it.
    """

    def __init__(self, trunk: Branching, strand: Strand) -> None:
        # not that of a store: all but the index is the trunk's
        self._trunk = trunk
        self.name = strand.name
        self._named = f"branch {strand.name!r}"
        self._made = strand.made
        self._place, self._clock, self._author = trunk._place, trunk._clock, trunk._author
        self._writer, self._lines, self.notices = trunk._writer, trunk._lines, trunk.notices
        self._waiting = trunk._waiting
        self._open, self._owner, self._too_big = None, 0, 0
        self._laid_at = (-1, -1)
        self._closed: str | None = None

    def __getattr__(self, name: str) -> Any:
        if name != "_core":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with self._trunk._core.lock:
            if not self.is_laid:
                self._core = self._lay()
            return self._core

    def _lay(self) -> Core:
        trunk = self._trunk._core
        if trunk.closed or self._closed:
            raise InvalidError(trunk.closed or self._closed)
        index = self._index()
        vocabulary = Vocabulary(index.kinds)
        graphs = Graphs(
            None, index, trunk.journal, vocabulary,
            driver=trunk.graphs.driver, notify=self.notices.append,
        )  # fmt: skip
        return Core(index, trunk.journal, vocabulary, graphs, lock=trunk.lock)

    def _index(self) -> Index:
        trunk, strand = self._trunk._core, self._strand_of()
        if strand is None or strand.deleted is not None:
            raise InvalidError(self._over())
        self._laid_at = self._told_by_now()
        return laying.lay(trunk.index, trunk.journal, strand, self._uncommitted)

    def _uncommitted(self, index: Index) -> None:
        if self._trunk._open is not None:
            self._trunk._open.give_up(index)

    def _told_by_now(self) -> tuple[int, int]:
        """How much was told on the branch, and how often something was forgotten on the trunk."""
        strand, index = self._strand_of(), self._trunk._core.index
        forgotten = sum(map(index.o_verb.count, FORGETTING))
        return strand.transactions if strand else 0, forgotten

    def _strand_of(self) -> Strand | None:
        return next((strand for strand in self._trunk._core.index.strands if self.is_of(strand)), None)

    def is_of(self, strand: Strand) -> bool:
        """Whether this is that branch: a name may be used again."""
        return (strand.name, strand.made) == (self.name, self._made)

    @property
    def is_laid(self) -> bool:
        """Whether its index was laid."""
        return "_core" in vars(self)

    # ------------------------------------------------------------------ one writer, one line of instants

    @property
    def _handed(self) -> Instant:
        return self._trunk._handed

    @_handed.setter
    def _handed(self, at: Instant) -> None:
        self._trunk._handed = at

    @property
    def _last_tx(self) -> Instant:
        return self._trunk._last_tx

    def _told(self) -> None:
        core, trunk = self._core, self._trunk._core.index
        trunk.tell_elsewhere(self.name, core.index.last_tx, core.journal.appended)
        self._laid_at = (self._laid_at[0] + 1, self._laid_at[1])

    def _follow_trunk(self, *, anew: bool) -> None:
        strand = self._strand_of()
        if strand is None or strand.deleted is not None:
            self._let_go(self._over())
            self._lines.remove(self)
        elif self.is_laid and (anew or self._laid_at != self._told_by_now()):
            core = self._core
            self._open = None
            core.pending.clear()
            core.index, core.search = self._index(), Search()
            core.memo.clear()
            core.graphs.follow(core.index)
            core.vocabulary.reset(core.index.kinds)

    def _relay(self) -> None:
        self._trunk._relay()

    def _keep_small(self) -> None:
        self._trunk._keep_small()

    def _tell_accesses(self) -> None:
        if self.is_laid:
            super()._tell_accesses()

    def _usable(self) -> None:
        self._trunk._usable()
        super()._usable()

    # ------------------------------------------------------------------ the whole

    @property
    def info(self) -> BranchInfo:
        """Where it began, and what was done with it since."""
        return next(
            info
            for info in self._trunk.branches()
            if (info.name, info.made_at) == (self.name, moment(self._made))
        )

    def close(self) -> None:
        """Let go of its index. The branch stays; `on(name)` of the trunk gives it again."""
        with self._writer, self._trunk._core.lock:
            self._refuse_open("close()")
            if self in self._lines:
                self._tell_accesses()
                self._let_go(f"branch {self.name!r} was closed. Get it again with on({self.name!r}).")
                self._lines.remove(self)

    def _let_go(self, why: str) -> None:
        self._closed = why
        if self.is_laid:
            super()._let_go(why)

    def __repr__(self) -> str:
        return f"<Branch {self.name!r} of {self._trunk!r}>"

    def refresh(self) -> int:
        """Follow the writer's journal, as the store does."""
        return self._trunk.refresh()

    def verify(self) -> Verification:
        """Check the whole store, as the store does."""
        return self._trunk.verify()

    def on(self, name: str) -> Branch:
        """Another branch of the same store."""
        return self._trunk.on(name)

    def branches(self) -> list[BranchInfo]:
        """The branches of the store."""
        return self._trunk.branches()

    def branch(self, name: str, **_: Any) -> NoReturn:
        """Refused: branches begin on the trunk."""
        raise self._of_the_trunk(
            "branch()", "A branch begins on the trunk: merge this one first, or fork there"
        )

    def merge(self, name: str | Branch, **_: Any) -> NoReturn:
        """Refused: branches are merged into the trunk."""
        raise self._of_the_trunk("merge()", "Branches are merged into the trunk")

    def delete_branch(self, name: str | Branch, **_: Any) -> NoReturn:
        """Refused: it is the trunk's."""
        raise self._of_the_trunk("delete_branch()")

    def evict(self, **_: Any) -> NoReturn:
        """Refused: what is forgotten is forgotten on every line, from the trunk."""
        raise self._of_the_trunk("evict()", "What is forgotten is forgotten everywhere")

    def evict_old(self) -> list[str]:
        """Nothing: retention is the trunk's."""
        return []

    def erase(self, id: str, **_: Any) -> NoReturn:
        """Refused: what is forgotten is forgotten on every line, from the trunk."""
        raise self._of_the_trunk("erase()", "What is forgotten is forgotten everywhere")

    def set_retention(self, **_: Any) -> NoReturn:
        """Refused: it is the trunk's."""
        raise self._of_the_trunk("set_retention()")

    @property
    def retention(self) -> dict[str, int | None]:
        """What the store keeps."""
        return self._trunk.retention  # type: ignore[attr-defined, no-any-return]

    def _of_the_trunk(self, verb: str, why: str = "It concerns the whole store") -> InvalidError:
        return InvalidError(f"{verb} on branch {self.name!r}. {why}: call it on the store itself.")

    def _over(self) -> str:
        return f"branch {self.name!r} was deleted. branches() lists those there are."
