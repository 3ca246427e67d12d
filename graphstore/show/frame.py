"""A whole graph in a frame of a notebook: the page's own drawing, to zoom, pan and fold, with all it needs packed into one attribute.

The frame loads nothing, and runs no script but two whose digests its policy names. It stays hidden until they have run.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from graphstore.show import page_modules
from graphstore.show.layout import layout
from graphstore.show.scenes import Arrow, Bar, Scene
from graphstore.values.period import instant, iso
from graphstore.values.text import line

MOST = 1_000
"""Things in a frame at most."""
FRAME = 50_000
"""Bytes that a frame takes at most: texts become shorter for it, then things fewer."""
_SIZES = ((MOST, 160), (MOST, 60), (500, 60), (200, 60), (200, 24), (100, 24), (50, 24))
_LOADER = """
(async () => {
  const packed = Uint8Array.from(atob(document.querySelector("pre").textContent), (each) => each.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const { code, css, found } = await new Response(unpacked).json();
  globalThis.graphstore = { css, found };
  const script = document.createElement("script");
  script.textContent = code;
  document.head.append(script);
})();
"""


def frame(shown: Scene) -> str:
    """The graph of a scene as an `<iframe>` of at most `FRAME` bytes; "" for a scene without one."""
    if not shown.edges:
        return ""
    text = ""
    for most, wide in _SIZES:
        text = _frame(_found(shown, most, wide), min(most, len(shown.boxes)))
        if len(text) <= FRAME:
            return text
    return ""


def _found(shown: Scene, most: int, wide: int) -> dict[str, Any]:
    boxes = shown.boxes[:most]
    starts = {each.name: instant(each.start) for each in boxes}
    edges = [each for each in shown.edges if each.tail in starts and each.head in starts]
    drawn = layout(starts, [(each.tail, each.head) for each in edges])
    return {
        "title": shown.title,
        "root": shown.root if shown.root in starts else boxes[0].name,
        "left_out": len(shown.boxes) - len(boxes) + max(shown.total - MOST, 0),
        "things": [_thing(each, wide) for each in boxes],
        "links": [_link(each, wide) for each in edges],
        "places": [each.model_dump() for each in drawn.places],
        "lanes": [each.model_dump() for each in drawn.lanes],
    }


def _thing(each: Bar, wide: int) -> dict[str, str]:
    kind, begins = ("type", "occurred_at") if each.happened else ("kind", "valid_from")
    return {
        "id": each.name, "text": line(each.words, wide), kind: line(each.kind, wide), "standing": each.standing,
        begins: iso(instant(each.start)),
    }  # fmt: skip


def _link(each: Arrow, wide: int) -> dict[str, str]:
    return {
        "source": each.tail, "target": each.head, "kind": line(each.label, wide), "reason": line(each.reason, wide),
        "manner": each.manner,
    }  # fmt: skip


@cache
def _code() -> str:
    page = page_modules.PAGE
    modules = page_modules.script(page / "parts.js", page / "causes.js", Path(__file__).with_name("frame.js"))
    return f"(() => {{\n{modules}frame_js.show(graphstore.found, graphstore.css);\n}})();"


@cache
def _policy() -> str:
    digests = " ".join(
        f"'sha256-{b64encode(sha256(each.encode()).digest()).decode()}'" for each in (_LOADER, _code())
    )
    return f"default-src 'none'; script-src {digests}"


def _frame(found: dict[str, Any], things: int) -> str:
    whole = json.dumps({"code": _code(), "css": page_modules.styles(), "found": found}, separators=(",", ":"))
    packed = b64encode(zlib.compress(whole.encode(), 9)).decode()
    document = (
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="content-security-policy" content="{_policy()}">'
        f"<pre hidden>{packed}</pre><script>{_LOADER}</script>"
    )
    return f'<iframe title="{things:,} things as a graph" srcdoc="{escape(document)}"></iframe>'
