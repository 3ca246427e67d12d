// A thing: what it says and how it stands, its plane of both clocks, its links, what superseded it, what it rests on; and the search for one.

import { block, button, count, field, fields, follow, h, json, line, medium, nothing, period, prose, s, standing, thingLink, thingRow, time, when, words } from "./parts.js";

const RESTS = ["derived_from", "caused_by"]; // and `supports`, the other way round

export async function render({ model, el }) {
  const id = model.get("id");
  el.append(search(model));
  if (!id) {
    const q = model.get("q");
    const found = q ? (await model.call("recall.recall", { text: q, k: 30 }, { brief: 400 })).hits ?? [] : null;
    const things = found ? found.map((hit) => hit.node ?? hit.thing ?? hit) : await model.call("page.latest", { limit: 30 }, { brief: 400 });
    el.append(block(q ? `Found for “${line(q, 60)}”` : "Recorded last", things.length ? h("ul", { class: "rows" }, things.map((each) => thingRow(model, each))) : nothing(q ? "Nothing here says that. The cursors may stand before it was known." : "Nothing stands at this coordinate.")));
    return;
  }
  let found;
  try {
    found = await model.call("page.glimpse", { id, limit: Number(model.get("links")) || 50 });
  } catch (error) {
    if (error.status !== 404) throw error;
    el.append(h("p", { class: "refused", role: "alert" }, error.message), ...(await history(model, id).catch(() => [])).filter(Boolean));
    return;
  }
  const thing = found.thing;
  const urls = [];
  const compared = await both(model, thing).catch(() => null);
  const [drawn, written] = thing.occurred_at ? [] : await history(model, thing.id);
  el.append(head(model, found), drawn ?? "", written || "", h("div", { class: "columns" },
    block("What it says", json(thing.content ?? thing.metadata ?? {})),
    thing.media_path || thing.media_hash ? block("Its medium", medium(model, thing, urls)) : "",
    rests(model, found),
    provenance(thing, found),
    succession(model, found),
    shaky(model, found.shaky),
    links(model, "Links from it", found.links, found.links_total, found.names, "target"),
    links(model, "Links to it", found.backlinks, found.backlinks_total, found.names, "source"),
    compared,
    await differences(model, thing)));
  return () => urls.forEach((each) => URL.revokeObjectURL(each));
}

function search(model) {
  const input = h("input", { name: "q", type: "search", value: model.get("q") || model.get("id"), placeholder: "Words, or an id", "aria-label": "Search things", autocomplete: "off" });
  const submit = async (event) => {
    event.preventDefault();
    const text = input.value.trim();
    const known = text && !text.includes(" ") ? await model.call("whole_id", { text }).catch(() => null) : null;
    const exact = known && (await model.call("page.glimpse", { id: known, limit: 1 }, { brief: 100 }).catch(() => null));
    model.go(exact ? { tab: "thing", id: known, q: "" } : { id: "", q: text });
  };
  return h("form", { class: "search", role: "search", onsubmit: submit }, input, button("Find", null, { type: "submit" }));
}

function head(model, found) {
  const thing = found.thing;
  const now = found.current.filter((each) => each.id !== thing.id);
  const why = found.steps[0];
  return h("header", { class: "thing-head" },
    h("p", { class: "soft" }, h("span", { class: "kind" }, line(thing.kind ?? thing.type, 40)), " ", h("code", null, line(thing.id, 80)), thing.number ? ` · version ${thing.number}` : ""),
    h("h2", { dir: "auto" }, words(thing, 400)),
    h("p", null, standing(thing.standing), " ", thing.occurred_at ? time(thing.occurred_at) : period(thing.valid_from, thing.valid_to),
      why ? h("span", null, ` · ${why.planned ? "planned: " : ""}${why.how.replace("_", " ")}${why.who ? ` by ${line(why.who, 40)}` : ""}${why.why ? `: ${line(why.why, 200)}` : ""}`) : null,
      now.length ? h("span", null, " · now: ", now.slice(0, 3).map((each) => thingLink(model, each.id, words(each, 60)))) : null),
    h("p", { class: "actions" }, ["causes", "effects", "walk"].map((way) => h("a", { class: "button", href: model.address({ tab: "causes", id: thing.id, way }), onclick: (event) => follow(event, model, { tab: "causes", id: thing.id, way }) }, { causes: "What led to it", effects: "What it led to", walk: "All around it" }[way]))));
}

// ---- the plane

const SHOWN = 400; // rows at most, those recorded last
const [HEIGHT, LEFT, LOW] = [300, 72, 34];

/** Its rows over both clocks, and as a list that says who wrote each and why. */
async function history(model, id) {
  const rows = await model.call("versions", { id }, { at: false, brief: 100, part: -SHOWN, fields: "number,valid_from,valid_to,tx_from,tx_to,text,author,recorded_at,content" });
  if (!rows.length) return [];
  const gone = await model.call("what_superseded", { id: `${id}-v1` }, { at: false, brief: 300, fields: "chain,why,recorded_at" }).catch(() => ({ chain: [] }));
  const why = new Map(gone.chain.filter((each) => each.why).map((each) => [each.recorded_at, each.why]));
  const much = rows.length > 12;
  const table = h("table", { class: "history" },
    h("tr", null, ["version", "it says", "true", "believed", "by", "why"].map((name) => h("th", null, name))),
    [...rows].reverse().map((row) => h("tr", { class: row.tx_to ? "unsaid" : "" },
      h("td", null, button(`v${row.number}`, () => model.go({ valid: row.valid_from, tx: row.tx_from }), { class: "quiet", name: `row-${row.tx_from}-${row.valid_from}`, title: "Put both cursors where this begins" })),
      h("td", { dir: "auto" }, line(row.text || fields(row.content), 80), changed(rows, row)), h("td", null, period(row.valid_from, row.valid_to)), h("td", null, period(row.tx_from, row.tx_to)),
      h("td", null, line(row.author ?? "", 40)), h("td", { dir: "auto" }, line(why.get(row.recorded_at) ?? "", 160)))));
  return [plane(model, rows), rows.length > 1 && block(`Its history (${rows.length < SHOWN ? rows.length : `the last ${SHOWN} rows`})`, much ? h("details", null, h("summary", null, "every row, recorded last first"), table) : table)];
}

/** The fields of the content that a row changed, of one whose text does not say them. */
function changed(rows, row) {
  const before = rows.filter((each) => each.number < row.number).reduce((last, each) => (each.number >= (last?.number ?? 0) ? each : last), null);
  const names = before && row.text ? Object.keys({ ...before.content, ...row.content }).filter((name) => row.content?.[name] !== row.text && JSON.stringify(before.content?.[name]) !== JSON.stringify(row.content?.[name])) : [];
  return names.length ? h("div", { class: "soft" }, line(names.map((name) => `${name}: ${before.content[name] ?? "–"} → ${row.content[name] ?? "–"}`).join(", "), 160)) : null;
}

/** A clock of the plane. Half of its length is time, half is order: a burst of changes in a minute stays legible beside a year of rest. */
function clock(instants) {
  const sorted = [...new Set(instants.filter(Boolean).map(Date.parse))].sort((a, b) => a - b);
  const [first, last] = [sorted[0], sorted.at(-1)];
  const gap = (last - first) * 0.08 || 1000;
  const place = (ms) => {
    const at = sorted.findIndex((each) => each >= ms);
    const [a, b] = [sorted[Math.max(0, at - 1)], sorted[at < 0 ? sorted.length - 1 : at]];
    const rank = at < 0 ? sorted.length : at === 0 ? 0 : at - 1 + (ms - a) / (b - a || 1);
    return 0.5 * Math.min(1, (ms - first + gap / 2) / (last - first + gap)) + 0.5 * (rank / Math.max(1, sorted.length));
  };
  const back = (share) => {
    let [a, b] = [first - gap, last + gap];
    for (let step = 0; step < 50; step++) place((a + b) / 2) < share ? (a = (a + b) / 2) : (b = (a + b) / 2);
    return a;
  };
  return { place, back };
}

/** Instants that can be written along a clock without touching, those given first before the others: [place, text]. */
function ticks(instants, at, room) {
  const found = [];
  for (const iso of instants.filter(Boolean)) {
    const place = at(iso);
    if (found.every(([other]) => Math.abs(other - place) >= room)) found.push([place, iso]);
  }
  let day = "";
  return found.sort((a, b) => Date.parse(a[1]) - Date.parse(b[1])).map(([place, iso]) => {
    const [date, time = ""] = when(iso).split(" ");
    const text = date === day && time ? time : date;
    day = date;
    return [place, text];
  });
}

/** The plane: valid time to the right, transaction time up; a rectangle for each row, both cursors across. A click puts them there; so does Enter on a row. */
function plane(model, rows) {
  const width = Math.max(300, Math.min(1240, (document.getElementById("main")?.clientWidth ?? 934) - 74));
  const now = new Date().toISOString();
  const [here, known] = [model.get("valid") || now, model.get("tx") || now];
  const [validEnds, txEnds] = [["valid_from", "valid_to"], ["tx_from", "tx_to"]].map((ends) => rows.flatMap((row) => ends.map((end) => row[end])));
  const [valid, tx] = [clock([...validEnds, here, now]), clock([...txEnds, known, now])];
  const x = (iso) => LEFT + (width - LEFT) * (iso ? valid.place(Date.parse(iso)) : 1);
  const y = (iso) => (HEIGHT - LOW) * (1 - (iso ? tx.place(Date.parse(iso)) : 1));
  const labels = [];
  const rectangles = rows.map((row) => {
    const [a, b, c, d] = [x(row.valid_from), x(row.valid_to), y(row.tx_to), y(row.tx_from)];
    const room = Math.floor((b - a - 8) / 6.4); // letters
    const label = room < 9 ? String(row.number) : line(`${row.number} · ${row.text || fields(row.content)}`, Math.min(60, room));
    if (label.length <= room && d - c > 14) labels.push(s("text", { x: a + 5, y: c + 14, class: row.tx_to ? "soft" : "" }, label));
    const about = described(row);
    const shape = { x: a, y: c, width: Math.max(1.5, b - a), height: Math.max(1.5, d - c), class: `c${row.number % 6}` };
    return s("g", { class: `row ${row.tx_to ? "unsaid" : ""}`, role: "button", tabindex: -1, name: `plane-${row.tx_from}-${row.valid_from}`, "aria-label": about }, s("title", null, about), s("rect", shape));
  });
  const put = (event) => {
    const box = drawing.getBoundingClientRect();
    const [right, up] = [((event.clientX - box.left) / box.width) * width, 1 - ((event.clientY - box.top) / box.height) * (HEIGHT / (HEIGHT - LOW))];
    const ms = tx.back(up);
    model.go({ valid: new Date(valid.back((right - LEFT) / (width - LEFT))).toISOString(), tx: ms >= Date.now() ? "" : new Date(ms).toISOString() });
  };
  const drawing = s("svg", { class: "plane", viewBox: `0 0 ${width} ${HEIGHT}`, role: "group", "aria-label": `Its plane: ${count(rows.length, "row")} over both clocks, valid time to the right, transaction time up`, onclick: put },
    s("rect", { class: "back", x: LEFT, width: width - LEFT, height: HEIGHT - LOW }), rectangles,
    s("path", { class: "mark valid", d: `M${x(here)},0V${HEIGHT - LOW}` }), s("path", { class: "mark tx", d: `M${LEFT},${y(known)}H${width}` }), labels,
    ticks([model.get("valid"), ...validEnds], (iso) => Math.max(LEFT + 30, Math.min(width - 32, x(iso))), 76).map(([at, text]) => s("text", { class: "soft", x: at, y: HEIGHT - LOW + 14, "text-anchor": "middle" }, text)),
    ticks([model.get("tx"), ...txEnds], y, 13).map(([at, text]) => s("text", { class: "soft", x: LEFT - 5, y: Math.min(HEIGHT - LOW, Math.max(10, at + 4)), "text-anchor": "end" }, text)),
    s("text", { class: "soft", x: 0, y: HEIGHT - 4 }, "↑ recorded"), s("text", { class: "soft", x: width - 2, y: HEIGHT - 4, "text-anchor": "end" }, "true in the world →"));
  walked(model, drawing, rows, rectangles, [here, known]);
  return block("Its plane", drawing, h("p", { class: "soft" }, `${rows.length < SHOWN ? count(rows.length, "row") : `The last ${SHOWN} rows`}. A click puts both cursors there, as Enter does on a row that the arrow keys lead to; pale rows are no longer believed.`));
}

/** A row in a sentence. */
function described(row) {
  const says = line(row.text || fields(row.content), 80);
  const believed = `believed ${when(row.tx_from)} – ${row.tx_to ? when(row.tx_to) : "now"}`;
  return `version ${row.number}${says && `, ${says}`}: true ${when(row.valid_from)} – ${when(row.valid_to)}, ${believed}${row.author ? `, by ${line(row.author, 40)}` : ""}`;
}

/** The plane by keyboard: Tab comes to the row under the cursors, arrows lead along either clock, Enter puts both cursors where the row begins. */
function walked(model, drawing, rows, shapes, [here, known]) {
  const ms = rows.map((row) => [row.valid_from, row.tx_from].map((iso) => Date.parse(iso)));
  const within = (from, iso, to) => Date.parse(from) <= Date.parse(iso) && (!to || Date.parse(iso) < Date.parse(to));
  const start = rows.findLastIndex((row) => within(row.valid_from, here, row.valid_to) && within(row.tx_from, known, row.tx_to));
  let at = start < 0 ? rows.length - 1 : start;
  const turn = (to) => {
    shapes[at].setAttribute("tabindex", -1);
    shapes[(at = to)].setAttribute("tabindex", 0);
  };
  const orders = [[0, 1], [1, 0]].map(([first, then]) => rows.map((_, row) => row).sort((a, b) => ms[a][first] - ms[b][first] || ms[a][then] - ms[b][then]));
  turn(at);
  shapes.forEach((shape, row) => shape.addEventListener("focus", () => turn(row)));
  drawing.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [axis, by] = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 1], ArrowDown: [1, -1], Home: [1, -rows.length], End: [1, rows.length] }[event.key] ?? [];
    if (by) shapes[orders[axis][Math.max(0, Math.min(rows.length - 1, orders[axis].indexOf(at) + by))]].focus();
    else if (event.key === "Enter" || event.key === " ") model.go({ valid: rows[at].valid_from, tx: rows[at].tx_from });
    else return;
    event.preventDefault();
  });
}

// ---- what is around it

function provenance(thing, found) {
  const rows = [["author", thing.author], ["source", thing.source], ["why written", thing.trigger], ["scope", thing.scope], ["key", thing.key], ["tags", thing.tags?.join(", ")], ["status", thing.status], ["happened", thing.count > 1 ? `${thing.count} times, last ${when(thing.last_seen)}` : null], ["sender", thing.sender_name ?? thing.sender], ["thread", thing.thread], ["trace", thing.trace_id], ["recorded", when(thing.recorded_at)], ["confirmed", found.confirmations ? count(found.confirmations, "time") : null]];
  return block("Who says so", h("dl", { class: "json" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", null, name), h("dd", { dir: "auto" }, line(value, 300))])));
}

function succession(model, found) {
  return block("What superseded it", found.steps.length ? h("ol", { class: "steps" }, found.steps.map((step) => h("li", null, h("b", null, step.how.replace("_", " ")), " ", step.node ? thingLink(model, step.node.id, words(step.node, 100)) : "nothing took its place",
    h("div", { class: "soft" }, [step.since && `from ${when(step.since)}`, step.who && `by ${line(step.who, 40)}`, `recorded ${when(step.recorded_at)}`].filter(Boolean).join(" · ")), step.why ? h("div", { dir: "auto" }, `“${line(step.why, 300)}”`) : null))) : null);
}

function shaky(model, found) {
  return found && block("Why it is shaky", h("p", null, "It rests on ", thingLink(model, found.root.id, words(found.root, 100)), " ", standing(found.root.standing), found.why ? `: ${line(found.why, 200)}` : ""),
    h("ol", { class: "steps" }, [...found.links].map((link) => h("li", null, thingLink(model, link.source), ` ${link.kind} `, thingLink(model, link.target), link.reason ? ` – ${line(link.reason, 160)}` : ""))));
}

/** What it rests on, and what rests on it: the links that carry a fall. */
function rests(model, found) {
  const one = (link, end) => h("li", { class: "row" }, thingLink(model, link[end], found.names[link[end]] || link[end]), standing(link[`${end}_standing`]));
  const below = [...found.links.filter((each) => RESTS.includes(each.kind)).map((each) => one(each, "target")), ...found.backlinks.filter((each) => each.kind === "supports").map((each) => one(each, "source"))];
  const above = [...found.backlinks.filter((each) => RESTS.includes(each.kind)).map((each) => one(each, "source")), ...found.links.filter((each) => each.kind === "supports").map((each) => one(each, "target"))];
  return below.length || above.length ? block("Rests", ...[["It rests on", below], ["On it rests", above]].map(([label, all]) => [h("p", { class: "soft" }, all.length ? label : `${label} nothing.`), h("ul", { class: "rows" }, all)])) : null;
}

function links(model, title, found, total, names, end) {
  return block(`${title} (${total.toLocaleString("en")})`, found.length ? h("ul", { class: "rows" }, found.map((link) => h("li", { class: "row" }, h("span", { class: "kind" }, line(link.kind, 40)), thingLink(model, link[end], names[link[end]] || link[end]), standing(link[`${end}_standing`]), link.confidence === "inferred" ? h("span", { class: "soft" }, "inferred") : null, link.reason ? h("span", { class: "soft", dir: "auto" }, line(link.reason, 160)) : null))) : null,
    total > found.length ? button(`${(total - found.length).toLocaleString("en")} more`, () => model.go({ links: Math.min(500, found.length + 150) })) : null);
}

/** The coordinate of the cursors beside now, field by field. */
async function both(model, thing) {
  if (model.isNow || thing.occurred_at) return null;
  const now = await model.call("inspect", { id: thing.id }, { at: false, brief: 600, fields: "node,content,number,standing,text" });
  return block("Here, and now", h("div", { class: "sides" }, [["here", thing], ["now", now.node]].map(([label, each]) => h("div", null, h("b", null, label), " ", standing(each.standing), ` version ${each.number}`, json(each.content ?? {})))));
}

async function differences(model, thing) {
  if (!(thing.number > 1)) return null;
  const numbers = Array.from({ length: thing.number }, (_, each) => each + 1).slice(-100);
  const pick = (name, chosen) => h("select", { name, onchange: (event) => model.go({ [name]: event.target.value }) }, numbers.map((each) => h("option", { value: each, selected: each === chosen }, `version ${each}`)));
  const [old, fresh] = [Number(model.get("old")) || thing.number - 1, Number(model.get("new")) || thing.number];
  const changes = await model.call("diff", { id: thing.id, old, new: fresh }, { brief: 600 }).catch((error) => error);
  return block("Between two versions", h("p", { class: "fields" }, field("from", pick("old", old)), field("to", pick("new", fresh))),
    changes instanceof Error ? nothing(changes.message) : changes.length ? h("table", null, h("tr", null, ["field", "before", "after"].map((name) => h("th", null, name))), changes.map((each) => h("tr", { class: each.type }, h("td", null, h("code", null, line(each.path, 80))), h("td", null, each.type === "added" ? "" : prose(typeof each.old === "string" ? each.old : JSON.stringify(each.old), 300)), h("td", null, each.type === "removed" ? "" : prose(typeof each.new === "string" ? each.new : JSON.stringify(each.new), 300))))) : nothing("They say the same."));
}
