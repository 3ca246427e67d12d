"""Questions that come with the package, by name: the sections of `cypher/cookbook.cypher`, over the whole history, and of `cypher/sessions.cypher` and
`cypher/agents.cypher`, at a coordinate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from graphstore.errors import InvalidError
from graphstore.graph import texts
from graphstore.values.models import Value
from graphstore.values.period import BEGINNING, TimeLike, moment

if TYPE_CHECKING:
    from graphstore.graph.result import Result
    from graphstore.view.view import View

_OVER_TABLES = "cookbook.cypher"
_FILES = (_OVER_TABLES, "sessions.cypher", "agents.cypher")
_PARAMETER = re.compile(r"\$(\w+)")
_COORDINATE, _WINDOW = ("valid", "tx"), ("since", "until")
_USUAL: Mapping[str, Any] = {"at_least": 2, "many": 20}


class AskedRecipes(Protocol):
    """A store, or a branch of one."""

    def as_of(self, *, valid: TimeLike | None = None, tx: TimeLike | None = None) -> View:
        """Return the view at a coordinate."""

    def query_tables(self, cypher: str, **params: Any) -> Result:
        """Return the answer of a query over the whole history."""


class Recipe(Value):
    """One question: what it answers, the parameters to give, whether it is asked of the whole history, and its text."""

    name: str
    doc: str
    parameters: tuple[str, ...]
    tables: bool
    text: str


@cache
def recipes() -> dict[str, Recipe]:
    """Return all recipes, by name."""
    return {
        each.name: Recipe(
            name=each.name,
            doc=each.doc,
            parameters=tuple(dict.fromkeys(_PARAMETER.findall(each.text))),
            tables=each.file == _OVER_TABLES,
            text=each.text,
        )
        for each in texts.sections().values()
        if each.file in _FILES
    }


def asked(
    store: AskedRecipes, name: str, valid: TimeLike | None, tx: TimeLike | None, params: Mapping[str, Any]
) -> Result:
    """Return the answer of a recipe. Raises InvalidError for an unknown recipe, and for unknown or missing parameters."""
    known = recipes()
    if name not in known:
        raise InvalidError.choice("recipe", name, list(known))
    recipe = known[name]
    takes = [each for each in recipe.parameters if each not in _COORDINATE]
    for given in params:
        if given not in takes:
            raise InvalidError.choice(f"parameter of {name}", given, [*takes, *_COORDINATE])
    view = store.as_of(valid=valid, tx=tx)
    view.bounds_of(params.get("since"), params.get("until"))
    usual: dict[str, Any] = {
        **_USUAL,
        "valid": view.at.valid,
        "tx": view.at.tx,
        "since": moment(BEGINNING),
        "until": max(view.at.valid, view.at.tx) + timedelta(microseconds=1),
    }
    values = {
        **params,
        **{
            each: moment(view.instant_of(params[each], each))
            for each in _WINDOW
            if params.get(each) is not None
        },
    }
    missing = [each for each in takes if values.get(each) is None and each not in usual]
    if missing:
        raise InvalidError(f"{name} asks for {', '.join(missing)}. Give {missing[0]}=…: {recipe.doc}")
    wanted = {each: usual[each] if values.get(each) is None else values[each] for each in recipe.parameters}
    text = texts.text(name)
    return store.query_tables(text, **wanted) if recipe.tables else view.query(text, **wanted)
