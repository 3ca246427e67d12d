// Ask: Cypher with completion, as of the cursors; the recipes of the package with their parameters as fields; the answer as a table, or as a graph.

import { block, button, count, field, h, hue, length, line, nothing, prose, s, thingLink, when } from "./parts.js";
import { draw } from "./causes.js";

const KEYWORDS = "MATCH OPTIONAL WHERE RETURN ORDER BY LIMIT SKIP WITH UNWIND AS DISTINCT AND OR NOT IN CONTAINS STARTS ENDS IS NULL CASE WHEN THEN ELSE END DESC count( collect( sum( min( max( avg( labels( label( AS_OF( BELIEVED( HOLDS(".split(" ");
const FIRST = "MATCH (a:Node)-[l]->(b:Node) RETURN a, l, b LIMIT 25";
const AXES = ["valid", "tx"];
const DRAWN = 200; // things

export async function render({ model, el }) {
  const [recipes, kinds, latest] = await Promise.all([model.call("recipes", {}, { at: false }), model.call("vocabulary", {}, { at: false }), model.call("page.latest", { limit: 50 }, { at: false, brief: 100 }).catch(() => [])]);
  const chosen = recipes.find((each) => each.name === model.get("recipe"));
  const area = h("textarea", { name: "cypher", rows: Math.min(14, Math.max(4, (chosen?.text ?? model.get("cypher")).split("\n").length + 1)), spellcheck: "false", "aria-label": "Cypher", autocomplete: "off" });
  area.value = model.get("cypher") || chosen?.text || FIRST;
  const menu = h("ul", { class: "menu", role: "listbox", hidden: true });
  const names = [...KEYWORDS, ...kinds.map((each) => each.name.toUpperCase()), ..."Node Event Version Link id kind text tags valid_from valid_to tx_from tx_to author reason content number ref type description occurred_at standing".split(" "), ...latest.flatMap((each) => Object.keys(each.content ?? {}).filter((name) => /^\w+$/.test(name)))];
  complete(area, menu, names);
  const pick = h("select", { name: "recipe", onchange: () => model.go({ recipe: pick.value, cypher: "", run: "" }) }, h("option", { value: "" }, "a text of one's own"), recipes.map((each) => h("option", { value: each.name, selected: each === chosen }, each.name.replaceAll("_", " "))));
  const whole = h("input", { type: "checkbox", name: "whole", checked: chosen ? chosen.tables : model.get("over") === "tables" });
  const wanted = chosen ? chosen.parameters : [...new Set([...area.value.matchAll(/\$(\w+)/g)].map((each) => each[1]))];
  const inputs = wanted.filter((name) => !(AXES.includes(name) && whole.checked)).map((name) => [name, h("input", { name: `p-${name}`, value: model.get(`p-${name}`) || suggested(name) })]);
  const run = () => {
    const changes = { cypher: area.value === chosen?.text ? "" : area.value, run: "1", over: whole.checked && !chosen ? "tables" : "" };
    for (const [name, input] of inputs) changes[`p-${name}`] = input.value;
    if (model.get("run") && Object.entries(changes).every(([name, value]) => model.get(name) === value)) model.tell("change");
    else model.go(changes);
  };
  area.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && (event.preventDefault(), run()));
  el.append(h("form", { class: "ask block", onsubmit: (event) => (event.preventDefault(), run()) },
    h("div", { class: "fields" }, field("recipe", pick), inputs.map(([name, input]) => field(name, input)), h("label", null, whole, " over the whole history"), button("Ask", null, { type: "submit", class: "main", title: "Ctrl+Enter" })),
    chosen ? h("p", { class: "soft" }, chosen.doc) : null, h("div", { class: "area" }, area, menu)));
  if (!model.get("run")) return undefined;
  const parameters = Object.fromEntries(inputs.filter(([, input]) => input.value).map(([name, input]) => [name, valueOf(input.value)]));
  const began = performance.now();
  const stop = stoppable(model);
  try {
    const found = await ask(model, area.value === chosen?.text ? chosen : null, area.value, parameters, whole.checked, wanted, stop.signal);
    const shown = answer(model, found, performance.now() - began);
    el.append(shown);
    return await drawn(model, shown, found.rows.slice(0, 500));
  } catch (error) {
    const stopped = error.name === "AbortError";
    el.append(h("p", { class: "refused", role: "alert" }, stopped ? `Stopped after ${length((performance.now() - began) / 1000)}.` : error.message));
    return undefined;
  } finally {
    stop.end();
  }
}

const PATIENCE = 400; // milliseconds that a question runs before it is offered to stop it

/** What stops a question: its button, shown when the answer takes long; Esc; and any other state of the page. The server ends the query of a client that hangs up. */
function stoppable(model) {
  const running = new AbortController();
  const stop = () => running.abort();
  const bar = h("p", { class: "running", role: "status" }, "The question runs. ", button("Stop", stop, { class: "main", name: "stop", title: "Esc" }));
  const shown = setTimeout(() => document.getElementById("main")?.prepend(bar), PATIENCE);
  for (const event of ["escape", "change"]) model.on(event, stop);
  const end = () => {
    clearTimeout(shown);
    bar.remove();
    for (const event of ["escape", "change"]) model.off(event, stop);
  };
  return { signal: running.signal, end };
}

/** A recipe is asked by its name. Over the tables the coordinate goes in as parameters; over a view the view is it. */
async function ask(model, recipe, cypher, parameters, whole, wanted, signal) {
  const at = Object.fromEntries(AXES.filter((axis) => model.get(axis)).map((axis) => [axis, model.get(axis)]));
  if (recipe) return model.call("recipe", { name: recipe.name, ...at, params: parameters }, { at: false, brief: 300, signal });
  if (!whole) return model.call("query", { cypher, params: parameters }, { brief: 300, signal });
  const now = new Date().toISOString();
  for (const axis of AXES) if (wanted.includes(axis)) parameters[axis] ||= model.get(axis) || now;
  return model.call("query_tables", { cypher, params: parameters }, { at: false, brief: 300, signal });
}

/** A number, a list, an object, true or false; anything else is text. */
function valueOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const suggested = (name) => ({ since: new Date(Date.now() - 30 * 864e5).toISOString().slice(0, 10), until: new Date(Date.now() + 864e5).toISOString().slice(0, 10), depth: "5", k: "10" })[name] ?? "";

/** Words that go on with what is typed: Tab takes the first, arrows choose. */
function complete(area, menu, names) {
  let at = 0;
  const typed = () => /[A-Za-z_]{2,}$/.exec(area.value.slice(0, area.selectionStart))?.[0] ?? "";
  const take = (name) => {
    area.setRangeText(name, area.selectionStart - typed().length, area.selectionStart, "end");
    menu.hidden = true;
    area.focus();
  };
  const offer = () => {
    const begun = typed();
    const found = begun ? [...new Set(names.filter((each) => each.toLowerCase().startsWith(begun.toLowerCase()) && each !== begun))].slice(0, 8) : [];
    menu.hidden = !found.length;
    at = 0;
    menu.replaceChildren(...found.map((each, place) => h("li", { role: "option", "aria-selected": String(place === at), onpointerdown: (event) => (event.preventDefault(), take(each)) }, each)));
  };
  area.addEventListener("input", offer);
  area.addEventListener("blur", () => (menu.hidden = true));
  area.addEventListener("keydown", (event) => {
    if (menu.hidden) return;
    const all = [...menu.children];
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) at = (at + by + all.length) % all.length;
    else if (event.key === "Tab") take(all[at].textContent);
    else if (event.key === "Escape") menu.hidden = true;
    else return;
    all.forEach((each, place) => each.setAttribute("aria-selected", String(place === at)));
    event.preventDefault();
    event.stopPropagation();
  });
}

const isLink = (value) => value?._label !== undefined && "confidence" in value;
const isNode = (value) => value?._label !== undefined && "id" in value && !isLink(value);

function answer(model, found, took) {
  const said = `${count(found.rows.length, "row")} in ${took.toFixed(0)} ms`;
  if (!found.rows.length) return block(said, nothing("No rows."), found.warnings.map((each) => h("p", { class: "soft" }, each)));
  const shown = found.rows.slice(0, 500);
  const over = stretches(found.columns, shown);
  return h("div", null, over && block("Over time", over), block(said, h("div", { class: "scroll" }, h("table", null, h("thead", null, h("tr", null, found.columns.map((name) => h("th", null, line(name, 60))))), h("tbody", null, shown.map((row) => h("tr", null, found.columns.map((name) => row[name]).map((value, place) => h("td", null, cell(model, value, found.columns[place])))))))),
    found.rows.length > shown.length ? h("p", { class: "soft" }, `${found.rows.length - shown.length} more. Write LIMIT.`) : null, found.warnings.map((each) => h("p", { class: "soft" }, each))));
}

function cell(model, value, column) {
  if (value === null) return "";
  if (isNode(value)) return thingLink(model, value.id, value.text || value.description || value.id);
  if (isLink(value)) return line(value.kind ?? value._label, 60);
  if (typeof value === "string" && /(^|_|\.)(id|source|target|old|new|subject)$/.test(column)) return thingLink(model, value, value);
  return prose(typeof value === "string" ? value : JSON.stringify(value), 300);
}

/** Rows that say from when to when, and a number: each stretch at its height, those that say the same of the rest as one line. Null for other rows. */
function stretches(columns, rows) {
  const place = (end) => columns.find((name) => name === end || name.endsWith(`.${end}`));
  const [from, to] = [["valid_from", "valid_to"], ["tx_from", "tx_to"]].map((ends) => ends.map(place)).find((ends) => ends.every(Boolean)) ?? [];
  const value = from && columns.findLast((name) => ![from, to].includes(name) && rows.some((row) => typeof row[name] === "number"));
  const known = rows.filter((row) => row[from] && typeof row[value] === "number");
  if (!known.length) return null;
  const [width, height, left] = [900, 240, 70];
  const instants = known.flatMap((row) => [row[from], row[to]]).filter(Boolean).map(Date.parse);
  const first = Math.min(...instants);
  const last = Math.max(...instants, known.some((row) => !row[to]) ? Date.now() : first) + 1;
  const [low, high] = [Math.min(0, ...known.map((row) => row[value])), Math.max(0, ...known.map((row) => row[value]))];
  const x = (iso) => left + ((width - left - 10) * ((iso ? Date.parse(iso) : last) - first)) / (last - first);
  const y = (number) => 14 + (height - 44) * (1 - (number - low) / (high - low || 1));
  const lines = Map.groupBy(known.sort((a, b) => Date.parse(a[from]) - Date.parse(b[from])), (row) => columns.filter((name) => ![from, to, value].includes(name)).map((name) => line(typeof row[name] === "object" ? JSON.stringify(row[name]) : row[name], 40)).join(", "));
  return s("svg", { class: "steps-over-time", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${value} over time: ${count(lines.size, "line")}` },
    [low, high].map((number) => [s("path", { class: "rule", d: `M${left},${y(number)}H${width - 10}` }), s("text", { class: "soft", x: left - 6, y: y(number) + 4, "text-anchor": "end" }, number.toLocaleString("en"))]),
    [[first, left, "start"], [last, width - 10, "end"]].map(([ms, at, anchor]) => s("text", { class: "soft", x: at, y: height - 8, "text-anchor": anchor }, when(new Date(ms).toISOString()))),
    [...lines].map(([name, all]) => s("path", { fill: "none", stroke: lines.size > 1 ? `hsl(${hue(name)} 60% 50%)` : "currentColor", "stroke-width": 2, d: all.map((row, place) => `${place && all[place - 1][to] === row[from] ? "V" + y(row[value]) : `M${x(row[from])},${y(row[value])}`}H${x(row[to])}`).join("") }, s("title", null, `${name || value}: ${all.slice(0, 20).map((row) => row[value].toLocaleString("en")).join(", ")}`))));
}

/** The nodes and links of an answer as a graph, from left to right in time, above the table. Gives what ends it. */
async function drawn(model, el, rows) {
  const [nodes, links] = [new Set(), new Set()];
  const take = (value) => {
    if (Array.isArray(value)) value.forEach(take);
    else if (isNode(value)) nodes.add(value.id);
    else if (isLink(value)) links.add(value.id);
    else if (value && typeof value === "object") Object.values(value).forEach(take);
  };
  rows.forEach((row) => Object.values(row).forEach(take));
  if (!nodes.size) return undefined;
  const found = await model.call("page.graph", { ids: [...nodes].slice(0, DRAWN), links: [...links].slice(0, 4 * DRAWN) }, { brief: 160 }).catch(() => null);
  if (!found) return undefined;
  const things = new Map([found.chain.root, ...found.chain.nodes].map((each) => [each.id, each]));
  const left = nodes.size - things.size;
  // A graph of causes goes on from a thing; what begins at a thing of an answer is on that tab.
  const own = {
    get: (name) => (name === "fold" ? model.get("fold") : ""),
    go: (changes) => model.go(changes.id ? { tab: changes.tab ?? "causes", id: changes.id } : changes),
    address: (changes) => model.address(changes),
    on: (event, heard) => model.on(event, heard),
    off: (event, heard) => model.off(event, heard),
  };
  const graph = h("section", { class: "block" }, h("h2", null, "As a graph"), h("p", { class: "soft" }, `${count(things.size, "thing")}, ${count(found.chain.links.length, "link")}${left > 0 ? `, ${left.toLocaleString("en")} more left out` : ""}`));
  el.prepend(graph);
  return draw(own, graph, "", things, found);
}
