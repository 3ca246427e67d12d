"""Branches of belief: lines of their own that fork from the trunk at an instant, in the same journal. What is told on one shows nowhere else.

A branch costs one line of the journal. Its index is laid when it is first asked: see `laying.py`; how one is merged is in `merging.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, overload

from graphstore import comparing, folder, laying, retention
from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.index import Index
from graphstore.inputs import printable, text_of
from graphstore.line import FORGETTING
from graphstore.merging import Decide, Planning
from graphstore.models import BranchInfo, Merge, Problem, Verification, ViewDiff
from graphstore.period import Instant, TimeLike, moment
from graphstore.strands import Strand
from graphstore.view import Reader, View
from graphstore.weaving import Weaving
from graphstore.whole import WholeStore

if TYPE_CHECKING:
    from graphstore.branch import Branch


class Branching(WholeStore):
    """An open store and its branches."""

    def branch(
        self, name: str, *, at: View | None = None, tx: TimeLike | None = None, reason: str | None = None
    ) -> Branch:
        """A new line of belief: it begins with what the store knew at `tx`, or at the tx of the view `at` (default: now), and has every verb.

        Raises ConflictError when a branch has that name: `on(name)` gives it. On a store that is read only it is the same as `on`.
        """
        if self.read_only:
            return self.on(name)
        name = printable("branch name", text_of("branch name", name))
        with self._by_itself("branch()"), self._core.lock:
            fork = self._fork(at, tx)
            if self._strand(name) is not None:
                raise ConflictError(
                    f"there is a branch {name!r} already. Use on({name!r}), delete it, or choose another name."
                )
            with self._transact(None, None, None) as work:
                work.branches.append(["branch", name, moment(fork)])
                work.op("branch", name, reason)
            return self.on(name)

    def _fork(self, at: View | None, tx: TimeLike | None) -> Instant:
        if at is None:
            return self.as_of(tx=tx)._tx
        if tx is not None:
            raise InvalidError("at= and tx= say the same thing. Give one of them.")
        if not isinstance(at, View) or at._core is not self._core:
            raise InvalidError(
                "a branch begins at a view of this store's trunk. Give at=store.as_of(…), or tx=."
            )
        return at._tx

    def on(self, name: str) -> Branch:
        """The branch of that name, which is there already. Raises NotFoundError when it is not."""
        from graphstore.branch import Branch

        with self._core.lock:
            self._usable()
            strand = self._found(name)
            for line in self._lines[1:]:
                if isinstance(line, Branch) and line.is_of(strand):
                    return line
            made = Branch(self, strand)
            self._lines.append(made)
            return made

    def branches(self) -> list[BranchInfo]:
        """The branches there are, in the order they were made."""
        with self._core.lock:
            self._usable()
            return [_info(strand) for strand in self._core.index.strands.living()]

    def delete_branch(self, name: str | Branch, *, reason: str | None = None) -> None:
        """Have done with a branch, given by its name or its handle: nothing can be read or told there any more. What was merged of it stays. Its
        name is free again.

        Its lines stay in the journal until something is evicted without a trace. Raises NotFoundError when there is none of that name.
        """
        with self._by_itself("delete_branch()"), self._core.lock:
            gone = self._found(name).name
            with self._transact(None, None, None) as work:
                work.branches.append(["delete_branch", gone])
                work.op("delete_branch", gone, reason)
            for line in self._lines[1:]:
                line._follow_trunk(anew=False)

    def merge(self, name: str | Branch, *, decide: Decide = None, reason: str | None = None) -> Merge:
        """Bring over what was told on a branch (its name or its handle) since it began, or was merged last: all of it at one new instant, or nothing.

        What only the branch changed holds by its word; what both changed, and not alike, is a conflict. `decide` says whose word holds: for each id
        `trunk` or `branch`, one of the two for all, or a function of a conflict. With a conflict undecided nothing is written, and the answer has them
        all. What was believed at any earlier tx stays as it was; the branch goes on. Raises NotFoundError for an unknown branch.
        """
        reason = None if reason is None else text_of("reason", reason)
        with self._by_itself("merge()"), self._core.lock:
            strand = self._found(name)
            branch = self.on(strand.name)._core
            if strand.last is None or strand.last <= strand.base:
                return Merge(merged=True)
            now = self._coordinate()[1]
            plan = Planning(self._core, branch, strand.base, now, decide).made()
            if plan.undecided:
                return Merge(merged=False, conflicts=tuple(plan.conflicts))
            with self._transact(None, None, reason) as work:
                return Weaving(self._core, branch, work, plan).write()

    @overload
    def compare(self, other: Reader) -> ViewDiff: ...
    @overload
    def compare(self, other: str) -> ViewDiff: ...
    def compare(self, other: Reader | str) -> ViewDiff:
        """What another view has that this has not, and the other way round; or what a branch has, by its name: this now against the branch now.

        Of two lines of belief a node is changed when they say something else of it, whatever the number of its version.
        """
        if not isinstance(other, str):
            return super().compare(other)
        with self._core.lock:
            return comparing.compare(self._sight(), self.on(other)._sight())

    def verify(self) -> Verification:
        """Read the whole journal again, compare the index and those of its branches with it, and the graph tables with the index. Changes nothing."""
        with self._writer, self._core.lock:
            found = super().verify()
            problems = [*found.problems, *self._verify_branches()]
            return found.model_copy(update={"ok": not problems, "problems": tuple(problems)})

    def _verify_branches(self) -> Iterator[Problem]:
        core = self._core
        held = {line.name: line for line in self._held()}
        for strand in core.index.strands:
            fresh = laying.lay(core.index, core.journal, strand)
            problems = folder.unexplained(fresh)
            line = held.get(strand.name)
            if line is not None and line.is_of(strand):
                problems += folder.differing(line._core.index, fresh)
                problems += line._core.graphs.verify()
            for problem in problems:
                yield problem.model_copy(update={"message": f"branch {strand.name!r}: {problem.message}"})

    # ------------------------------------------------------------------ what is known where

    def _held(self) -> list[Branch]:
        """The branches whose index was laid."""
        from graphstore.branch import Branch

        return [line for line in self._lines if isinstance(line, Branch) and line.is_laid]

    def _strand(self, name: str) -> Strand | None:
        strand = self._core.index.strands.find(name)
        return None if strand is None or strand.deleted is not None else strand

    def _found(self, asked: str | Branch) -> Strand:
        from graphstore.branch import Branch

        if isinstance(asked, Branch):
            return self._of_handle(asked)
        strand = self._strand(text_of("branch name", asked))
        if strand is None:
            there = [other.name for other in self._core.index.strands.living()]
            raise NotFoundError.nearest("branch", asked, there)
        return strand

    def _of_handle(self, handle: Branch) -> Strand:
        """The branch of a handle, a closed one too: its name may be another branch's by now."""
        strand = self._strand(handle.name)
        if handle._trunk is not self:
            raise InvalidError(
                f"{handle!r} is a branch of another store. branches() lists those of this one."
            )
        if strand is None or not handle.is_of(strand):
            raise NotFoundError(handle._over())
        return strand

    def _laid(self, strand: Strand) -> Index:
        """The index of a branch, deleted ones too."""
        line = next((line for line in self._held() if line.is_of(strand)), None)
        return line._core.index if line else laying.lay(self._core.index, self._core.journal, strand)

    # ------------------------------------------------------------------ forgetting reaches every branch

    def _chosen(self, names: Iterable[str]) -> dict[str, str]:
        """How each of these whole ids is forgotten already (`evicted`, `erased` or empty). Raises NotFoundError for one that is known nowhere."""
        core = self._core
        index, known = core.index, set[str]()
        found = {}
        for name in names:
            if name in index.ids:
                found[name] = index.word(index.ids[name])
                continue
            known = known or set[str]().union(*(laying.born_on(core.journal, each) for each in index.strands))
            if name not in known:
                raise NotFoundError.nearest("node or event", name, [*index.ids, *known])
            told = (
                verb for verb, subject in zip(index.o_verb, index.o_subject, strict=True) if subject == name
            )
            found[name] = ([""] + [FORGETTING[verb] for verb in told if verb in FORGETTING])[-1]
        return found

    def _too_old(
        self, kinds: frozenset[str] | None, cut: Instant | None, most: int | None, keep_audit: bool
    ) -> list[str]:
        """The ids of what may be evicted, on the trunk and on branches, the oldest of each first; with `most` no more than makes the journal smaller."""
        index, now = self._core.index, self._now()
        found: list[str] = []
        over = None if most is None else self._core.journal.size() - most
        for each in (index, *(self._laid(strand) for strand in index.strands if strand.pieces)):
            ents = retention.candidates(each, kinds, cut, now, tombstones=not keep_audit)
            if each is not index:
                ents = [
                    ent for ent in ents if each.names[ent] not in index.ids and each.names[ent] not in found
                ]
            if over is not None:
                ents = retention.enough(each, ents, over, keep_audit)
                over -= retention.freed(each, ents, keep_audit)
            found += [each.names[ent] for ent in ents]
        return found


def _info(strand: Strand) -> BranchInfo:
    return BranchInfo(
        name=strand.name,
        forked_at=moment(strand.fork),
        made_at=moment(strand.made),
        transactions=strand.transactions,
        last_tx=None if strand.last is None else moment(strand.last),
        merged_at=None if strand.merged is None else moment(strand.merged),
    )
