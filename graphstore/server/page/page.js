// The frame: tabs, cursors above each, the token, light and dark, the keyboard, and what happens when the server is gone.

import { button, h, line } from "./parts.js";
import { Model } from "./model.js";
import { render as cursors } from "./cursors.js";

const TABS = [
  ["thing", "Thing", "thing.js"],
  ["causes", "Causes", "causes.js"],
  ["timeline", "Timeline", "timeline.js"],
  ["memory", "Memory", "memory.js"],
  ["ask", "Ask", "ask.js"],
  ["review", "Review", "review.js"],
  ["live", "Live", "review.js", "live"],
];
const KEYS = [
  ["1 … 7", "the tabs"], ["/", "the first field"], ["[ and ]", "true at: the change before, the next"], ["{ and }", "as known at: the change before, the next"],
  ["n", "both cursors to now"], ["d", "light, dark, or as the system has it"], ["Esc", "out of a field, or of what is open"], ["?", "this list"],
];
const THEMES = { "": "◐", light: "☀", dark: "☾" };

const model = new Model();
const main = document.getElementById("main");
const tabs = document.getElementById("tabs");
const state = document.getElementById("state");
const branch = document.getElementById("branch");
let turn = 0;
let leave = null;

const tab = () => TABS.find(([name]) => name === model.get("tab")) ?? TABS[0];

// ---- the view of the tab

/** Draw the tab anew. What is there stays until the new is whole; an answer that comes too late is dropped. */
async function draw() {
  const mine = ++turn;
  const [name, label, file, part = "render"] = tab();
  document.title = `${label}${model.get("id") ? ` · ${line(model.get("id"), 40)}` : ""} · graphstore`;
  for (const each of tabs.children) {
    each.setAttribute("aria-selected", String(each.dataset.tab === name));
    if (each.dataset.tab === name) tabs.scrollLeft = each.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - each.clientWidth) / 2;
  }
  branch.hidden = !model.get("branch");
  branch.textContent = `on branch ${line(model.get("branch"), 30)} ×`;
  main.setAttribute("aria-busy", "true");
  const el = h("div", { class: `view ${name}` });
  let left = null;
  try {
    const view = await import(`./${file}`);
    left = await view[part]({ model, el });
  } catch (error) {
    if (error.status === 401) return;
    el.replaceChildren(h("p", { class: "refused", role: "alert" }, error.message));
    if (error.status === undefined) console.error(error);
  }
  if (mine !== turn) {
    left?.();
    return;
  }
  leave?.();
  leave = left;
  replace(el);
  main.removeAttribute("aria-busy");
  model.tell("drawn");
}

/** Put the new view in place of the old, and leave the keyboard and the page where they were. */
function replace(el) {
  const old = main.firstElementChild;
  const same = old?.className === el.className;
  const focused = main.contains(document.activeElement) ? document.activeElement : null;
  const name = focused?.getAttribute("name") ?? focused?.dataset?.id;
  const selection = focused?.selectionStart;
  const top = scrollY;
  main.replaceChildren(el);
  if (same) scrollTo(0, top);
  const found = same && name ? [...el.querySelectorAll("[name], [data-id]")].find((each) => (each.getAttribute("name") ?? each.dataset.id) === name) : null;
  found?.focus({ preventScroll: true });
  if (found && selection != null && found.setSelectionRange) found.setSelectionRange(selection, selection);
}

// ---- light and dark

function theme(next) {
  const chosen = next ?? localStorage.getItem("graphstore-theme") ?? "";
  if (next !== undefined) localStorage.setItem("graphstore-theme", next);
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  const toggle = document.getElementById("theme");
  toggle.textContent = THEMES[chosen];
  toggle.setAttribute("aria-label", `Colours: ${chosen || "as the system has them"}`);
}

function turnTheme() {
  const all = Object.keys(THEMES);
  theme(all[(all.indexOf(document.documentElement.dataset.theme ?? "") + 1) % all.length]);
}

// ---- the token

function askToken() {
  if (document.querySelector("dialog.token")) return;
  const input = h("input", { type: "password", name: "token", autocomplete: "off", spellcheck: "false", required: true, "aria-label": "Token" });
  const dialog = h("dialog", { class: "token", "aria-label": "Sign in", oncancel: (event) => event.preventDefault() },
    h("h2", null, "A token, please"),
    h("p", null, "It lies in the store's folder, in the file ", h("code", null, "token"), " (or ", h("code", null, "token-read"), "); ", h("code", null, "graphstore page FILE"), " opens this page signed in. It is kept until this window closes."),
    h("form", { method: "dialog", onsubmit: async () => { model.sign(input.value); dialog.remove(); await begin(); } }, input, button("Open", null, { type: "submit", class: "main" })));
  document.body.append(dialog);
  dialog.showModal();
}

// ---- the keyboard

function help() {
  const dialog = h("dialog", { "aria-label": "Keys", onclose: () => dialog.remove() }, h("h2", null, "Keys"),
    h("dl", { class: "keys" }, KEYS.map(([key, does]) => [h("dt", null, h("kbd", null, key)), h("dd", null, does)])),
    h("form", { method: "dialog" }, button("Close", null, { type: "submit" })));
  document.body.append(dialog);
  dialog.showModal();
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (event.target.matches?.("input, textarea, select")) event.target.blur();
    model.tell("escape");
    return;
  }
  if (event.target.matches?.("input, textarea, select, [contenteditable]") || document.querySelector("dialog[open]")) return;
  const step = { "[": ".valid .back", "]": ".valid .next", "{": ".tx .back", "}": ".tx .next" }[event.key];
  if (/^[1-7]$/.test(event.key)) model.go({ tab: TABS[event.key - 1][0] });
  else if (step) document.querySelector(`#cursors ${step}`)?.click();
  else if (event.key === "/") main.querySelector("input, textarea")?.focus();
  else if (event.key === "n") model.go({ valid: "", tx: "" });
  else if (event.key === "d") turnTheme();
  else if (event.key === "?") help();
  else return;
  event.preventDefault();
});

tabs.addEventListener("keydown", (event) => {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  const all = [...tabs.children];
  all[(all.indexOf(document.activeElement) + by + all.length) % all.length].focus();
});

// ---- what is written meanwhile, and a lost server

let settling = 0;
model.on("news", () => {
  settling ||= setTimeout(() => {
    settling = 0;
    model.tell("settled");
    if (model.isNow && !["timeline", "ask", "live"].includes(tab()[0]) && !main.contains(document.activeElement?.closest("form, dialog, details[open]"))) draw();
  }, 800);
});
model.on("lost", () => {
  document.body.classList.add("lost");
  state.textContent = "The server does not answer. Trying again …";
});
model.on("found", () => {
  if (!document.body.classList.contains("lost")) return;
  document.body.classList.remove("lost");
  state.textContent = "";
  model.tell("settled");
  draw();
});
model.on("stranger", askToken);
model.on("change", draw);
model.on("drawn", function once() {
  model.off("drawn", once);
  TABS.forEach(([, , file]) => import(`./${file}`)); // there when the server is not
});

async function begin() {
  const known = model.learn();
  if (!["memory", "review"].includes(tab()[0])) draw(); // in these it counts what may be written
  try {
    await known;
  } catch (error) {
    if (!error.status) setTimeout(begin, 1000);
    return;
  }
  document.body.dataset.rights = model.rights;
  if (["memory", "review"].includes(tab()[0])) draw();
  cursors({ model, el: document.getElementById("cursors") }).catch(() => {});
  model.listen();
}

for (const [number, [name, label]] of TABS.entries()) {
  tabs.append(h("a", { role: "tab", "data-tab": name, href: model.address({ tab: name }), title: `${label} (${number + 1})`, onclick: (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    model.go({ tab: name });
  } }, label));
}
document.getElementById("theme").addEventListener("click", turnTheme);
branch.addEventListener("click", () => model.go({ branch: "" }));
theme();
begin();
