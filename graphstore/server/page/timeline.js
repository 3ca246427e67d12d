// The timeline: messages as cards, agents left and people right; older ones by scrolling, new ones as they come; media, focus on a person, and traces.

import { block, button, count, field, follow, h, hue, json, length, line, medium, nothing, prose, rested, s, standing, thingLink, time, when } from "./parts.js";

const FILTERS = ["sender", "thread", "type", "classification", "text", "authorized"];
const PAGE = 40; // messages
const [NAMES, WIDTH, ROW] = [250, 1000, 24];

export async function render({ model, el }) {
  if (model.get("trace")) return trace({ model, el });
  const filters = Object.fromEntries(FILTERS.filter((name) => model.get(name)).map((name) => [name, name === "authorized" ? model.get(name) === "yes" : model.get(name)]));
  const [page, { agents }] = await Promise.all([model.call("timeline.messages", { ...filters, limit: PAGE }), model.call("page.settings", {}, { at: false })]);
  const view = new Stream(model, filters, agents);
  const [top, side] = [h("div", null), h("aside", null)];
  el.append(top, h("div", { class: "with-side" }, view.element(page), side));
  around(model, top, side, agents, ...known);
  const left = view.begin();
  const off = rested(model, () => Promise.all([
    model.call("timeline.senders", { limit: 60 }, { brief: 200 }), model.call("timeline.threads", { limit: 100 }, { brief: 200 }), model.call("timeline.traces", { limit: 15 }, { brief: 200 }),
  ]).then((found) => (known = found) && !top.contains(document.activeElement) && around(model, top, side, agents, ...found), () => {}));
  return () => (off(), left());
}

/** What is around the messages, as it was known last until it is known here. */
let known = [[], [], []];

function around(model, top, side, agents, senders, threads, traces) {
  top.replaceChildren(bar(model, senders, threads));
  side.replaceChildren(people(model, senders), block("Traces", traces.length ? h("ul", { class: "rows" }, traces.map((each) => h("li", { class: "row" }, h("a", { class: "thing", href: model.address({ trace: each.trace_id }), onclick: (event) => follow(event, model, { trace: each.trace_id }) }, line(each.name, 60)), each.errors ? h("span", { class: "standing retracted" }, count(each.errors, "error")) : null, h("span", { class: "soft" }, `${count(each.events, "event")}, ${length((Date.parse(each.end) - Date.parse(each.start)) / 1000)}, ${when(each.start)}`)))) : nothing("No trace has happened yet.")), settings(model, agents));
}

function bar(model, senders, threads) {
  const choose = (name, options) => h("select", { name, onchange: (event) => model.go({ [name]: event.target.value }) }, h("option", { value: "" }, "all"), options.map(([value, label]) => h("option", { value, selected: value === model.get(name) }, line(label, 50))));
  const text = h("input", { name: "text", type: "search", value: model.get("text"), placeholder: "Words said", "aria-label": "Text of messages", onchange: () => model.go({ text: text.value.trim() }) });
  return h("form", { class: "search", onsubmit: (event) => (event.preventDefault(), model.go({ text: text.value.trim() })) }, text,
    field("sender", choose("sender", senders.map((each) => [each.id, `${each.name ?? each.id} (${each.messages})`]))), field("thread", choose("thread", threads.map((each) => [each.id, `${each.id} (${each.messages})`]))),
    field("type", choose("type", ["TEXT", "AUDIO", "IMAGE", "SYSTEM"].map((each) => [each, each.toLowerCase()]))), field("allowed", choose("authorized", [["yes", "authorized"], ["no", "not authorized"]])),
    field("class", h("input", { name: "classification", size: 8, value: model.get("classification"), onchange: (event) => model.go({ classification: event.target.value.trim() }) })),
    FILTERS.some((name) => model.get(name)) ? button("clear", () => model.go(Object.fromEntries(FILTERS.map((name) => [name, ""])))) : null);
}

function people(model, senders) {
  return block("Focus", senders.length ? h("ul", { class: "rows" }, senders.slice(0, 12).map((each) => h("li", { class: "row" }, button([dot(each.id), line(each.name ?? each.id, 40)], () => model.go({ focus: model.get("focus") === each.id ? "" : each.id }), { "aria-pressed": String(model.get("focus") === each.id), name: `focus-${each.id}` }), h("span", { class: "soft" }, count(each.messages, "message"), ", last ", when(each.last_seen))))) : nothing("Nobody has said anything yet."));
}

const dot = (id) => {
  const mark = h("span", { class: "dot" });
  mark.style.setProperty("--hue", hue(id));
  return mark;
};

/** Who is an agent where a message says no role. Kept in the store: a colleague sees the same. */
function settings(model, agents) {
  const failed = h("p", { role: "alert", class: "soft" });
  const keep = () => model.call("page.set_settings", { agents: input.value.split(",").map((each) => each.trim()).filter(Boolean) }, { at: false, write: true }).then(() => model.tell("change"), (error) => (failed.textContent = error.message));
  const input = h("input", { name: "agents", value: agents.join(", "), onchange: keep });
  return h("details", { class: "block" }, h("summary", null, "Which senders are agents"), h("p", { class: "soft" }, "For messages that have no role: ids, with commas."), model.rights === "write" ? input : h("p", null, agents.join(", ")), failed);
}

class Stream {
  #seen = new Set();
  #cursor = null;
  #loading = false;
  #tx = "";
  #urls = [];
  #added = new Map(); // how much was added to a message when its card was drawn

  constructor(model, filters, agents) {
    Object.assign(this, { model, filters, agents });
  }

  element(page) {
    this.list = h("ol", { class: "cards", "aria-label": "Messages, newest first" });
    this.end = h("p", { class: "soft end", role: "status" });
    this.news = button("", () => scrollTo({ top: 0 }), { class: "new-ones main", hidden: true });
    this.#take(page);
    return h("div", { class: `stream ${this.model.get("focus") ? "focused" : ""}` }, this.news, page.events.length ? null : nothing(Object.keys(this.filters).length ? "No message is like that." : "No message has been sent by this time."), this.list, this.end);
  }

  #see(events) {
    for (const each of events) {
      this.#seen.add(each.id);
      if (each.tx_from > this.#tx) this.#tx = each.tx_from;
    }
  }

  #take(page) {
    const fresh = page.events.filter((each) => !this.#seen.has(each.id));
    this.#see(fresh);
    this.list.append(...fresh.map((each) => this.#card(each, page.added[each.id])));
    this.#cursor = page.cursor;
    this.end.textContent = page.cursor ? "…" : this.list.children.length ? "That is the first one." : "";
  }

  begin() {
    const { model } = this;
    const watch = new IntersectionObserver((entries) => entries.some((each) => each.isIntersecting) && this.#older(), { rootMargin: "1200px" });
    watch.observe(this.end);
    const settled = () => this.#newer().catch(() => {});
    const escape = () => model.get("focus") && model.go({ focus: "" });
    const scrolled = () => scrollY < 200 && (this.news.hidden = true);
    model.on("settled", settled), model.on("escape", escape);
    addEventListener("scroll", scrolled, { passive: true });
    return () => {
      watch.disconnect();
      model.off("settled", settled), model.off("escape", escape);
      removeEventListener("scroll", scrolled);
      this.#urls.forEach((each) => URL.revokeObjectURL(each));
    };
  }

  async #older() {
    if (this.#loading || !this.#cursor) return;
    this.#loading = true;
    try {
      this.#take(await this.model.call("timeline.messages", { ...this.filters, limit: PAGE, cursor: this.#cursor }, { at: this.model.isNow ? false : this.#pinned() }));
    } catch (error) {
      this.end.textContent = error.message;
      this.#cursor = null;
    }
    this.#loading = false;
    if (this.#cursor && this.end.getBoundingClientRect().top < innerHeight + 1200) requestAnimationFrame(() => this.#older());
  }

  /** The coordinate that a cursor belongs to, where one axis is now. */
  #pinned() {
    const [valid, tx] = JSON.parse(atob(this.#cursor.replaceAll("-", "+").replaceAll("_", "/")));
    const iso = (micros) => new Date(Math.floor(micros / 1000)).toISOString().replace("Z", `${String(((micros % 1000) + 1000) % 1000).padStart(3, "0")}Z`);
    return { valid: iso(valid), tx: iso(tx) };
  }

  async #newer() {
    if (!this.model.isNow) return;
    const [page, first] = await Promise.all([
      this.model.call("timeline.messages", { ...this.filters, limit: 200, ...(this.#tx && { recorded_since: this.#tx }) }),
      this.model.call("timeline.messages", { ...this.filters, limit: PAGE }),
    ]);
    for (const each of first.events) {
      const card = this.#seen.has(each.id) && first.added[each.id]?.length > (this.#added.get(each.id) ?? 0) && [...this.list.children].find((one) => one.dataset.id === each.id);
      if (card) card.replaceWith(this.#card(each, first.added[each.id], true));
    }
    const last = this.#cursor ? this.list.lastElementChild.dataset.at : "";
    const fresh = page.events.filter((each) => !this.#seen.has(each.id) && each.occurred_at >= last); // what is older comes by scrolling
    if (!fresh.length) return;
    const before = document.documentElement.scrollHeight;
    this.#see(fresh);
    for (const each of fresh) this.list.insertBefore(this.#card(each, page.added[each.id], true), [...this.list.children].find((card) => card.dataset.at <= each.occurred_at) ?? null);
    if (scrollY <= 200) return;
    scrollBy(0, document.documentElement.scrollHeight - before);
    this.news.textContent = `${count(this.list.querySelectorAll(".fresh").length, "new message")} ↑`;
    this.news.hidden = false;
  }

  #card(event, added = [], fresh = false) {
    const [model, sender] = [this.model, event.sender ?? ""];
    const role = event.metadata?.role ?? (this.agents.includes(sender) || (!sender && event.origin === "agent") ? "agent" : event.type === "SYSTEM" ? "system" : "user");
    const focus = model.get("focus");
    const [said, kind] = ["message_transcript", "message_classification"].map((type) => added.find((each) => each.type === type)?.description);
    this.#added.set(event.id, added.length);
    return h("li", { class: `card ${role === "agent" ? "left" : role === "system" ? "middle" : "right"} ${fresh ? "fresh" : ""} ${focus && focus !== sender ? "pale" : ""}`, "data-sender": sender, "data-at": event.occurred_at, "data-id": event.id },
      h("header", null, button([dot(sender), line(event.sender_name ?? event.sender ?? event.type, 40)], () => model.go({ focus: focus === sender ? "" : sender }), { class: "quiet", title: "Focus" }), time(event.occurred_at),
        event.type === "TEXT" ? null : h("span", { class: "kind" }, line(event.type, 20).toLowerCase()), (kind ?? event.classification) ? h("span", { class: "kind" }, line(kind ?? event.classification, 30)) : null,
        event.authorized === false ? h("span", { class: "standing retracted" }, "not authorized") : null, event.standing === "stands" ? null : standing(event.standing)),
      event.description ? prose(event.description, 1500) : null, event.media_path || event.media_hash ? medium(model, event, this.#urls) : null,
      said ? h("div", { class: "transcript" }, h("span", { class: "soft" }, "transcript"), prose(said, 1500)) : null,
      h("footer", null, event.thread ? h("span", { class: "soft" }, line(event.thread, 40)) : null, event.trace_id ? h("a", { href: model.address({ trace: event.trace_id }), onclick: (each) => follow(each, model, { trace: event.trace_id }) }, "trace") : null, thingLink(model, event.id, "details")));
  }
}

/** A trace: a waterfall of its spans, with what each says; missing spans, clocks that differ and errors are marked. */
async function trace({ model, el }) {
  const id = model.get("trace");
  const found = await model.call("timeline.trace", { trace_id: id }, { brief: 1000 });
  const instants = [...found.spans.flatMap((each) => [each.start, each.end]), ...found.events.map((each) => each.occurred_at)].filter(Boolean).map(Date.parse);
  const [first, last] = [Math.min(...instants), Math.max(...instants)];
  const x = (iso) => NAMES + (WIDTH - NAMES - 70) * ((Date.parse(iso) - first) / (last - first || 1));
  const about = h("div", { role: "status" });
  const closed = new Set(model.get("fold").split(" ").filter(Boolean));
  const folded = new Set();
  for (const each of found.spans) if (closed.has(each.parent_span_id) || folded.has(each.parent_span_id)) folded.add(each.span_id);
  const shown = found.spans.filter((each) => !folded.has(each.span_id)).slice(0, 1000);
  const failed = (span) => span.events.some((each) => each.type === "error" || each.metadata?.error);
  const choose = (span) => {
    about.replaceChildren(block(span.name || span.span_id, h("p", { class: "soft" }, [`span ${line(span.span_id, 40)}`, span.parent_span_id && `of ${line(span.parent_span_id, 40)}`, `depth ${span.depth}`, span.duration !== null && length(span.duration), span.skew && `begins ${length(span.skew)} before its parent`].filter(Boolean).join(" · ")),
      span.children.length ? button(closed.has(span.span_id) ? "unfold" : "fold", () => model.go({ fold: (closed.has(span.span_id) ? [...closed].filter((each) => each !== span.span_id) : [...closed, span.span_id]).join(" ") }), { name: "fold" }) : null,
      span.events.length ? span.events.map((each) => h("div", { class: "event" }, thingLink(model, each.id, `${each.type}: ${each.description}`), h("span", { class: "soft" }, ` ${when(each.occurred_at)}`), json(each.metadata))) : nothing("Only its children name it.")));
    for (const each of drawing.querySelectorAll(".span")) each.classList.toggle("chosen", each.dataset.id === span.span_id);
  };
  const drawing = s("svg", { class: "waterfall", viewBox: `0 0 ${WIDTH} ${Math.max(60, shown.length * ROW + 30)}`, role: "group", "aria-label": `Waterfall of ${count(found.spans.length, "span")}` },
    [0, 0.25, 0.5, 0.75, 1].map((share) => [s("path", { class: "rule", d: `M${NAMES + (WIDTH - NAMES - 70) * share},16V${shown.length * ROW + 24}` }), s("text", { class: "soft", x: NAMES + (WIDTH - NAMES - 70) * share, y: 11, "text-anchor": "middle" }, length(((last - first) / 1000) * share))]),
    shown.map((span, place) => {
      const y = 20 + place * ROW;
      const [a, b] = span.start ? [x(span.start), x(span.end ?? span.start)] : [NAMES, NAMES];
      const [from, to] = [Math.min(a, b), Math.max(a, b)];
      const act = () => choose(span);
      return s("g", { class: `span ${span.missing ? "missing" : ""} ${failed(span) ? "failed" : ""} ${span.skew ? "skewed" : ""}`, tabindex: 0, role: "button", "data-id": span.span_id, "aria-label": `${span.name || "missing span"}, depth ${span.depth}${span.duration === null ? "" : `, ${length(span.duration)}`}${failed(span) ? ", error" : ""}`, onclick: act, onkeydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), act()) },
        s("rect", { class: "hit", y, width: WIDTH, height: ROW }),
        s("text", { x: 4 + Math.min(12, span.depth) * 14, y: y + 16 }, `${closed.has(span.span_id) ? "▸ " : ""}${span.missing ? `missing ${line(span.span_id, 16)}` : line(span.name, 32 - Math.min(12, span.depth) * 2)}`),
        span.missing ? null : s("rect", { class: "length", x: from, y: y + 5, width: Math.max(3, to - from), height: ROW - 10, rx: 3 }),
        span.events.slice(1).map((each) => s("circle", { class: "instant", cx: x(each.occurred_at), cy: y + ROW / 2, r: 3 })),
        span.duration === null ? null : s("text", { class: "soft", x: to + 5, y: y + 16 }, `${length(span.duration)}${span.skew ? ` ⇤ ${length(span.skew)}` : ""}`));
    }));
  el.append(h("p", null, button("← timeline", () => model.go({ trace: "", fold: "" }), { name: "back" })),
    block(`Trace ${line(id, 60)}`, h("p", { class: "soft" }, `${count(found.spans.length, "span")}, ${count(found.events.length, "event")} of no span, from ${when(new Date(first).toISOString())}, ${length((last - first) / 1000)}`), drawing,
      found.notes.length ? h("ul", { class: "notes" }, found.notes.slice(0, 30).map((each) => h("li", null, line(each, 300)))) : null),
    about, block("Of no span", found.events.length ? h("ul", { class: "rows" }, found.events.slice(0, 100).map((each) => h("li", { class: "row" }, h("span", { class: "kind" }, line(each.type, 30)), thingLink(model, each.id, each.description || each.type), h("span", { class: "soft" }, when(each.occurred_at))))) : null));
}
