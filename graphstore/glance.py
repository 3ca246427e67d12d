"""What a view shows of itself in a notebook: how much stands there, and what was told last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphstore.period import moment

if TYPE_CHECKING:
    from graphstore.models import Link
    from graphstore.scenes import Scene
    from graphstore.sight import Sight
    from graphstore.view import Reader


def html(reader: Reader) -> str:
    """The glance as HTML."""
    from graphstore import pictures

    return pictures.html(glance(reader))


def markdown(reader: Reader) -> str:
    """The glance as Markdown."""
    from graphstore import pictures

    return pictures.markdown(glance(reader))


def glance(reader: Reader) -> Scene:
    """The last things told that stand at the reader's coordinate, the links between them, and how many more there are."""
    from graphstore.pictures import ROWS
    from graphstore.scenes import Scene, things_scene

    with reader._core.lock:
        title = repr(reader).strip("<>")
        if reader._core.closed:
            return Scene(title)
        sight = reader._sight()
        index = sight.index
        rows = [
            row for ent, born in enumerate(index.born) if born <= sight.tx and (row := sight.find(ent)) >= 0
        ]
        last = sorted(rows, key=lambda row: index.r_tx[row])[-ROWS:][::-1]
        things = [sight.thing(index.r_ent[row]) for row in last]
        links = _between({index.r_ent[row] for row in last}, sight)
        return things_scene(title, things, len(rows), links, ROWS, moment(sight.valid))


def _between(shown: set[int], sight: Sight) -> list[Link]:
    """The links that hold here among some things."""
    index = sight.index
    rows = [
        row
        for ent in sorted(shown)
        for link in index.out.get(ent, ())
        if index.l_tgt[link] in shown and (row := sight.held(link)) >= 0
    ]
    return [sight.link(row) for row in sorted(rows, key=sight.link_order)]
