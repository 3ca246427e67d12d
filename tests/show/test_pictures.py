"""What values show of themselves: pictures that are well-formed, bounded, escaped, and right about time."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.graph.result import Result
from graphstore.show.drawing import EDGE, LEFT, NAMES, RIGHT, ROW, TOP, Axis
from graphstore.show.pictures import LIMIT, ROWS
from graphstore.values.period import when
from graphstore.values.text import line
from tests.conftest import Clock, day

pytestmark = pytest.mark.in_process("draws without a server")

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    '<script>alert("1")</script> <img src=http://x.y/z onerror=x> ]]> --> "quoted" \'s\' & &lt; \n\r\t\x00\x1b[31m'
    " العربية \u202etxt\u202c \u2066x 👩‍💻🏳️‍🌈 `code` | * _ [a](http://x.y) ${x} ```\n```\n \ufffe #quot; \\ %%{init}%%"
)
TAGS = {"div", "iframe", "style", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}
TAGS |= {SVG + tag for tag in ("svg", "g", "path", "polygon", "circle", "text", "title")}
ATTRIBUTES = {
    "class", "d", "x", "y", "cx", "cy", "r", "width", "height", "viewBox", "role", "aria-label", "overflow", "points",
    "text-anchor", "transform", "title", "srcdoc",
}  # fmt: skip


def outage(store: GraphStore, clock: Clock, text: str = "{}") -> dict[str, Any]:
    """A deploy, what it led to, and a setting that was replaced, with every value that shows itself."""
    for id, type, at in (
        ("deploy", "deploy", "03-02"),
        ("slow", "regression", "03-03"),
        ("down", "error", "03-06"),
    ):
        store.record_event(type, text.format(id), id=id, occurred_at=f"2026-{at}")
    store.link("slow", "caused_by", "deploy", reason=text.format("the day after"), valid_from="2026-03-03")
    store.link("down", "caused_by", "slow", reason=text.format("it piled up"), valid_from="2026-03-06")
    store.add_node("setting", {"says": text.format("8")}, id="eight", valid_from="2026-03-01")
    before = store.as_of()
    clock.set("2026-03-12")
    store.add_node(
        "setting", {"says": text.format("40")}, id="forty", valid_from="2026-03-08", supersedes="eight",
        reason=text.format("8 were too few"),
    )  # fmt: skip
    store.revise("forty", {"says": text.format("40 at most")}, reason=text.format("said better"))
    store.end("forty", at="2026-03-11")
    return {
        "chain": store.effects("deploy"),
        "causes": store.causes("down"),
        "supersession": store.what_superseded("eight"),
        "versions": store.what_superseded("forty-v1"),
        "inspection": store.inspect("eight"),
        "event": store.inspect("slow"),
        "diff": before.compare(store.as_of(valid="2026-03-10")),
        "view": store.as_of(valid="2026-03-10"),
        "store": store,
        "query": store.query("MATCH (n) RETURN n.id, n AS node"),
    }


def large(store: GraphStore) -> dict[str, Any]:
    """A chain of 500, a thing with 300 links, all in hostile words."""
    before = store.as_of()
    with store.transaction():
        for number in range(500):
            at = day("2026-01-01") + timedelta(hours=number)
            store.add_node("step", {"n": number, "says": HOSTILE * 3}, id=f"c{number}", valid_from=at)
            if number:
                store.link(f"c{number}", "caused_by", f"c{number - 1}", reason=HOSTILE, valid_from=at)
        for number in range(2, 302):
            store.link("c0", ("uses", "part_of")[number % 2], f"c{number}", reason=HOSTILE)
    return {
        "chain": store.effects("c0", depth=600),
        "inspection": store.inspect("c0"),
        "diff": before.compare(store.as_of()),
        "view": store.as_of(),
        "store": store,
        "query": store.query("MATCH (n:Node) RETURN n"),
        "wide": Result(
            [f"<{n}>{HOSTILE}" for n in range(400)], [[HOSTILE] * 400] * 50, warnings=[HOSTILE] * 50
        ),
    }


def nothing(store: GraphStore) -> dict[str, Any]:
    """A store that knows one thing that says nothing, and values without anything in them."""
    empty = store.as_of()
    diff = empty.compare(empty)
    store.add_node("thing", {}, id="alone")
    return {
        "empty view": empty,
        "diff": diff,
        "chain": store.causes("alone"),
        "inspection": store.inspect("alone"),
        "supersession": store.what_superseded("alone"),
        "query": store.query("MATCH (n:Node {id: 'none'}) RETURN n.id"),
        "no columns": Result([], []),
    }


@pytest.fixture(scope="module")
def everything() -> dict[str, Any]:
    """Every value of every story, by the names of both."""
    stories = {
        "outage": lambda store, clock: outage(store, clock),
        "hostile": lambda store, clock: outage(store, clock, HOSTILE.replace("{", "{{").replace("}", "}}") + "{}"),
        "large": lambda store, clock: large(store),
        "nothing": lambda store, clock: nothing(store),
    }  # fmt: skip
    found = {}
    for name, told in stories.items():
        clock = Clock("2026-03-10")
        store = graphstore.open(":memory:", clock=clock)
        found.update({f"{name}: {what}": value for what, value in told(store, clock).items()})
    return found


@pytest.fixture
def told(store: GraphStore, clock: Clock) -> dict[str, Any]:
    clock.set("2026-03-10")
    return outage(store, clock)


def picture(value: Any) -> ET.Element:
    """The drawing in a value's HTML."""
    found = ET.fromstring(value._repr_html_()).find(SVG + "svg")
    assert found is not None
    return found


def titled(root: ET.Element, start: str) -> ET.Element:
    """The one group whose title begins so."""
    (found,) = [
        group for group in root.iter(SVG + "g") if (group.findtext(SVG + "title") or "").startswith(start)
    ]
    return found


def shape(root: ET.Element, start: str) -> list[float]:
    """The numbers of the first path of a group."""
    path = titled(root, start).find(SVG + "path")
    assert path is not None
    return [float(number) for number in re.findall(r"-?[\d.]+", path.attrib["d"])]


# ---------------------------------------------------------------- every picture of everything


def test_html_is_well_formed_and_has_only_harmless_elements_and_attributes(everything):
    for name, value in everything.items():
        for element in ET.fromstring(value._repr_html_()).iter():
            assert element.tag in TAGS, name
            assert set(element.attrib) <= ATTRIBUTES, name


def test_nothing_comes_from_elsewhere(everything):
    for name, value in everything.items():
        html = value._repr_html_()
        style = html[html.index("<style>") : html.index("</style>")]
        assert not re.search(r"url\(|@import|https?:|expression", style), name
        outside = re.sub(r">[^<]*<|(aria-label|srcdoc)=\"[^\"]*\"", "", html).replace(
            "http://www.w3.org/2000/svg", ""
        )
        assert not re.search(r"https?:|href|src=|javascript:|\son\w+=", outside), name


def test_nothing_is_longer_than_the_limit(everything):
    for name, value in everything.items():
        assert len(value._repr_html_().encode()) <= LIMIT, name
        assert len(value._repr_markdown_().encode()) <= LIMIT, name
        assert len(repr(value)) <= LIMIT, name
        assert len(repr(value).splitlines()) <= 2 * ROWS, name


def test_text_is_shown_as_it_is_without_what_disturbs_its_neighbours(everything):
    text = "".join(picture(everything["hostile: chain"]).itertext())

    assert '<script>alert("1")</script>' in text
    assert "\x00" not in text
    assert not set("\u202e\u202c\u2066\ufffe\x1b") & set(text)


def test_markdown_holds_no_html_and_no_markup_of_the_text(everything):
    for name, value in everything.items():
        markdown = value._repr_markdown_()
        assert not re.search(r"<(?!br/>)", markdown), name
        assert markdown.count("```") in (0, 2), name
        assert "](" not in markdown.replace("\\]\\(", ""), name


def test_every_line_of_a_mermaid_graph_is_a_box_an_arrow_or_a_class(everything):
    allowed = re.compile(
        r'flowchart LR|  n\d+\["[^"\[\]{}()|`<>]*(<br/>[^"\[\]{}()|`<>]*)*"\]|  n\d+ -\.?->\|"[^"\[\]{}()|`<>]*"\| n\d+'
        r"|  class n\d+(,n\d+)* pale|  classDef pale fill-opacity:0\.4,stroke-dasharray:4 3"
    )
    graphs = 0
    for value in everything.values():
        for graph in re.findall(r"```mermaid\n(.*?)\n```", value._repr_markdown_(), re.DOTALL):
            graphs += 1
            assert [] == [each for each in graph.split("\n") if not allowed.fullmatch(each)]
    assert graphs >= 10


def test_every_row_of_a_markdown_table_has_as_many_cells_as_its_head(everything):
    for name, value in everything.items():
        for table in re.findall(r"(?:^\|.*\n?)+", value._repr_markdown_(), re.MULTILINE):
            rows = table.strip().split("\n")
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1, name


def test_names_stay_in_their_column_and_time_out_of_it(everything):
    for name in (name for name, value in everything.items() if "<svg" in value._repr_html_()):
        root = picture(everything[name])
        columns = root.findall(SVG + "svg")
        assert {(column.attrib["width"], column.attrib["overflow"]) for column in columns} == {
            (str(NAMES), "hidden")
        }, name
        places = [float(text.attrib["x"]) for text in root.findall(SVG + "text")]
        assert all(LEFT <= x <= RIGHT for x in places), name
        for group in root.findall(SVG + "g"):
            for path in group.findall(SVG + "path"):
                first = float(re.findall(r"M(-?[\d.]+)", path.attrib["d"])[0])
                assert "transform" in group.attrib or first > NAMES, name


# ---------------------------------------------------------------- the figures are right


def test_places_are_in_proportion_to_time():
    days = [day(f"2026-01-{number:02}") for number in (1, 2, 5, 11)]
    axis = Axis(days)

    assert [LEFT, LEFT + 0.1 * (RIGHT - LEFT), LEFT + 0.4 * (RIGHT - LEFT), RIGHT] == pytest.approx(
        [axis.x(at) for at in days], abs=0.1
    )
    assert axis.breaks() == []


def test_a_gap_that_would_hide_the_rest_is_broken_and_order_is_kept():
    days = [day("2020-01-01"), *(day("2026-01-01") + timedelta(minutes=number) for number in range(4))]
    axis = Axis(days)
    places = [axis.x(at) for at in days]

    assert len(axis.breaks()) == 1
    assert places == sorted(places)
    assert min(later - earlier for earlier, later in pairwise(places)) > 8


def test_recording_later_than_everything_leaves_the_valid_times_apart():
    days = [day("2026-01-01") + timedelta(minutes=number) for number in range(3)]
    axis = Axis(days, [day("2026-06-01"), day("2026-06-01") + timedelta(milliseconds=1)])

    assert axis.x(days[2]) - axis.x(days[1]) > 100


def test_an_event_is_drawn_at_its_instant_and_its_pin_where_it_was_recorded(told):
    root = picture(told["chain"])
    # 2, 3 and 6 March, recorded on the 10th: an axis of eight days
    a_day = (RIGHT - LEFT) / 8

    left_corners = [shape(root, id)[0] + 7 for id in ("deploy ·", "slow ·", "down ·")]
    assert left_corners == pytest.approx([LEFT, LEFT + a_day, LEFT + 4 * a_day], abs=0.2)
    pins = [group for group in root.iter(SVG + "g") if group.attrib.get("class") == "told"][:3]
    assert {float(pin.find(SVG + "circle").attrib["cx"]) for pin in pins} == {RIGHT}


def test_a_replaced_thing_is_pale_and_ends_where_the_next_begins(told):
    root = picture(told["supersession"])
    old, new = shape(root, "8 ·"), shape(root, "40 at most ·")

    assert "pale" in titled(root, "8 ·").attrib["class"]
    assert old[2] == new[0] != EDGE
    # both rows lie between 1 March (LEFT) and 12 March (RIGHT, when the last was recorded); it was replaced on the 8th
    assert new[0] == pytest.approx(LEFT + (RIGHT - LEFT) * 7 / 11, abs=0.2)


def test_an_open_end_points_to_the_edge_and_a_closed_one_does_not(store):
    store.add_node("thing", {"says": "open"}, id="a", valid_from="2026-01-01")
    store.add_node("thing", {"says": "closed"}, id="b", valid_from="2026-01-01", valid_to="2026-03-01")
    root = picture(store.as_of())

    assert EDGE in shape(root, "open ·")
    assert EDGE not in shape(root, "closed ·")
    assert RIGHT in shape(root, "closed ·")


def test_an_arrow_runs_from_the_row_of_the_cause_to_that_of_the_effect_with_its_reason(told):
    root = picture(told["chain"])
    group = titled(root, "down caused_by slow: it piled up")
    head = re.findall(r"[\d.]+", group.find(SVG + "polygon").attrib["points"])

    middle = [TOP + ROW * row + ROW / 2 for row in range(3)]
    assert group.attrib["class"] == "a cause"
    assert shape(root, "down caused_by slow")[1] == middle[1] + 8
    assert float(head[1]) == middle[2]
    assert float(head[0]) == pytest.approx(shape(root, "down ·")[0] - 2, abs=0.2)


def test_a_replacement_has_its_own_manner_of_arrow(told):
    assert (
        titled(picture(told["supersession"]), "forty supersedes eight: 8 were too few").attrib["class"]
        == "a succession"
    )


def test_a_newer_version_is_a_row_of_its_own(told):
    assert told["versions"].chain[0].how == "revised"
    assert titled(picture(told["versions"]), "forty-v1 revised as forty-v2: said better") is not None


def test_what_was_not_believed_any_more_is_not_drawn_as_if_it_held(told):
    assert "as believed until" not in repr(told["supersession"])
    assert "2026-03-01 → 2026-03-08" in repr(told["supersession"])


def test_repeats_of_an_event_are_a_line_to_the_last(store):
    store.record_event("error", "disk full", id="full", occurred_at="2026-01-01")
    store.record_event("error", "disk full", occurred_at="2026-01-15")
    root = picture(store.inspect("full"))

    line_to_last = shape(root, "disk full · 2026-01-01 → 2026-01-15")
    assert line_to_last[0] == LEFT
    assert line_to_last[2] == pytest.approx(LEFT + (RIGHT - LEFT) * 14 / 31, abs=0.2)


def test_what_is_left_out_is_counted(everything):
    chain = everything["large: chain"]
    html = chain._repr_html_()
    rows = len(picture(chain).findall(SVG + "svg"))

    assert rows <= ROWS
    assert f"… {500 - rows:,} more not shown in the picture" in html
    assert "… 488 more" in repr(chain)
    assert "of 301 links" in everything["large: inspection"]._repr_html_()
    assert "columns" in everything["large: wide"]._repr_html_()


def test_a_chain_that_goes_on_beyond_its_depth_says_so(store):
    for number in range(3):
        store.record_event("deploy", "again", id=f"d{number}", occurred_at=f"2026-01-0{number + 1}")
    for number in range(2):
        store.link(f"d{number + 1}", "caused_by", f"d{number}", valid_from="2026-01-05")

    assert "The depth asked for ends before the chain does." in repr(store.effects("d0", depth=1))
    assert "The depth" not in repr(store.effects("d0", depth=2))


# ---------------------------------------------------------------- text


def test_a_chain_in_a_terminal_is_a_headline_and_its_rows_in_time(told):
    assert repr(told["causes"]).splitlines() == [
        "<Chain from down (down): 2 things reached by 2 links>",
        "  2026-03-02  deploy      deploy [deploy]  stands  2026-03-10",
        "  2026-03-03  regression  slow [slow]      stands  2026-03-10",
        "  2026-03-06  error       down [down]      stands  2026-03-10",
    ]


def test_a_diff_says_what_differs(store):
    store.add_node("setting", {"size": 8}, id="pool", valid_from="2026-01-01")
    before = store.as_of()
    store.revise("pool", {"size": 40})

    assert repr(before.compare(store.as_of())).splitlines()[0] == "<ViewDiff: 1 changed>"
    assert "size: 8 → 40" in repr(before.compare(store.as_of()))


def test_the_sentence_of_a_supersession_stays_its_text(told):
    assert str(told["supersession"]).startswith("eight was superseded by forty since 2026-03-08")


def test_a_closed_store_shows_that_it_is(clock):
    with graphstore.open(":memory:", clock=clock) as store:
        view = store.as_of()

    assert "closed" in store._repr_html_()
    assert "View" in view._repr_html_()


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("short", 10, "short"),
        ("exactly ten", 11, "exactly ten"),
        ("a long sentence", 7, "a long…"),
        ("one\r\n two\tthree", 20, "one two three"),
        ("日本語日本語", 7, "日本語…"),
        ("e\u0301" * 5, 5, "e\u0301" * 5),
        ("a" + "\u0301" * 1000, 5, "a" + "\u0301" * 19 + "…"),
        ("👩‍💻" * 3, 20, "👩‍💻" * 3),
        ("\u202eabc\u202c", 10, "abc"),
        ("\ud800", 10, "�"),
        ("", 10, ""),
        ("x" * 1_000_000, 4, "xxx…"),
    ],
)
def test_a_line_is_cut_by_columns(text, most, shown):
    assert line(text, most) == shown


def test_an_instant_is_said_in_the_fewest_words():
    at = datetime.fromisoformat
    assert [
        when(at(text)) for text in ("2026-01-02T00:00Z", "2026-01-02T03:04+01:00", "2026-01-02T03:04:05Z")
    ] == [
        "2026-01-02",
        "2026-01-02 02:04Z",
        "2026-01-02 03:04:05Z",
    ]


# ---------------------------------------------------------------- beside


def test_reading_loads_nothing_that_draws():
    code = (
        "import sys, graphstore\n"
        "store = graphstore.open(':memory:')\n"
        "store.add_node('thing', {}, id='a'); store.inspect('a'); store.causes('a'); store.what_superseded('a')\n"
        "print([name for name in ('pictures', 'drawing', 'scenes', 'wording') if 'graphstore.' + name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "[]"


def test_networkx_keeps_periods_and_reasons(told):
    graph = told["view"].to_networkx()
    ((_, _, link),) = graph.out_edges("slow", data=True)

    assert (link["kind"], link["reason"]) == ("caused_by", "the day after")
    assert (link["valid_from"], link["valid_to"], link["tx_from"].date()) == (
        day("2026-03-03"),
        None,
        day("2026-03-10").date(),
    )
    assert graph.nodes["forty"]["valid_from"] == day("2026-03-08")
    assert graph.nodes["eight"]["standing"] == "superseded"
    assert graph.nodes["slow"]["occurred_at"] == day("2026-03-03")


def test_a_picture_is_saved_whole(store, tmp_path):
    for number in range(200):
        store.add_node(
            "fact",
            {"says": f"step {number} <b>"},
            id=f"n{number}",
            valid_from=f"2026-01-01T{number // 60:02}:{number % 60:02}:00Z",
        )
        if number:
            store.link(f"n{number}", "caused_by", f"n{number - 1}", reason="then")
    chain = store.causes("n199", depth=300)
    chain.save(tmp_path / "chain.svg")
    chain.save(tmp_path / "chain.html")

    drawn = ET.parse(tmp_path / "chain.svg").getroot()
    assert 200 == len(drawn.findall(f".//{SVG}g[@class='n']")) - len(
        drawn.findall(f".//{SVG}g[@class='n']/..[@transform]")
    )
    assert 199 == len(drawn.findall(f".//{SVG}g[@class='a cause']")) - 1  # and one in the legend
    page = (tmp_path / "chain.html").read_text(encoding="utf-8")
    assert page.count("<tr>") >= 200 + 199
    assert "<b>" not in page.replace("&lt;b&gt;", "")
    assert len(chain._repr_html_().encode()) <= LIMIT
    with pytest.raises(graphstore.InvalidError, match="ending"):
        chain.save(tmp_path / "chain.png")


def test_a_notebook_has_its_own_theme(told):
    html = told["chain"]._repr_html_()
    assert "[data-jp-theme-light=false] .graphstore,.vscode-dark .graphstore{--ink:#e6edf3" in html
    assert "@LIGHT" not in html and "@DARK" not in html


def test_nodes_and_links_of_an_answer_are_a_drawing(store):
    store.add_node("fact", {}, id="a", text="A is so", valid_from="2026-01-01")
    store.add_node("fact", {}, id="b", text="B is so", valid_from="2026-01-10")
    store.link("b", "derived_from", "a", reason="as A says")
    store.record_event("deploy", "v1", id="c", occurred_at="2026-01-20")
    store.link("c", "caused_by", "b")

    for text in ("MATCH (x)-[l]->(y) RETURN x, l, y", "MATCH p = (x)-[l]->(y) RETURN p"):
        drawn = ET.fromstring(store.query(text)._repr_html_())
        picture = next(each for each in drawn.iter() if each.tag.endswith("svg"))
        words = " ".join(picture.itertext())
        for said in ("A is so", "B is so", "v1", "as A says"):
            assert said in words
    assert "<svg" not in store.query("MATCH (x) RETURN x.id")._repr_html_()
    found = store.query("MATCH (x)-[l:DERIVED_FROM]->(y) RETURN l, y").legible()
    assert ["a"] == [row["y"]["id"] for row in found if "_source" not in row["l"]]
    both = store.query("MATCH (x)-[l]->(y) RETURN x, l, y").legible()
    assert {("b", "a"), ("c", "b")} == {(row["l"]["_source"], row["l"]["_target"]) for row in both}
