// A thing: what it says and how it stands, its plane of both clocks, its links, what superseded it, what it rests on; and the search for one.

import { block, bytes, button, count, field, follow, h, json, line, nothing, period, prose, s, standing, thingLink, thingRow, time, when, words } from "./parts.js";

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
    el.append(h("p", { class: "refused", role: "alert" }, error.message), await plane(model, id).catch(() => null) ?? "");
    return;
  }
  const thing = found.thing;
  const compared = await both(model, thing).catch(() => null);
  el.append(head(model, found), thing.occurred_at ? "" : await plane(model, thing.id), h("div", { class: "columns" },
    block("What it says", json(thing.content ?? thing.metadata ?? {})),
    provenance(thing, found),
    succession(model, found),
    shaky(model, found.shaky),
    links(model, "Links from it", found.links, found.links_total, found.names, "target"),
    links(model, "Links to it", found.backlinks, found.backlinks_total, found.names, "source"),
    compared,
    await differences(model, thing)));
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
      why ? h("span", null, ` · ${why.how.replace("_", " ")}${why.who ? ` by ${line(why.who, 40)}` : ""}${why.why ? `: ${line(why.why, 200)}` : ""}`) : null,
      now.length ? h("span", null, " · now: ", now.slice(0, 3).map((each) => thingLink(model, each.id, words(each, 60)))) : null),
    h("p", { class: "actions" }, ["causes", "effects", "walk"].map((way) => h("a", { class: "button", href: model.address({ tab: "causes", id: thing.id, way }), onclick: (event) => follow(event, model, { tab: "causes", id: thing.id, way }) }, { causes: "What led to it", effects: "What it led to", walk: "All around it" }[way]))));
}

// ---- the plane

/** The plane: valid time to the right, transaction time up; a rectangle for each row, both cursors across. A click puts them there. */
async function plane(model, id) {
  const rows = (await model.call("versions", { id }, { at: false, brief: 100, part: -400, fields: "number,valid_from,valid_to,tx_from,tx_to,text,author,content" }));
  if (!rows.length) return null;
  const [width, height, left, low] = [900, 280, 10, 22];
  const axis = (from, to, here) => {
    const times = rows.flatMap((row) => [row[from], row[to]]).concat(here || [], new Date().toISOString()).filter(Boolean).map(Date.parse);
    const sorted = [...new Set(times)].sort((a, b) => a - b);
    const [first, last] = [sorted[0], sorted.at(-1)];
    const gap = (last - first) * 0.08 || 1000;
    // Half of the length is time, half is order: a burst of changes in a minute stays legible beside a year of rest.
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
  };
  const [valid, tx] = [axis("valid_from", "valid_to", model.get("valid")), axis("tx_from", "tx_to", model.get("tx"))];
  const x = (iso) => left + (width - left) * (iso ? valid.place(Date.parse(iso)) : 1);
  const y = (iso) => (height - low) * (1 - (iso ? tx.place(Date.parse(iso)) : 1));
  const rectangles = rows.map((row) => {
    const [a, b, c, d] = [x(row.valid_from), x(row.valid_to), y(row.tx_to), y(row.tx_from)];
    const label = `${row.number} · ${line(row.text || JSON.stringify(row.content ?? ""), 60)}`;
    const about = `version ${row.number}: ${when(row.valid_from)} – ${when(row.valid_to)}, believed ${when(row.tx_from)} – ${row.tx_to ? when(row.tx_to) : "now"}${row.author ? `, by ${line(row.author, 40)}` : ""}`;
    return s("g", { class: `row ${row.tx_to ? "unsaid" : ""}` }, s("title", null, about),
      s("rect", { x: a, y: c, width: Math.max(1.5, b - a), height: Math.max(1.5, d - c), class: `c${row.number % 6}` }),
      b - a > 26 && d - c > 12 ? s("text", { x: a + 4, y: c + 12 }, label.slice(0, Math.floor((b - a - 8) / 6.4))) : null);
  });
  const [nowX, nowY] = [x(model.get("valid") || new Date().toISOString()), y(model.get("tx") || new Date().toISOString())];
  const put = (event) => {
    const box = drawing.getBoundingClientRect();
    const [right, up] = [(event.clientX - box.left) / box.width, 1 - ((event.clientY - box.top) / box.height) * (height / (height - low))];
    const ms = tx.back(up);
    model.go({ valid: new Date(valid.back((right * width - left) / (width - left))).toISOString(), tx: ms >= Date.now() ? "" : new Date(ms).toISOString() });
  };
  const drawing = s("svg", { class: "plane", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${count(rows.length, "row")} over both clocks. Valid time to the right, transaction time up.`, onclick: put },
    s("rect", { class: "back", x: left, width: width - left, height: height - low }), rectangles,
    s("path", { class: "mark valid", d: `M${nowX},0V${height - low}` }), s("path", { class: "mark tx", d: `M${left},${nowY}H${width}` }),
    s("text", { class: "soft", x: left, y: height - 6 }, when(rows.reduce((least, row) => (row.valid_from < least ? row.valid_from : least), rows[0].valid_from))),
    s("text", { class: "soft", x: width - 2, y: height - 6, "text-anchor": "end" }, "true in the world →"),
    s("text", { class: "soft", x: left + 4, y: height - low - 6 }, "↑ recorded"));
  return block("Its plane", drawing, h("p", { class: "soft" }, `${count(rows.length, "row")}. A click puts both cursors there; pale rows are no longer believed.`));
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
