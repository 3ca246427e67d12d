// The two cursors: what was true at an instant, as known at another. Each is a strip of all changes along its clock.

import { button, count, h, s, when } from "./parts.js";

const AXES = [["valid", "True at"], ["tx", "As known at"]];
const WIDTH = 1000;
const HEIGHT = 34;
const NOW = 5_000; // milliseconds: closer than this to now is now

/** A time that a person wrote, as the server wants it: a clock without a time zone is of UTC. */
export function written(text) {
  const found = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)$/.exec(text.trim());
  return found ? `${found[1]}T${found[2]}Z` : text.trim();
}

class Cursor {
  #model;
  #axis;
  #strip = null;
  #playing = 0;

  constructor(model, axis, label) {
    this.#model = model;
    this.#axis = axis;
    this.bars = s("g", { class: "bars" });
    this.mark = s("path", { class: "mark" });
    this.slider = s("svg", { class: "strip", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "slider", tabindex: 0, "aria-label": label, onkeydown: (event) => this.#key(event), onpointerdown: (event) => this.#drag(event) }, s("rect", { width: WIDTH, height: HEIGHT, class: "back" }), this.bars, this.mark);
    this.written = h("input", { class: "instant", "aria-label": `${label}: date or instant`, size: 19, spellcheck: "false", onchange: () => this.#typed() });
    this.badge = h("span", { class: "badge" }, "not now");
    this.play = button("▶", () => this.#toggle(), { title: `Play ${label.toLowerCase()}`, "aria-pressed": "false" });
    this.ends = [h("span", { class: "soft" }), h("span", { class: "soft" })];
    this.element = h("div", { class: `cursor ${axis}` },
      h("div", { class: "controls" }, h("b", null, label), this.written, this.badge,
        button("«", () => this.step(true), { title: `${label}: the change before`, class: "step back" }), this.play,
        button("»", () => this.step(false), { title: `${label}: the next change`, class: "step next" }),
        button("now", () => this.move(""), { title: `${label}: now`, class: "now" })),
      this.slider, h("div", { class: "ends" }, this.ends));
  }

  /** Draw the changes; there are as many as the view of the other cursor knows. */
  fill(strip) {
    this.#strip = strip;
    const most = Math.max(1, ...strip.counts);
    const width = WIDTH / strip.counts.length;
    this.bars.replaceChildren(...strip.counts.flatMap((number, place) => {
      if (!number) return [];
      const height = Math.max(3, (HEIGHT - 4) * Math.sqrt(number / most));
      return [s("rect", { x: place * width, y: HEIGHT - height, width: Math.max(1, width - 1), height })];
    }));
    this.ends[0].textContent = when(strip.since).slice(0, 10);
    this.ends[1].textContent = `${count(strip.changes, "change")} · ${when(strip.until).slice(0, 10)}`;
    this.show();
  }

  show() {
    const at = this.#model.get(this.#axis);
    this.badge.hidden = !at;
    this.element.classList.toggle("past", Boolean(at));
    if (document.activeElement !== this.written) this.written.value = at ? when(at) : "now";
    this.slider.setAttribute("aria-valuetext", at ? when(at) : "now");
    this.written.classList.remove("wrong");
    if (!this.#strip) return;
    const [since, until] = this.#span();
    const place = at ? Math.min(1, Math.max(0, (Date.parse(at) - since) / (until - since))) : Math.min(1, Math.max(0, (Date.now() - since) / (until - since)));
    this.mark.setAttribute("d", `M${place * WIDTH},0V${HEIGHT}`);
    for (const [name, value] of [["min", 0], ["max", 100], ["now", Math.round(place * 100)]]) this.slider.setAttribute(`aria-value${name}`, value);
  }

  #span() {
    return [Date.parse(this.#strip.since), Math.max(Date.parse(this.#strip.until), Date.parse(this.#strip.since) + 1)];
  }

  /** Put the cursor at an instant; "" is now. While it is dragged the history gets one entry, not hundreds. */
  move(at, how) {
    this.#model.go({ [this.#axis]: at }, how);
  }

  #at(share) {
    const [since, until] = this.#span();
    const time = since + (until - since) * Math.min(1, Math.max(0, share));
    return time >= Date.now() && this.#axis === "tx" ? "" : new Date(time).toISOString();
  }

  #drag(event) {
    if (!this.#strip || event.button) return;
    const box = this.slider.getBoundingClientRect();
    let waiting = 0;
    let last = event;
    const put = (over) => this.move(this.#at((last.clientX - box.left) / box.width), { over });
    const moved = (each) => {
      last = each;
      waiting ||= requestAnimationFrame(() => {
        waiting = 0;
        put(true);
      });
    };
    put(false);
    this.slider.setPointerCapture(event.pointerId);
    this.slider.addEventListener("pointermove", moved);
    this.slider.addEventListener("lostpointercapture", () => this.slider.removeEventListener("pointermove", moved), { once: true });
  }

  #key(event) {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10 }[event.key];
    if (event.key === "End") this.move("");
    else if (event.key === "Home" && this.#strip) this.move(this.#strip.since);
    else if (by && this.#strip) {
      const [since, until] = this.#span();
      const here = this.#model.get(this.#axis) ? Date.parse(this.#model.get(this.#axis)) : Math.min(Date.now(), until);
      this.move(this.#at((here - since) / (until - since) + by / 100), { over: true });
    } else return;
    event.preventDefault();
  }

  /** Put the cursor where the server reads a text; what means now stays at now. */
  async typed(text) {
    const axis = this.#axis;
    const [there, now] = text && text !== "now" ? await Promise.all([this.#model.call("at", {}, { at: { [axis]: written(text) } }), this.#model.call("at", {}, { at: false })]) : [];
    this.move(!there || Math.abs(Date.parse(there[axis]) - Date.parse(now[axis])) < NOW ? "" : there[axis]);
  }

  async #typed() {
    const refused = await this.typed(this.written.value.trim()).then(() => "", (error) => error.message);
    this.written.classList.toggle("wrong", Boolean(refused));
    this.written.title = refused;
  }

  /** Put the cursor at an instant where the address has words or a day. */
  async named() {
    const at = this.#model.get(this.#axis);
    if (at && !at.includes(":")) await this.typed(at).catch(() => this.move(""));
  }

  /** To the next change of this clock, or the one before. Whether there is one. */
  async step(back) {
    const axis = this.#axis;
    const here = this.#model.get(axis) || (back && this.#strip ? new Date(Math.max(Date.now(), Date.parse(this.#strip.until)) + 1).toISOString() : "");
    if (!here) return false;
    const asked = axis === "valid" ? { tx: this.#model.get("tx") } : {};
    const at = axis === "tx" && !this.#model.get("tx") ? new Date().toISOString() : here;
    const next = await this.#model.call("page.next_change", { axis, at, back }, { at: asked });
    if (next) this.move(next);
    return Boolean(next);
  }

  #toggle() {
    const playing = (this.#playing = this.#playing ? 0 : Date.now());
    this.play.textContent = playing ? "❚❚" : "▶";
    this.play.setAttribute("aria-pressed", String(Boolean(playing)));
    if (playing) this.#run(playing);
  }

  async #run(turn) {
    if (!this.#model.get(this.#axis) && this.#strip) this.move(this.#strip.since);
    while (this.#playing === turn) {
      await new Promise((later) => setTimeout(later, 700));
      if (this.#playing !== turn) return;
      if (!(await this.step(false).catch(() => false))) this.#toggle();
    }
  }
}

/** Both cursors, drawn once; they follow the state. */
export async function render({ model, el }) {
  const both = AXES.map(([axis, label]) => new Cursor(model, axis, label));
  el.replaceChildren(...both.map((each) => each.element));
  let turn = 0;
  const fill = async () => {
    const mine = ++turn;
    const parts = Math.max(40, Math.min(160, Math.round(el.clientWidth / 8)));
    const [here, all] = await Promise.all([
      model.call("page.clocks", { parts }, { at: { tx: model.get("tx") } }),
      model.get("tx") ? model.call("page.clocks", { parts }, { at: false }) : null,
    ]);
    if (mine !== turn) return;
    both[0].fill(here.valid);
    both[1].fill((all ?? here).tx);
  };
  const change = () => both.forEach((each) => each.show());
  model.on("change", change);
  model.on("change:tx", () => fill().catch(() => {}));
  model.on("change:branch", () => fill().catch(() => {}));
  model.on("settled", () => fill().catch(() => {}));
  for (const each of both) await each.named();
  change();
  if (!document.querySelector(".view")) await new Promise((drawn) => model.on("drawn", drawn)); // what it is about comes first
  await fill();
}
