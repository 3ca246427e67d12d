"""How much of a question a thing says: the share of the question's weight, the words it says it with, and the part of its text around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from graphstore.values.words import Analyzer, Term, spoken

Strength = Literal["strong", "weak"]
COVERS = 0.5
"""A thing that says so much of a question, or more, answers it; what says less is only near it."""
FLOOR = 0.04
"""A thing that says less, and that nothing else leads to, is not shown."""
SNIPPET = 160
"""Characters of a snippet, at most."""


def coverage_of_text(analyzer: Analyzer, terms: Sequence[Term], weights: Sequence[float], text: str) -> float:
    """Return the share of a question's weight that a text says."""
    whole, forms = sum(weights), set(analyzer.terms(text))
    says = (any(_is(term, form) for form in forms) for term in terms)
    return (
        sum(weight for weight, is_said in zip(weights, says, strict=True) if is_said) / whole
        if whole
        else 0.0
    )


class SaidWords(NamedTuple):
    """The words of a question as they stand in a text, each once, and the part of the text that has most of them."""

    words: tuple[str, ...]
    snippet: str


def said(analyzer: Analyzer, terms: Sequence[Term], text: str) -> SaidWords:
    """Return what of a question's terms a text says. Without any, its beginning is the snippet."""
    places = [(start, end) for start, end, token in spoken(text) if _says(analyzer, terms, token)]
    words = dict.fromkeys(text[start:end] for start, end in places)
    return SaidWords(tuple(words), _around(text, places))


def _says(analyzer: Analyzer, terms: Sequence[Term], token: str) -> bool:
    forms = analyzer.terms_of(token)
    return any(_is(term, form) for form in forms for term in terms)


def _is(term: Term, form: str) -> bool:
    return form in term.forms or (term.prefix and form.startswith(term.forms))


def _around(text: str, places: Sequence[tuple[int, int]]) -> str:
    """Return the stretch of a text that has most of the places, cut between words; an ellipsis where something is left out."""
    if len(text) <= SNIPPET:
        return " ".join(text.split())
    start = -max(_starts(places), default=(0, 0))[1]
    begin = max(0, min(start - SNIPPET // 4, len(text) - SNIPPET))
    end = begin + SNIPPET
    if begin:
        begin = text.find(" ", begin, start) + 1 or begin
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + 1)
    shown = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"


def _starts(places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """For each place, how many begin within a snippet from it; the earliest of equals is the greatest."""
    last = 0
    for first, (start, _) in enumerate(places):
        last = max(last, first)
        while last < len(places) and places[last][1] <= start + SNIPPET * 3 // 4:
            last += 1
        yield last - first, -start
