// The page in a notebook: both cursors above a thing or its causes. The notebook's model has what Python sees; what the views ask, the kernel answers.

import { button, h } from "./parts.js";
import { Refused, query } from "./model.js";
import { render as cursors } from "./cursors.js";
import { render as thing } from "./thing.js";
import { render as causes } from "./causes.js";
import { theme } from "./frame.js";

const VIEWS = { thing: ["Thing", thing], causes: ["Causes", causes] };
const SEEN = ["valid", "tx", "id", "tab"]; // by Python; the rest of the state is this view's own
const LATE = 2000; // milliseconds without an answer after which one says so

class Model {
  #kernel;
  #own = new Map();
  #heard = new Map();
  #waiting = new Map();
  #asked = 0;
  #me = Math.random().toString(36).slice(2); // another view of the same widget hears the same answers
  #soon = false;
  #leave;

  constructor(kernel) {
    this.#kernel = kernel;
    const answered = (message) => this.#answered(message);
    const changed = SEEN.map((name) => [`change:${name}`, () => this.#changed(name)]);
    for (const [event, heard] of [["msg:custom", answered], ...changed]) kernel.on(event, heard);
    this.#leave = () => [["msg:custom", answered], ...changed].forEach(([event, heard]) => kernel.off(event, heard));
  }

  get(name) {
    return (SEEN.includes(name) ? this.#kernel.get(name) : this.#own.get(name)) ?? "";
  }

  go(changes) {
    if (changes.tab && changes.tab !== this.get("tab")) this.#own.clear();
    for (const [name, value] of Object.entries(changes)) {
      if (SEEN.includes(name)) this.#kernel.set(name, String(value ?? "") || (name === "id" ? "" : null));
      else this.#own.set(name, value === false ? "" : String(value ?? ""));
    }
    this.#kernel.save_changes();
    this.#changed();
  }

  #changed(name) {
    if (name) this.tell(`change:${name}`);
    if (this.#soon) return;
    this.#soon = true;
    queueMicrotask(() => {
      this.#soon = false;
      this.tell("change");
    });
  }

  address() {
    return "#";
  }

  get isNow() {
    return !this.get("valid") && !this.get("tx");
  }

  on(event, heard) {
    if (!this.#heard.has(event)) this.#heard.set(event, new Set());
    this.#heard.get(event).add(heard);
  }

  off(event, heard) {
    this.#heard.get(event)?.delete(heard);
  }

  tell(event) {
    for (const heard of [...(this.#heard.get(event) ?? [])]) heard();
  }

  /** A call of the store by its name, as the page has it. Raises Refused. */
  call(name, args = {}, more = {}) {
    const id = `${this.#me}-${++this.#asked}`;
    const late = setTimeout(() => this.tell("late"), LATE);
    return new Promise((done, fail) => {
      this.#waiting.set(id, { done, fail, late });
      this.#kernel.send({ id, name, args, query: query(this, more) });
    });
  }

  #answered({ id, status, body, written }) {
    if (written) this.tell("settled");
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    clearTimeout(waiting.late);
    this.tell("found");
    const answer = JSON.parse(body);
    if (status === 200) waiting.done(answer);
    else waiting.fail(new Refused(status, answer.message));
  }

  leave() {
    this.#leave();
    for (const { late } of this.#waiting.values()) clearTimeout(late);
  }
}

/** Draw it into an element, apart from the notebook's own styles. Gives what ends it. */
export function mount(kernel, el, css) {
  const model = new Model(kernel);
  const host = h("div");
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  root.adoptedStyleSheets = [sheet];
  const state = h("span", { id: "state", role: "status" });
  const tabs = h("nav", { "aria-label": "Views" }, Object.entries(VIEWS).map(([name, [label]]) => button(label, () => model.go({ tab: name }), { name: `tab-${name}` })));
  const [clocks, main] = [h("section", { id: "cursors", "aria-label": "Coordinate" }), h("main")];
  root.append(h("div", { class: "page" }, h("header", null, tabs, state), clocks, main));
  el.append(host);
  let [drawing, again, left] = [false, false, null];
  const draw = async () => {
    again = true;
    if (drawing) return; // what is asked meanwhile is drawn once, when this is
    drawing = true;
    while (again) {
      again = false;
      const name = model.get("tab");
      const view = h("div", { class: `view ${name}` });
      const next = await VIEWS[name][1]({ model, el: view }).catch((error) => view.replaceChildren(h("p", { class: "refused", role: "alert" }, error.message)));
      left?.();
      left = next;
      for (const each of tabs.children) each.setAttribute("aria-pressed", String(each.name === `tab-${name}`));
      main.replaceChildren(view);
      model.tell("drawn");
    }
    drawing = false;
  };
  model.on("change", draw);
  model.on("settled", draw);
  model.on("late", () => (state.textContent = "Waiting for the kernel …"));
  model.on("found", () => (state.textContent = ""));
  const end = theme(document, host);
  cursors({ model, el: clocks }).catch(() => {});
  draw();
  return () => (end(), left?.(), model.leave());
}
