// Causes: what led to a thing, or what it led to, as a graph that runs from left to right in time. The server says where each thing lies.

import { block, button, count, field, follow, h, line, nothing, s, standing, thingLink, thingRow, when, words } from "./parts.js";

const [WIDE, HIGH, BOX] = [296, 62, 172];
const WAYS = [["causes", "what led to it"], ["effects", "what it led to"], ["walk", "all around it"]];

export async function render({ model, el }) {
  const id = model.get("id");
  const way = model.get("way") || "causes";
  if (!id) {
    const things = await model.call("page.latest", { limit: 20 }, { brief: 300 });
    el.append(block("Choose where to begin", things.length ? h("ul", { class: "rows" }, things.map((each) => h("li", { class: "row" }, h("span", { class: "kind" }, line(each.kind ?? each.type, 30)), h("a", { class: "thing", href: model.address({ id: each.id }), onclick: (event) => follow(event, model, { id: each.id }) }, words(each)), standing(each.standing)))) : nothing("Nothing stands at this coordinate.")));
    return undefined;
  }
  const more = model.get("open").split(" ").filter(Boolean);
  const depth = Number(model.get("depth")) || (way === "walk" ? 2 : 5);
  const found = await model.call("page.causes", { ids: [id, ...more], way, depth, limit: Number(model.get("most")) || 200 }, { brief: 160 });
  const things = new Map([found.chain.root, ...found.chain.nodes].map((each) => [each.id, each]));
  const root = things.get(id) ?? found.chain.root;
  const trail = model.get("trail").split(" ").filter(Boolean);
  el.append(
    h("nav", { class: "crumbs", "aria-label": "Where one came from" }, trail.slice(-6).map((each, place, all) => [h("a", { href: model.address({ id: each }), onclick: (event) => follow(event, model, { id: each, trail: trail.slice(0, trail.length - all.length + place).join(" "), open: "", fold: "" }) }, line(things.get(each) ? words(things.get(each), 30) : each, 30)), " › "]), h("b", null, words(root, 60))),
    h("div", { class: "fields" },
      h("div", { class: "choice", role: "group", "aria-label": "Direction" }, WAYS.map(([name, label]) => button(label, () => model.go({ way: name, open: "", fold: "" }), { "aria-pressed": String(name === way), name: `way-${name}` }))),
      field("links away", h("input", { name: "depth", type: "number", min: 1, max: 30, value: depth, onchange: (event) => model.go({ depth: event.target.value }) })),
      h("span", { class: "soft" }, `${count(things.size, "thing")}, ${count(found.chain.links.length, "link")}${found.left_out ? `, ${found.left_out.toLocaleString("en")} more left out` : ""}${found.chain.truncated ? "; the chain goes on beyond this depth" : ""}`),
      found.left_out ? button("show more", () => model.go({ most: Math.min(1000, things.size + 300) })) : null,
      model.get("fold") ? button("unfold all", () => model.go({ fold: "" })) : null));
  return draw(model, el, root.id, things, found);
}

/** The graph of things and links at their places, and the same as sentences. Gives what ends it. */
export function draw(model, el, root, things, found) {
  const graph = new Graph(model, root, things, found);
  el.append(graph.element, graph.about, listed(model, things, found));
  return graph.begin();
}

/** The same as sentences: for who reads rather than looks. */
function listed(model, things, found) {
  const name = (id) => thingLink(model, id, things.has(id) ? words(things.get(id), 80) : id);
  return h("details", { class: "block" }, h("summary", null, `As sentences (${found.chain.links.length})`), h("ul", { class: "rows" }, found.chain.links.map((link) => h("li", { class: "row" }, h("span", null, name(link.source), " ", h("b", null, line(link.kind, 40).replaceAll("_", " ")), " ", name(link.target)), link.reason ? h("span", { class: "soft" }, line(link.reason, 200)) : null))));
}

class Graph {
  constructor(model, root, things, found) {
    this.model = model;
    this.root = root;
    this.things = things;
    this.folded = new Set(model.get("fold").split(" ").filter(Boolean));
    const hidden = this.#hidden(found.chain.links);
    this.places = found.places.filter((each) => !hidden.has(each.id));
    this.at = new Map(this.places.map((each) => [each.id, [each.column * WIDE + 10, each.row * HIGH + 34]]));
    this.lanes = new Map(found.lanes.map((each) => [`${each.source} ${each.target}`, each.rows]));
    this.labels = new Set();
    this.links = found.chain.links.filter((link) => this.at.has(link.source) && this.at.has(link.target));
    this.width = Math.max(300, ...this.places.map((each) => each.column * WIDE + BOX + 20));
    this.height = Math.max(160, ...this.places.map((each) => each.row * HIGH + 90), ...found.lanes.map((each) => Math.max(...each.rows) * HIGH + 70));
    this.box = [0, 0, this.width, this.height];
    this.layer = s("g", null, this.#dates(), this.links.map((link) => this.#arrow(link)), this.places.map((each) => this.#thing(each)));
    this.svg = s("svg", { class: "graph", role: "group", "aria-label": "Causes from left to right in time", tabindex: 0, onwheel: (event) => this.#wheel(event), onpointerdown: (event) => this.#pan(event), onkeydown: (event) => this.#key(event) }, this.layer);
    this.about = h("div", { class: "about block", role: "status", hidden: true });
    this.element = h("div", { class: "graph-frame" }, this.svg, h("div", { class: "zoom" }, [["+", 0.75], ["−", 1.33]].map(([label, by]) => button(label, () => this.#zoom(by), { title: label === "+" ? "Nearer" : "Farther" })), button("all", () => this.#fit(), { title: "Show all" })));
  }

  /** Show it: all of it where it is legible, else the end where the thing asked for lies. */
  begin() {
    const begin = () => {
      const wide = this.svg.clientWidth || 900;
      const at = this.at.get(this.root) ?? [0, 0];
      const scale = Math.min(1, Math.max(0.8, wide / this.width));
      this.svg.style.height = `${Math.max(200, Math.min(innerHeight * 0.62, this.height * scale + 20))}px`;
      const seen = [wide / scale, (this.svg.clientHeight || 420) / scale];
      this.box = [Math.max(-10, Math.min(at[0] + BOX / 2 - seen[0] / 2, this.width - seen[0])), Math.max(-10, Math.min(at[1] - seen[1] / 2, Math.max(-10, this.height - seen[1]))), ...seen];
      this.#show();
    };
    this.model.on("drawn", begin);
    return () => this.model.off("drawn", begin);
  }

  /** What hangs on folded things alone. Of what is not joined to the root, the first is where one comes from. */
  #hidden(links) {
    if (!this.folded.size) return new Set();
    const next = new Map();
    for (const link of links) for (const [a, b] of [[link.source, link.target], [link.target, link.source]]) next.set(a, [...(next.get(a) ?? []), b]);
    const reached = (from, folded) => {
      const seen = new Set([from]);
      for (const id of seen) if (!folded.has(id)) for (const each of next.get(id) ?? []) seen.add(each);
      return seen;
    };
    const [known, hidden] = [new Set(), new Set(this.things.keys())];
    for (const from of [this.root, ...this.things.keys()]) {
      if (known.has(from)) continue;
      for (const id of reached(from, new Set())) known.add(id);
      for (const id of reached(from, this.folded)) hidden.delete(id);
    }
    return hidden;
  }

  #dates() {
    const first = new Map();
    for (const each of this.places) {
      const thing = this.things.get(each.id);
      const at = thing.occurred_at ?? thing.valid_from;
      if (!first.has(each.column) || at < first.get(each.column)) first.set(each.column, at);
    }
    let day = "";
    return [...first].sort((a, b) => a[0] - b[0]).flatMap(([column, at]) => {
      const text = when(at);
      const shown = text.slice(0, 10) === day ? text.slice(11) : text.slice(0, 10);
      day = text.slice(0, 10);
      return shown ? [s("text", { class: "soft", x: column * WIDE + 10, y: 16 }, shown), s("path", { class: "rule", d: `M${column * WIDE + 4},4V${this.height}` })] : [];
    });
  }

  #arrow(link) {
    let [from, to] = [this.at.get(link.source), this.at.get(link.target)];
    // An arrow runs from the earlier to the later: a cause says so about its effect, a successor about what it replaced.
    if (from[0] > to[0]) [from, to] = [to, from];
    const lane = this.lanes.get(`${link.source} ${link.target}`) ?? this.lanes.get(`${link.target} ${link.source}`) ?? [];
    const column = Math.round((from[0] - 10) / WIDE);
    // Where it passes other things it runs level, in a row of its own.
    const stops = [[from[0] + BOX, from[1] + 20], ...lane.flatMap((row, place) => [[(column + 1 + place) * WIDE + 10, row * HIGH + 54], [(column + 1 + place) * WIDE + 10 + BOX, row * HIGH + 54]]), [to[0] - 7, to[1] + 20]];
    const path = stops.slice(1).map(([u, v], place) => {
      const [x, y] = stops[place];
      return y === v ? `H${u}` : `C${(x + u) / 2},${y} ${(x + u) / 2},${v} ${u},${v}`;
    });
    const manner = link.manner ?? (/supersedes|transition|corrects/.test(link.kind) ? "succession" : /cause|resolved|led/.test(link.kind) ? "cause" : "other");
    const shaky = [link.source, link.target].some((id) => this.things.get(id).standing === "shaky");
    // Any other link is read as a sentence: its head is at its target, which may be the earlier of the two.
    const back = manner === "other" && this.at.get(link.target) === from;
    const head = back ? `M${stops[0]}l9,-4v8Z` : `M${stops.at(-1)[0] + 7},${stops.at(-1)[1]}l-9,-4v8Z`;
    return s("g", { class: `arrow ${manner} ${shaky ? "shaky" : ""} ${link.confidence === "inferred" ? "inferred" : ""}`, "data-source": link.source, "data-target": link.target }, s("title", null, line(`${link.source} ${link.kind} ${link.target}${link.reason ? `: ${link.reason}` : ""}`, 300)),
      s("path", { d: `M${stops[0]}${path.join("")}` }), s("path", { class: "head", d: head }), this.#label(link.reason || link.kind.replaceAll("_", " "), stops));
  }

  /** What is written on an arrow: where it runs level if it does, else where it begins or ends, and nowhere that is taken. */
  #label(text, stops) {
    const [[x, y], [u, v]] = [stops[0], stops.at(-1)];
    const level = stops.slice(1, -1).flatMap(([left, at], place) => (place % 2 ? [] : [[left, at, stops[place + 2][0] - left]]));
    const gap = WIDE - BOX - 16;
    for (const [left, at, room, anchor] of [...level, [x + 5, y, gap], [u - gap, v, gap - 5, "end"]]) {
      const place = `${Math.floor(left / WIDE)} ${left % WIDE < BOX} ${at}`;
      if (this.labels.has(place)) continue;
      this.labels.add(place);
      return s("text", anchor ? { x: left + room, y: at - 5, "text-anchor": anchor } : { x: left, y: at - 5 }, line(text, Math.floor(room / 5.4)));
    }
    return null;
  }

  #thing(place) {
    const thing = this.things.get(place.id);
    const [x, y] = this.at.get(place.id);
    const what = words(thing, 200);
    const choose = (event) => {
      event.stopPropagation();
      this.#choose(thing);
    };
    return s("g", { class: `box ${thing.occurred_at ? "event" : "node"} ${/^[a-z_]+$/.test(thing.standing) ? thing.standing : ""} ${thing.id === this.root ? "root" : ""} ${this.folded.has(thing.id) ? "folded" : ""}`, transform: `translate(${x},${y})`, tabindex: 0, role: "button", "data-id": thing.id, "aria-label": `${what}, ${thing.standing}`, onclick: choose, onkeydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose(event)) },
      s("title", null, `${what} · ${thing.standing}`), s("rect", { width: BOX, height: 40, rx: thing.occurred_at ? 20 : 6 }),
      s("text", { x: 12, y: 17 }, line(what, 23)), s("text", { class: "soft", x: 12, y: 32 }, line(`${thing.kind ?? thing.type} · ${thing.standing}`, 26)));
  }

  #choose(thing) {
    const { model } = this;
    const [open, trail] = [model.get("open").split(" ").filter(Boolean), model.get("trail").split(" ").filter(Boolean)];
    const folded = [...this.folded];
    this.about.hidden = false;
    this.about.replaceChildren(h("ul", { class: "rows" }, thingRow(model, thing)), h("p", { class: "actions" },
      thing.id !== this.root ? button("begin here", () => model.go({ id: thing.id, trail: [...trail, this.root].join(" "), open: "", fold: "" }), { name: "here" }) : null,
      !model.call || open.includes(thing.id) ? null : button("expand", () => model.go({ open: [...open, thing.id].join(" ") }), { name: "expand" }),
      button(this.folded.has(thing.id) ? "unfold" : "fold what hangs on it", () => model.go({ fold: (this.folded.has(thing.id) ? folded.filter((each) => each !== thing.id) : [...folded, thing.id]).join(" ") }), { name: "fold" })));
    this.about.querySelector("button")?.focus({ preventScroll: true });
  }

  #show() {
    this.svg.setAttribute("viewBox", this.box.map((each) => each.toFixed(1)).join(" "));
  }

  #fit() {
    this.box = [0, 0, this.width, this.height];
    this.#show();
  }

  #zoom(by, [px, py] = [0.5, 0.5]) {
    const [x, y, w, e] = this.box;
    const size = Math.max(200, Math.min(this.width * 2 + 400, w * by));
    const real = size / w;
    this.box = [x + (w - size) * px, y + (e - e * real) * py, size, e * real];
    this.#show();
  }

  #wheel(event) {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const box = this.svg.getBoundingClientRect();
    this.#zoom(event.deltaY > 0 ? 1.15 : 0.87, [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height]);
  }

  #pan(event) {
    if (event.target.closest(".box")) return;
    const [start, box] = [[event.clientX, event.clientY], [...this.box]];
    const scale = box[2] / this.svg.clientWidth;
    const move = (each) => {
      this.box = [box[0] - (each.clientX - start[0]) * scale, box[1] - (each.clientY - start[1]) * scale, box[2], box[3]];
      this.#show();
    };
    this.svg.setPointerCapture(event.pointerId);
    this.svg.addEventListener("pointermove", move);
    this.svg.addEventListener("lostpointercapture", () => this.svg.removeEventListener("pointermove", move), { once: true });
  }

  #key(event) {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (by) this.box = [this.box[0] + (by[0] * this.box[2]) / 8, this.box[1] + (by[1] * this.box[3]) / 8, this.box[2], this.box[3]];
    else if (event.key === "+" || event.key === "-") return this.#zoom(event.key === "+" ? 0.75 : 1.33);
    else if (event.key === "0") return this.#fit();
    else return undefined;
    event.preventDefault();
    return this.#show();
  }
}
