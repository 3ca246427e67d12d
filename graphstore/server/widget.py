"""Shows the page in a notebook: both cursors above a thing or its causes, drawn by the page's own modules. This process answers their calls.

It needs the extra `notebook`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anywidget
import orjson
import traitlets

from graphstore.errors import InvalidError
from graphstore.remote import calls as contract
from graphstore.remote import received
from graphstore.server.requests import JSON, apart
from graphstore.server.shortening import shortened
from graphstore.show import frame, page_modules
from graphstore.store.store import Store
from graphstore.values.period import TimeLike, instant, iso
from graphstore.view.view import Reader

__all__ = ["Page"]

_MODULES = ("parts", "causes", "model", "cursors", "thing")
# In a notebook the page is in a shadow root, which has no root element and no body.
_IN_SHADOW = {
    ':root:not([data-theme="light"])': ':host(:not([data-theme="light"]))',
    ':root[data-theme="dark"]': ':host([data-theme="dark"])',
    ":root": ":host",
    "\nbody {": "\n.page { max-height: 52rem; overflow: auto; resize: vertical;",
}


def _script() -> str:
    """Return the JavaScript module that a notebook loads."""
    page = [page_modules.PAGE / f"{name}.js" for name in _MODULES]
    own = Path(__file__).with_suffix(".js")
    modules = page_modules.script(*page, Path(frame.__file__).with_suffix(".js"), own)
    styles = page_modules.styles()
    for whole, shadow in _IN_SHADOW.items():
        styles = styles.replace(whole, shadow)
    return (
        f"{modules}const styles = {json.dumps(styles)};\n"
        "export default { render: ({ model, el }) => widget_js.mount(model, el, styles) };\n"
    )


class Page(anywidget.AnyWidget):
    """Shows both cursors, *true at* and *as known at*, above a thing or its causes, which follow them. It reads, and writes nothing.

    `valid` and `tx` are the positions of the cursors, in ISO 8601 and UTC; None is now. `id` is the thing, "" for none; `tab` is `thing` or `causes`.
    All
    four can be set and observed: `page.observe(function, "tx")`. An instant can be a datetime, `2026-02-17`, `7d`, or the name of a snapshot. `view` is
    the
    store at the cursors. Raises InvalidError for anything else as an instant, traitlets.TraitError for another tab.
    """

    _esm = _script()
    valid = traitlets.Any(None, allow_none=True).tag(sync=True)
    tx = traitlets.Any(None, allow_none=True).tag(sync=True)
    id = traitlets.Unicode("").tag(sync=True)
    tab = traitlets.Enum(("thing", "causes"), "thing").tag(sync=True)

    def __init__(
        self,
        store: Store,
        id: str = "",
        *,
        valid: TimeLike | None = None,
        tx: TimeLike | None = None,
        tab: str = "thing",
    ) -> None:
        self._store = store
        super().__init__(id=id, valid=valid, tx=tx, tab=tab)
        self.on_msg(self._asked)

    @property
    def view(self) -> Reader:
        """Return the view at the cursors: the store itself if both are at now."""
        if self.valid is None and self.tx is None:
            return self._store
        return self._store.as_of(valid=self.valid, tx=self.tx)

    def refresh(self) -> None:
        """Redraw the page, after something was written."""
        self.send({"written": True})

    @traitlets.validate("valid", "tx")
    def _instant(self, proposal: Any) -> str | None:
        given, axis = proposal["value"], proposal["trait"].name
        if given is None or given == "":
            return None
        return iso(instant(getattr(self._store.as_of(**{axis: given}).at, axis)))

    def _asked(self, _: Any, message: Any, __: Any) -> None:
        """Answer a call of the page."""
        try:
            status, body = 200, self._answer(message["name"], message["args"], message["query"])
        except Exception as error:
            status, said = contract.error_out(error)
            body = orjson.dumps(said)
        self.send({"id": message.get("id"), "status": status, "body": body.decode()})

    def _answer(self, name: str, args: dict[str, Any], query: str) -> bytes:
        call = contract.CALLS.get(name)
        if call is None or call.scope != "read" or call.files:
            raise InvalidError(f"a page in a notebook does not ask {name!r}: it asks for what is read.")
        asked = apart(query.encode())
        at = {axis: value for axis, value in (("valid", asked.valid), ("tx", asked.tx)) if value is not None}
        reader = self._store.as_of(**at) if at else self._store
        found = reader.at if name == "at" else contract.ask(name, reader, **received.prepare(call, args))
        return shortened(contract.encode(found), JSON, asked)
