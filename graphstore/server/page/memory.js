// Memory: the layers, the pipeline that fills them, queues, services, expertise, working memory, a probe, and what an agent would read.

import { block, button, bytes, count, field, foundations, h, hue, length, line, nothing, prose, s, standing, thingLink, time, when, words } from "./parts.js";

const SIGNS = [["capture", "observations"], ["embed", "embed"], ["store", "store"], ["retrieve", "retrieve"], ["inject", "inject"]];

export async function render({ model, el }) {
  const [status, limits, layers, expertises, observations] = await Promise.all([
    model.call("memory.status", {}, { at: false, brief: 300 }), model.call("page.settings", {}, { at: false }), model.isNow ? null : model.call("memory.layer_stats"),
    model.call("working.expertises", {}, { brief: 200 }).catch(() => []), model.call("observer.observations", {}, { brief: 300, part: -150, fields: "id,text,tags,content,standing,valid_from" }).catch(() => []),
  ]);
  const [user, thread] = [model.get("user") || status.queues[0]?.user || "", model.get("thread") || (model.get("user") ? "" : status.queues[0]?.thread ?? "")];
  const layer = model.get("layer");
  el.append(light(model, status, limits), pipeline(status),
    layers ? h("p", { class: "soft" }, "The layers are as of the cursors; the light, the pipeline and the queues are as they are now.") : "",
    h("div", { class: "grid layers" }, (layers ?? status.layers).filter((each) => each.layer !== null || each.chunks).map((each) => card(model, each, status, Boolean(layers)))),
    layer ? await chunks(model, layer) : "",
    h("div", { class: "columns" },
      ...(await Promise.all([probe(model), context(model, user, thread), pad(model, user, thread)])),
      block("Observer", status.queues.length ? h("table", null, h("tr", null, ["user", "thread", "waiting", "compressed", "last"].map((name) => h("th", null, name))), status.queues.slice(0, 30).map((each) => h("tr", null, h("td", null, line(each.user, 40)), h("td", null, line(each.thread ?? "–", 40)), h("td", null, h("meter", { min: 0, max: each.threshold, value: each.waiting }), ` ${each.waiting} of ${each.threshold}`), h("td", null, each.observed), h("td", null, each.compressed_at ? time(each.compressed_at) : "never")))) : nothing("No conversation is observed.")),
      seen(model, observations, layers ? observations.length : status.observations),
      block("Expertise", expertises.length ? h("table", null, expertises.map((each) => h("tr", null, h("td", null, line(each.domain, 60)), h("td", null, h("meter", { min: 0, max: 1, low: 0.35, high: 0.65, optimum: 1, value: each.score }), ` ${(each.score * 100).toFixed(0)} %`), h("td", { class: each.direction }, `${{ rising: "↗", falling: "↘", steady: "→" }[each.direction]} ${(each.trend * 100).toFixed(0)}`), h("td", { class: "soft" }, count(each.outcomes, "outcome"))))) : nothing("No outcome was recorded.")),
      services(model, status)));
}

// ---- the light, and why

function judged(status, limit) {
  const share = (100 * status.chunks) / status.cap;
  const lacking = status.embedding.embedder && status.embedding.texts ? (100 * status.embedding.missing) / status.embedding.texts : 0;
  const worst = Math.max(0, ...status.ticks.map((each) => each.failures));
  const red = [share >= limit.red && `memory is ${share.toFixed(0)} % full`, worst >= limit.failures && `${status.ticks.find((each) => each.failures === worst).name} failed ${worst} times in a row`].filter(Boolean);
  const amber = [share >= limit.amber && `memory is ${share.toFixed(0)} % full`, lacking >= limit.missing && `${lacking.toFixed(0)} % of the texts have no vector`, worst && `${status.ticks.find((each) => each.failures).name} failed`].filter(Boolean);
  return red.length ? ["red", red] : amber.length ? ["amber", amber] : ["violet", [`${share.toFixed(share < 10 ? 1 : 0)} % of ${status.cap.toLocaleString("en")} chunks, nothing failed`]];
}

function light(model, status, limits) {
  const [colour, why] = judged(status, limits);
  const failed = h("p", { role: "alert", class: "soft" });
  const keep = (name, value) => model.call("page.set_settings", { [name]: Number(value) }, { at: false, write: true }).then(() => model.tell("change"), (error) => (failed.textContent = error.message));
  const names = { amber: "amber from % full", red: "red from % full", failures: "red from failures", missing: "amber from % without vector" };
  return h("div", { class: "light" }, h("span", { class: `led ${colour}`, role: "img", "aria-label": { violet: "healthy", amber: "high", red: "critical" }[colour] }), h("b", null, { violet: "Healthy", amber: "High", red: "Critical" }[colour]), h("span", null, why.join("; ")),
    h("details", null, h("summary", null, "thresholds"), h("div", { class: "fields" }, Object.entries(names).map(([name, label]) => field(label, model.rights === "write" ? h("input", { type: "number", min: 0, name: `limit-${name}`, value: limits[name], onchange: (event) => keep(name, event.target.value) }) : h("b", null, limits[name])))), failed));
}

function pipeline(status) {
  const waiting = status.queues.reduce((sum, each) => sum + each.waiting, 0);
  const failures = (name) => status.ticks.filter((each) => each.name.startsWith(name)).reduce((sum, each) => sum + each.failures, 0);
  const says = { observations: [`${waiting} waiting`, failures("observer") + failures("sync")], embed: [status.embedding.embedder ? `${status.embedding.missing.toLocaleString("en")} of ${status.embedding.texts.toLocaleString("en")} missing` : "by words alone", 0], store: [count(status.chunks, "chunk"), failures("lifecycle")], retrieve: [status.embedding.embedder ? `words and ${line(status.embedding.embedder, 16)}` : "full text", 0], inject: [count(status.observations, "observation"), 0] };
  return s("svg", { class: "pipeline", viewBox: "0 0 1000 74", role: "img", "aria-label": SIGNS.map(([name, key]) => `${name}: ${says[key][0]}${says[key][1] ? `, ${says[key][1]} failures` : ""}`).join("; ") },
    SIGNS.map(([name, key], place) => s("g", { transform: `translate(${place * 202},4)`, class: says[key][1] ? "failed" : "" }, s("rect", { width: 180, height: 64, rx: 10 }), s("text", { x: 14, y: 27, class: "name" }, name), s("text", { x: 14, y: 50, class: "soft" }, says[key][0] + (says[key][1] ? ` · ${says[key][1]} failed` : "")), place < 4 ? s("path", { d: "M183,32h14m-5,-4l5,4l-5,4" }) : null)));
}

function card(model, each, status, past) {
  const name = each.layer ?? "of no layer";
  const due = status.due[each.layer] ?? 0;
  const chosen = model.get("layer") === each.layer;
  const box = h("button", { type: "button", class: `layer ${chosen ? "chosen" : ""}`, name: `layer-${name}`, "aria-pressed": String(chosen), onclick: () => model.go({ layer: chosen ? "" : each.layer, skip: "" }) },
    h("b", null, line(name, 40)), h("span", { class: "big" }, each.chunks.toLocaleString("en")), h("span", { class: "soft" }, `${bytes(each.bytes)}${each.oldest ? `, oldest ${when(each.oldest).slice(0, 10)}` : ""}`),
    h("span", { class: "soft" }, past ? "" : [due && `${due} due`, each.expiring && `${each.expiring} due within a day`].filter(Boolean).join(", ") || "nothing due"), h("span", { class: "share", title: `${((100 * each.chunks) / status.cap).toFixed(2)} % of the cap` }));
  box.style.setProperty("--share", `${Math.min(100, (100 * each.chunks) / status.cap)}%`);
  box.style.setProperty("--hue", { soul: 280, conversation: 205, tool: 95, group: 35, er1: 330, observation: 165 }[name] ?? hue(name));
  return box;
}

async function chunks(model, layer) {
  const skip = Number(model.get("skip")) || 0;
  const found = await model.call("memory.chunks", { layer, limit: 25, skip }, { brief: 400 });
  return block(`${layer}: ${found.total.toLocaleString("en")}`, h("ul", { class: "rows" }, found.chunks.map((each) => h("li", { class: "row" }, thingLink(model, each.id, words(each, 160)), h("span", { class: "soft" }, line(each.source ?? "", 50)), time(each.recorded_at)))),
    h("p", { class: "actions" }, skip ? button("newer", () => model.go({ skip: Math.max(0, skip - 25) || "" }), { name: "newer" }) : null, found.skip !== null ? button("older", () => model.go({ skip: found.skip }), { name: "older" }) : null));
}

// ---- what is asked

async function probe(model) {
  const input = h("input", { name: "probe", type: "search", value: model.get("probe"), placeholder: "What would come to mind?", "aria-label": "Probe" });
  const found = model.get("probe") ? await model.call("memory.recollect", { text: model.get("probe"), k: 10 }, { brief: 300 }).catch((error) => error) : null;
  return block("Probe", h("form", { class: "search", onsubmit: (event) => (event.preventDefault(), model.go({ probe: input.value.trim() })) }, input, button("Try", null, { type: "submit" })),
    found instanceof Error ? nothing(found.message) : found ? [h("ol", { class: "steps" }, found.hits.map((hit) => h("li", null, thingLink(model, hit.node.id, words(hit.node, 140)), h("div", { class: "soft" }, `${line(hit.layer ?? "", 20)} · score ${hit.score.toFixed(3)} · words ${hit.text_score.toFixed(2)}, meaning ${hit.vector_score.toFixed(2)}, links ${hit.spread_score.toFixed(2)}${hit.matched.length ? ` · says ${line(hit.matched.join(", "), 60)}` : ""}`)))), h("p", { class: "soft" }, line(found.note, 300))] : null);
}

async function context(model, user, thread) {
  const fields = [["user", user], ["thread", thread], ["question", model.get("question")], ["budget", model.get("budget") || "1200"]].map(([name, value]) => [name, h("input", { name, value, size: name === "budget" ? 5 : 12 })]);
  const found = user ? await model.call("context.context", { user, ...(thread && { thread }), query: model.get("question"), budget_tokens: Number(model.get("budget")) || 1200 }, { brief: 3000 }).catch((error) => error) : null;
  return block("What an agent would read", h("form", { class: "fields", onsubmit: (event) => (event.preventDefault(), model.go(Object.fromEntries(fields.map(([name, input]) => [name, input.value.trim()])))) }, fields.map(([name, input]) => field(name, input)), button("Preview", null, { type: "submit" })),
    found instanceof Error ? nothing(found.message) : found ? [h("p", { class: "soft" }, `${count(found.tokens, "token")}${found.left_out.length ? `; left out: ${found.left_out.map((each) => `${each.count} of ${each.section}`).join(", ")}` : ", nothing left out"}`), found.sections.filter((each) => each.text).map((each) => h("details", null, h("summary", null, `${each.name} · ${count(each.tokens, "token")}`), prose(each.text, 3000)))] : nothing("Say for whom."));
}

async function pad(model, user, thread) {
  if (!user) return null;
  const node = await model.call("working.get", { user, ...(thread && { thread }) }, { brief: 2000 }).catch(() => null);
  if (!node) return block("Working memory", nothing("Empty."));
  const rows = await model.call("history", { id: node.id }, { brief: 300, part: -40, fields: "number,text,valid_from,valid_to" }).catch(() => []);
  return block("Working memory", h("p", { class: "soft" }, `${line(user, 40)}${thread ? `, ${line(thread, 40)}` : ""} · scope ${line(node.scope, 60)}${thread && !node.scope.includes(thread) ? " · the thread has none: this is its user's" : ""}`), prose(node.text ?? "", 1500),
    rows.length > 1 ? h("details", null, h("summary", null, `${rows.length - 1} earlier`), h("ol", { class: "steps", reversed: true }, rows.slice(0, -1).reverse().slice(0, 30).map((each) => h("li", null, time(each.valid_from), " ", line(each.text, 200))))) : null);
}

function seen(model, observations, total) {
  const days = new Map();
  for (const each of [...observations].sort((one, other) => other.valid_from.slice(0, 10).localeCompare(one.valid_from.slice(0, 10))).slice(0, 120)) {
    const day = when(each.valid_from).slice(0, 10);
    days.set(day, [...(days.get(day) ?? []), each]);
  }
  const priority = (each) => line(each.content?.metadata?.priority ?? each.tags?.find((tag) => /high|medium|low/i.test(tag)) ?? "", 12).toLowerCase();
  return block(`Observations (${total.toLocaleString("en")})`, days.size ? [...days].slice(0, 14).map(([day, all], place) => h("details", { open: place < 2 }, h("summary", null, `${day} · ${all.length}`), h("ul", { class: "rows" }, all.map((each) => h("li", { class: "row" }, h("span", { class: `kind priority-${priority(each)}` }, priority(each) || "noticed"), thingLink(model, each.id, line(each.text, 160)), standing(each.standing), foundations(model, each.id)))))) : nothing("Nothing was noticed yet."));
}

function services(model, status) {
  const may = model.rights === "write";
  const failed = h("p", { role: "alert", class: "soft" });
  const now = (name) => button(name.startsWith("sync") ? "sync now" : "do now", (event) => {
    event.target.disabled = true;
    model.call("memory.do_now", { name }, { at: false, write: true }).then(() => model.tell("change"), (error) => (failed.textContent = error.message));
  }, { name: `now-${name}` });
  return block("Services and what is done by itself", status.syncs.length ? h("ul", { class: "rows" }, status.syncs.map((each) => h("li", { class: "row" }, h("b", null, line(each.name, 40)), h("span", { class: "soft" }, `cursor ${line(JSON.stringify(each.cursor), 60)}, written `), time(each.written_at)))) : null,
    status.ticks.length ? h("table", null, h("tr", null, ["what", "every", "last well", "next", "", ""].map((name) => h("th", null, name))), status.ticks.map((each) => h("tr", null, h("td", null, line(each.name, 50)), h("td", null, length(each.every)), h("td", null, each.ended ? time(each.ended) : "–"), h("td", null, each.next ? time(each.next) : "now"), h("td", { class: each.failures ? "refused-cell" : "soft" }, each.error ? `${count(each.failures, "failure")}: ${line(each.error, 120)}` : "well"), h("td", null, may ? now(each.name) : null)))) : nothing("This server does nothing by itself."), failed);
}
