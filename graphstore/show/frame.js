// A graph in a frame of a notebook: the page's drawing of causes, of things and links that came with it. Nothing is fetched.

import { count, h, line } from "./parts.js";
import { draw } from "./causes.js";

const DARK = "[data-jp-theme-light=false], .vscode-dark, .vscode-high-contrast";
const LIGHT = "[data-jp-theme-light=true], .vscode-light, .vscode-high-contrast-light";

/** Draw what was found, in place of the still picture beside the frame; where scripts do not run, that stays. */
export function show(found, css) {
  const holder = window.frameElement?.parentElement;
  if (!holder) return;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets = [sheet];
  theme(holder.ownerDocument, document.documentElement);
  holder.classList.add("live");
  const things = new Map(found.things.map((each) => [each.id, each]));
  const chain = { links: found.links };
  const state = { id: found.root };
  const heard = new Set();
  const model = {
    get: (name) => state[name] ?? "",
    go: (changes) => (Object.assign(state, changes), render()),
    address: () => "#",
    on: (_, each) => heard.add(each),
    off: (_, each) => heard.delete(each),
  };
  let leave = () => {};
  const render = () => {
    leave();
    const el = h("div", { class: "view causes" }, h("p", { class: "soft" }, `${count(things.size, "thing")}, ${count(found.links.length, "link")}${found.left_out ? `, ${found.left_out.toLocaleString("en")} more left out` : ""}. Drag to move, + and − to zoom, a thing to fold what hangs on it.`));
    leave = draw(model, el, state.id, things, { chain, places: found.places, lanes: found.lanes });
    document.body.replaceChildren(h("main", { "aria-label": line(found.title, 200) }, el));
    for (const each of heard) each();
  };
  render();
}

/** The notebook's own theme goes before the system's, and is followed when it changes. Gives what ends that. */
export function theme(notebook, root) {
  const all = [notebook.documentElement, notebook.body];
  const follow = () => {
    const chosen = [[DARK, "dark"], [LIGHT, "light"]].find(([where]) => all.some((each) => each.matches(where)));
    if (chosen) root.dataset.theme = chosen[1];
    else delete root.dataset.theme;
  };
  follow();
  const watching = new MutationObserver(follow);
  for (const each of all) watching.observe(each, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  return () => watching.disconnect();
}
