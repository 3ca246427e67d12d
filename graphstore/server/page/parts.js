// Parts that all views are made of. Whatever comes from the store goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "open") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(4)) {
    if (child != null && child !== false) element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** An element of HTML: h("p", {class: "soft", onclick: …}, "text", …). */
export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);

/** An element of SVG. */
export const s = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

/** A button that does something. */
export const button = (label, onclick, more = {}) => h("button", { type: "button", onclick, ...more }, label);

// What turns writing round or hides in it is shown as what it is.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** A text on one line, cut to a length. */
export function line(text, most = 140) {
  const clean = String(text ?? "").slice(0, most * 4).replace(HIDDEN, "�").replace(/\s+/g, " ").trim();
  return clean.length > most ? clean.slice(0, most - 1) + "…" : clean;
}

/** A text of several lines, in full up to a limit; the rest comes by a click. */
export function prose(text, most = 2000) {
  const whole = String(text ?? "").replace(HIDDEN, "�");
  const box = h("div", { class: "prose", dir: "auto" }, whole.slice(0, most));
  if (whole.length > most) {
    box.append("… ", button(`${(whole.length - most).toLocaleString("en")} more characters`, (event) => {
      event.target.remove();
      box.textContent = whole;
    }, { class: "quiet" }));
  }
  return box;
}

/** An instant as people read it: to the minute, with seconds where they say something. */
export function when(iso) {
  if (!iso) return "open";
  const [day, clock = ""] = iso.replace("Z", "").replace(/\+00:00$/, "").split("T");
  if (!clock || /^00:00(:00(\.0+)?)?$/.test(clock)) return day;
  return `${day} ${clock.slice(0, /^\d\d:\d\d:00(\.0+)?$/.test(clock) ? 5 : 8)}`;
}

/** A time element with the whole instant behind it. */
export const time = (iso) => h("time", { datetime: iso ?? "", title: iso ?? "no end" }, when(iso));

/** A period in words. */
export const period = (from, to) => h("span", { class: "period" }, time(from), " – ", to ? time(to) : "open");

/** A mark for how something stands. */
export const standing = (word) => h("span", { class: `standing ${/^[a-z_]+$/.test(word) ? word : ""}` }, word === "not_yet" ? "planned" : word);

/** The fields of a content, in one line. */
export const fields = (content) => Object.entries(content ?? {}).map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");

/** What a thing says, in one line. */
export const words = (thing, most) => line(thing.text || thing.description || fields(thing.content), most) || thing.id;

/** A link to a thing on its tab. */
export function thingLink(model, id, label) {
  return h("a", { href: model.address({ tab: "thing", id }), class: "thing", dir: "auto", "data-id": id, onclick: (event) => follow(event, model, { tab: "thing", id }) }, label ? line(label, 120) : line(id, 60));
}

/** Go where a link leads without loading the page anew; with a modifier the browser does what it always does. */
export function follow(event, model, changes) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  model.go(changes);
}

/** A thing as a row of a list. */
export function thingRow(model, thing, ...more) {
  return h("li", { class: "row" }, h("span", { class: "kind" }, line(thing.kind ?? thing.type, 30)), thingLink(model, thing.id, words(thing)), standing(thing.standing), h("span", { class: "soft" }, time(thing.occurred_at ?? thing.valid_from)), ...more);
}

/** Any JSON, legible: fields as a list of definitions, long lists folded. */
export function json(value, depth = 0) {
  if (value === null || typeof value !== "object") return prose(typeof value === "string" ? value : JSON.stringify(value), 600);
  const entries = Object.entries(value);
  if (!entries.length) return h("span", { class: "soft" }, Array.isArray(value) ? "none" : "empty");
  if (depth > 3) return prose(JSON.stringify(value), 600);
  const shown = entries.slice(0, 60).flatMap(([name, each]) => [h("dt", null, line(name, 60)), h("dd", null, json(each, depth + 1))]);
  return h("dl", { class: "json" }, shown, entries.length > 60 ? h("dd", { class: "soft" }, `${entries.length - 60} more`) : null);
}

/** A labelled field. */
export const field = (label, input) => h("label", { class: "field" }, h("span", null, label), input);

/** A block with a heading; what is empty is left out. */
export function block(title, ...children) {
  const inside = children.flat(4).filter((each) => each != null && each !== false);
  return inside.length ? h("section", { class: "block" }, h("h2", null, title), inside) : null;
}

/** Words where there is nothing. */
export const nothing = (text) => h("p", { class: "nothing" }, text);

let stood = null;

/** Do what is slow: at once where no cursor was moved, else when it rests. Gives what calls it off. */
export function rested(model, work) {
  const here = `${model.get("valid")} ${model.get("tx")}`;
  const waiting = setTimeout(work, stood === null || stood === here ? 0 : 400);
  stood = here;
  return () => clearTimeout(waiting);
}

/** A number with its noun. */
export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** A number of bytes. */
export const bytes = (number) => (number < 1e3 ? `${number} B` : number < 1e6 ? `${(number / 1e3).toFixed(1)} kB` : `${(number / 1e6).toFixed(1)} MB`);

/** A length of time in seconds. */
export function length(seconds) {
  const size = Math.abs(seconds);
  if (size < 1) return `${+(seconds * 1e3).toPrecision(3)} ms`;
  if (size < 120) return `${+seconds.toPrecision(3)} s`;
  if (size < 7200) return `${(seconds / 60).toFixed(1)} min`;
  return size < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86400).toFixed(1)} days`;
}

/** A hue that belongs to a word. */
export function hue(word) {
  let sum = 7;
  for (const letter of String(word)) sum = (sum * 31 + letter.codePointAt(0)) % 3600;
  return (sum * 137) % 360;
}

/** What a thing rests on, looked for when it is opened. */
export function foundations(model, id) {
  const look = async ({ target: details }) => {
    if (!details.open || details.querySelector("ul")) return;
    const list = details.appendChild(h("ul", { class: "rows" }));
    const [links, backs] = await Promise.all([model.call("links_from", { id, kinds: ["derived_from", "caused_by"] }, { brief: 200 }), model.call("backlinks_to", { id, kinds: ["supports"] }, { brief: 200 })].map((each) => each.catch(() => [])));
    const all = [...links.map((each) => [each.kind, each.target, each.target_standing]), ...backs.map((each) => ["supported by", each.source, each.source_standing])].slice(0, 30);
    const names = all.length ? await model.call("page.named", { ids: all.map(([, other]) => other) }, {}).catch(() => ({})) : {};
    list.append(...(all.length ? all.map(([kind, other, stands]) => h("li", { class: "row" }, h("span", { class: "kind" }, line(kind, 30)), thingLink(model, other, names[other]?.text), standing(stands))) : [h("li", { class: "soft" }, "nothing")]));
  };
  return h("details", { class: "wide", ontoggle: look }, h("summary", null, "what it rests on"));
}

// ---- media

const PIECE = 400_000; // bytes of one answer

/** The audio or image of a message, fetched with the token when it is asked for or seen; `urls` takes what is to be given back. */
export function medium(model, event, urls) {
  const box = h("div", { class: "medium" });
  if (!model.ask) return box; // in a notebook nothing is fetched
  const url = async () => {
    urls.push(URL.createObjectURL(await fetched(model, event.id, (done, all) => (box.dataset.progress = `${bytes(done)} of ${bytes(all)}`))));
    return urls.at(-1);
  };
  const failed = (error) => box.replaceChildren(h("p", { class: "refused", role: "alert" }, line(error.message, 200)));
  if (event.type === "IMAGE") {
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((each) => each.isIntersecting)) return;
      seen.disconnect();
      url().then((src) => box.replaceChildren(picture(src, line(event.description, 200) || "image")), failed);
    }, { rootMargin: "300px" });
    seen.observe(box);
    return box;
  }
  const play = button("▶ listen", () => {
    play.disabled = true;
    url().then((src) => {
      const audio = h("audio", { src, controls: true, "aria-label": "Voice note" });
      box.replaceChildren(audio);
      audio.focus();
      audio.play().catch(() => {});
    }, failed);
  }, { name: `listen-${event.id}` });
  box.append(play);
  return box;
}

/** An image as a thumbnail that opens. */
function picture(src, alt) {
  const open = () => {
    const dialog = h("dialog", { class: "image", "aria-label": "Image", onclick: () => dialog.close(), onclose: () => dialog.remove() }, h("img", { src, alt }));
    document.body.append(dialog);
    dialog.showModal();
  };
  return button(h("img", { src, alt }), open, { class: "quiet", title: "Open" });
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
