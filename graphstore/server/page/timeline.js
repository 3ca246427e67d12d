// The timeline: messages as cards, agents left and people right; older ones by scrolling, new ones as they come; media, focus on a person, and traces.

import { block, button, bytes, count, field, follow, h, hue, json, length, line, nothing, prose, rested, s, standing, thingLink, time, when } from "./parts.js";

const FILTERS = ["sender", "thread", "type", "classification", "text", "authorized"];
const [PAGE, PIECE] = [40, 400_000]; // messages, bytes
const [NAMES, WIDTH, ROW] = [250, 1000, 24];

export async function render({ model, el }) {
  if (model.get("trace")) return trace({ model, el });
  const filters = Object.fromEntries(FILTERS.filter((name) => model.get(name)).map((name) => [name, name === "authorized" ? model.get(name) === "yes" : model.get(name)]));
  const page = await model.call("timeline.messages", { ...filters, limit: PAGE });
  const view = new Stream(model, filters);
  const [top, side] = [h("div", null), h("aside", null)];
  el.append(top, h("div", { class: "with-side" }, view.element(page), side));
  around(model, top, side, ...known);
  const left = view.begin();
  const off = rested(() => Promise.all([
    model.call("timeline.senders", { limit: 60 }, { brief: 200 }), model.call("timeline.threads", { limit: 100 }, { brief: 200 }), model.call("timeline.traces", { limit: 15 }, { brief: 200 }),
  ]).then((found) => (known = found) && !top.contains(document.activeElement) && around(model, top, side, ...found), () => {}));
  return () => (off(), left());
}

/** What is around the messages, as it was known last until it is known here. */
let known = [[], [], []];

function around(model, top, side, senders, threads, traces) {
  top.replaceChildren(bar(model, senders, threads));
  side.replaceChildren(people(model, senders), block("Traces", traces.length ? h("ul", { class: "rows" }, traces.map((each) => h("li", { class: "row" }, h("a", { class: "thing", href: model.address({ trace: each.trace_id }), onclick: (event) => follow(event, model, { trace: each.trace_id }) }, line(each.name, 60)), each.errors ? h("span", { class: "standing retracted" }, count(each.errors, "error")) : null, h("span", { class: "soft" }, `${count(each.events, "event")}, ${length((Date.parse(each.end) - Date.parse(each.start)) / 1000)}, ${when(each.start)}`)))) : nothing("No trace has happened yet.")), settings(model));
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

const agents = () => (localStorage.getItem("graphstore-agents") ?? "agent, assistant, bot").split(",").map((each) => each.trim()).filter(Boolean);

function settings(model) {
  const input = h("input", { name: "agents", value: agents().join(", "), onchange: () => (localStorage.setItem("graphstore-agents", input.value), model.tell("change")) });
  return h("details", { class: "block" }, h("summary", null, "Which senders are agents"), h("p", { class: "soft" }, "For messages that have no role: ids, with commas."), input);
}

class Stream {
  #seen = new Set();
  #cursor = null;
  #loading = false;
  #tx = "";
  #urls = [];

  constructor(model, filters) {
    Object.assign(this, { model, filters });
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
    this.list.append(...fresh.map((each) => this.#card(each)));
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
    const page = await this.model.call("timeline.messages", { ...this.filters, limit: 200, ...(this.#tx && { recorded_since: this.#tx }) });
    const last = this.#cursor ? this.list.lastElementChild.dataset.at : "";
    const fresh = page.events.filter((each) => !this.#seen.has(each.id) && each.occurred_at >= last); // what is older comes by scrolling
    if (!fresh.length) return;
    const before = document.documentElement.scrollHeight;
    this.#see(fresh);
    for (const each of fresh) this.list.insertBefore(this.#card(each, true), [...this.list.children].find((card) => card.dataset.at <= each.occurred_at) ?? null);
    if (scrollY <= 200) return;
    scrollBy(0, document.documentElement.scrollHeight - before);
    this.news.textContent = `${count(this.list.querySelectorAll(".fresh").length, "new message")} ↑`;
    this.news.hidden = false;
  }

  #card(event, fresh) {
    const [model, sender] = [this.model, event.sender ?? ""];
    const role = event.metadata?.role ?? (agents().includes(sender) || (!sender && event.origin === "agent") ? "agent" : event.type === "SYSTEM" ? "system" : "user");
    const focus = model.get("focus");
    return h("li", { class: `card ${role === "agent" ? "left" : role === "system" ? "middle" : "right"} ${fresh ? "fresh" : ""} ${focus && focus !== sender ? "pale" : ""}`, "data-sender": sender, "data-at": event.occurred_at },
      h("header", null, button([dot(sender), line(event.sender_name ?? event.sender ?? event.type, 40)], () => model.go({ focus: focus === sender ? "" : sender }), { class: "quiet", title: "Focus" }), time(event.occurred_at),
        event.type === "TEXT" ? null : h("span", { class: "kind" }, line(event.type, 20).toLowerCase()), event.classification ? h("span", { class: "kind" }, line(event.classification, 30)) : null,
        event.authorized === false ? h("span", { class: "standing retracted" }, "not authorized") : null, event.standing === "stands" ? null : standing(event.standing)),
      event.description ? prose(event.description, 1500) : null, event.media_path || event.media_hash ? this.#medium(event) : null,
      h("footer", null, event.thread ? h("span", { class: "soft" }, line(event.thread, 40)) : null, event.trace_id ? h("a", { href: model.address({ trace: event.trace_id }), onclick: (each) => follow(each, model, { trace: event.trace_id }) }, "trace") : null, thingLink(model, event.id, "details")));
  }

  /** Audio and images are fetched with the token, in pieces, when they are asked for or seen. */
  #medium(event) {
    const box = h("div", { class: "medium" });
    const url = async () => {
      this.#urls.push(URL.createObjectURL(await fetched(this.model, event.id, (done, all) => (box.dataset.progress = `${bytes(done)} of ${bytes(all)}`))));
      return this.#urls.at(-1);
    };
    const failed = (error) => box.replaceChildren(h("p", { class: "refused", role: "alert" }, line(error.message, 200)));
    if (event.type === "IMAGE") {
      const seen = new IntersectionObserver((entries) => {
        if (!entries.some((each) => each.isIntersecting)) return;
        seen.disconnect();
        url().then((src) => {
          const image = h("img", { src, alt: line(event.description, 200) || "image", loading: "lazy" });
          const open = button(image, () => {
            const dialog = h("dialog", { class: "image", "aria-label": "Image", onclick: () => dialog.close(), onclose: () => dialog.remove() }, h("img", { src, alt: image.alt }));
            document.body.append(dialog);
            dialog.showModal();
          }, { class: "quiet", title: "Open" });
          box.replaceChildren(open);
        }, failed);
      }, { rootMargin: "300px" });
      seen.observe(box);
    } else {
      const play = button("▶ listen", () => {
        play.disabled = true;
        url().then((src) => {
          const audio = h("audio", { src, controls: true, "aria-label": "Voice note" });
          box.replaceChildren(audio);
          audio.play().catch(() => {});
        }, failed);
      }, { name: `listen-${event.id}` });
      box.append(play);
    }
    return box;
  }
}

/** A medium, piece by piece: no answer is large. */
async function fetched(model, id, progress) {
  const coordinate = new URLSearchParams(["valid", "tx", "branch"].flatMap((name) => (model.get(name) ? [[name, model.get(name)]] : [])));
  const parts = [];
  let [at, all, kind] = [0, 1, ""];
  while (at < all) {
    const answer = await model.ask(`/media/${encodeURIComponent(id)}?${coordinate}`, { headers: { range: `bytes=${at}-${at + PIECE - 1}` } });
    const part = await answer.arrayBuffer();
    all = Number(answer.headers.get("content-range")?.split("/")[1] ?? part.byteLength);
    kind = answer.headers.get("content-type");
    parts.push(part);
    at += part.byteLength;
    progress(at, all);
    if (!part.byteLength) break;
  }
  return new Blob(parts, { type: kind });
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
