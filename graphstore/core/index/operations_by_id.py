"""Which operations name a thing or a link: chains through all operations, from the last one back, made when first asked for and moved on."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock


class Mentions:
    """The chains. Sixteen bytes an operation; a name that is no id has a list."""

    def __init__(self) -> None:
        self._before: array[int] = array(
            "q"
        )  # of each operation the one before it that names the same; -1: none
        self._last: tuple[array[int], array[int]] = array("q"), array("q")  # of each thing, of each link
        self._others: dict[str, list[int]] = {}
        self._following = Lock()

    def naming(
        self,
        name: str,
        subjects: Sequence[str],
        count: int,
        numbers: tuple[Mapping[str, int], Mapping[str, int]],
    ) -> list[int]:
        """The first `count` operations as far as they name something, in no order. `numbers`: of the things and the links there are."""
        if len(self._before) < count:
            with self._following:
                self._follow(subjects, count, numbers)
        found = self._others.get(name, [])[:]
        for last, known in zip(self._last, numbers, strict=True):
            found += self._chain(last, known.get(name, -1))
        return found

    def _chain(self, last: array[int], number: int) -> Iterator[int]:
        op = last[number] if 0 <= number < len(last) else -1
        while op >= 0:
            yield op
            op = self._before[op]

    def _follow(
        self, subjects: Sequence[str], count: int, numbers: tuple[Mapping[str, int], Mapping[str, int]]
    ) -> None:
        before_of = self._before
        for op in range(len(before_of), count):
            subject, before = subjects[op], -1
            for last, known in zip(self._last, numbers, strict=True):
                number = known.get(subject, -1)
                if number >= 0:
                    last.extend([-1] * (number + 1 - len(last)))
                    before, last[number] = last[number], op
                    break
            else:
                self._others.setdefault(subject, []).append(op)
            before_of.append(before)
