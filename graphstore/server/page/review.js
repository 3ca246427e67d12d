// Review: what a person should look at. What may be written is there with the token for writing alone.

import { block, button, bytes, count, foundations, h, line, nothing, rested, standing, thingLink, time, words } from "./parts.js";

const MOST = 200;

/** What every statement is read for, as it was known last: it stays, pale, until it is known here. */
let judged = null;

export async function render({ model, el }) {
  const changes = model.get("tx") ? [] : await model.call("page.recent", { limit: 25 }, { at: false, brief: 200 });
  const may = model.rights === "write" && model.isNow;
  const names = await named(model, changes.map((each) => each.subject));
  const place = h("div", { "aria-busy": "true" }, judged ?? [block("Shaky", nothing("Looking …")), block("Contradictions", nothing("Looking …"))]);
  el.append(
    model.rights === "write" && !model.isNow ? h("p", { class: "soft" }, "The cursors are in the past: what is decided is decided now. ", button("Go to now", () => model.go({ valid: "", tx: "" }))) : "",
    place,
    block("Written last", changes.length ? h("ul", { class: "rows" }, transactions(changes).map((all) => transaction(model, all, names, may))) : nothing("Nothing was.")));
  return rested(model, () => judge(model, place, may).catch((error) => place.replaceChildren(h("p", { class: "refused", role: "alert" }, error.message))));
}

async function judge(model, place, may) {
  const [shaky, sides, doubts] = await Promise.all([
    model.call("shaky", { limit: 50 }, { brief: 400 }), model.call("contradictions", { limit: 30 }, { brief: 400 }), model.call("sessions.doubts", { limit: 50 }, { brief: 400 }).catch(() => []),
  ]);
  const names = await named(model, shaky.flatMap((each) => [...each.links].map((link) => link.target)));
  const found = h("div", null,
    block(`Shaky (${shaky.length})`, shaky.length ? h("ul", { class: "rows" }, shaky.map((each) => shakyRow(model, each, names, may))) : nothing("All that stands rests on what stands.")),
    block(`Contradictions (${sides.length})`, sides.length ? h("ul", { class: "rows" }, sides.map((each) => contradiction(model, each, may))) : nothing("Nothing contradicts anything.")),
    block(`Doubts of analysers (${doubts.length})`, doubts.length ? h("ul", { class: "rows" }, doubts.map((each) => doubt(model, each, may))) : nothing("No analyser is in doubt.")));
  place.replaceChildren((judged = found));
  place.removeAttribute("aria-busy");
}

/** What things and links that were written say, by their ids. */
const named = (model, ids) => (ids.length ? model.call("page.named", { ids: [...new Set(ids)].slice(0, 500) }, { at: false, brief: 200 }).catch(() => ({})) : {});

/** Changes by their transaction, in the order they come. */
const transactions = (changes) => [...Map.groupBy(changes, (each) => each.tx).values()];

/** A transaction: what it did, and the way to take it back, which takes back all of it. */
function transaction(model, all, names, may) {
  const [{ tx, author, reason, branch }] = all;
  return h("li", { class: "row" }, h("div", { class: "thing" }, all.slice(0, 12).map((each) => subject(model, each, names)), all.length > 12 ? h("div", { class: "soft" }, `and ${all.length - 12} more`) : null),
    h("span", { class: "soft" }, [author && line(author, 40), branch && `on ${line(branch, 40)}`, reason && line(reason, 120)].filter(Boolean).join(" – ")), time(tx), may ? act(model, "undo", (why) => model.call("undo", { tx, reason: why }, { at: false, write: true })) : null);
}

/** What was done, and to what: its words, which lead to it; a link leads to its source. What has neither is named. */
function subject(model, each, names) {
  const about = names[each.subject];
  return h("div", { class: "subject" }, h("span", { class: "kind" }, line(each.verb.replaceAll("_", " "), 30)), " ", about ? thingLink(model, about.id, about.text) : h("span", { "data-id": each.subject, title: line(each.subject, 200) }, line(each.subject, 60)));
}

function shakyRow(model, each, names, may) {
  const id = each.node.id;
  return h("li", { class: "row" }, thingLink(model, id, words(each.node)), standing("shaky"),
    h("span", { class: "soft wide" }, [...each.links].map((link) => [" rests on ", thingLink(model, link.target, names[link.target]?.text)]), " ", standing(each.root.standing), each.why ? `: ${line(each.why, 200)}` : ""),
    may ? h("span", { class: "actions" },
      act(model, "confirm", (reason) => model.call("confirm", { id, reason }, { at: false, write: true })),
      each.node.occurred_at ? null : act(model, "retract", (reason) => model.call("retract", { id, reason }, { at: false, write: true }))) : null);
}

function contradiction(model, each, may) {
  const side = (thing) => h("div", { class: "side" }, thingLink(model, thing.id, words(thing, 200)), " ", standing(thing.standing), h("div", { class: "soft" }, [thing.author && `by ${line(thing.author, 40)}`, thing.source && `source ${line(thing.source, 60)}`].filter(Boolean).join(", ")),
    may && !each.settled ? act(model, "keep this", async (reason) => {
      const whole = await model.call("contradiction", { one: each.source.id, other: each.target.id }, { brief: 0 });
      await model.call("resolve", { contradiction: whole, keep: thing.id, reason }, { at: false, write: true });
    }) : null,
    foundations(model, thing.id));
  return h("li", { class: "row" }, h("div", { class: "sides wide" }, side(each.source), side(each.target)), h("span", { class: "soft wide" }, each.link ? line(each.link.reason ?? "said to contradict", 200) : `about ${line(each.about ?? "the same", 80)}`));
}

/** What an analyser decided and asks a person to look at; that it was looked at is a correction of what it said. */
function doubt(model, each, may) {
  const looked = async (reason) => {
    const { content } = await model.call("node", { id: each.id }, { at: false, brief: 0 });
    const decisions = content.daemonMeta.decisions.map((one) => (one.decision === each.decision && one.reasoning === each.reasoning ? { ...one, needsReview: false } : one));
    await model.call("sessions.correct", { id: each.id, changes: { daemonMeta: { decisions } }, reason }, { at: false, write: true });
  };
  return h("li", { class: "row" }, thingLink(model, each.id, each.decision || each.text || each.ref), h("span", { class: "soft" }, each.at ? time(each.at) : ""),
    h("span", { class: "soft wide", dir: "auto" }, [each.reasoning, each.text && `of: ${each.text}`].filter(Boolean).map((text) => line(text, 200)).join(" – ")),
    may ? h("span", { class: "actions" }, act(model, "it holds", looked)) : null);
}

/** A button that asks for the reason before it does anything, and says what came of it. */
export function act(model, label, work) {
  return button(label, () => {
    const reason = h("input", { name: "reason", required: true, "aria-label": "Reason", placeholder: "why?", maxlength: 2000 });
    const said = h("p", { role: "alert", class: "soft" });
    const dialog = h("dialog", { "aria-label": label, onclose: () => dialog.remove() }, h("h2", null, `${label}: with what reason?`), h("form", { onsubmit: async (event) => {
      event.preventDefault();
      try {
        await work(reason.value);
        dialog.close();
        model.tell("change");
      } catch (error) {
        said.textContent = line(error.message, 600);
      }
    } }, reason, button(label, null, { type: "submit", class: "main" }), button("cancel", () => dialog.close())), said);
    document.body.append(dialog);
    dialog.showModal();
  }, { class: "act", name: `${label}` });
}

// ---- live: what was written just now, by whom, through which door; who follows; branches and what they say otherwise

const DOORS = { python: "Python", cli: "command line", mcp: "MCP", http: "HTTP", page: "page", server: "the server itself" };
const LOOK = 5_000; // milliseconds between two looks at who is here

export async function live({ model, el }) {
  const activity = () => model.ask("/activity").then((answer) => answer.json()).catch(() => null);
  const [here, recent, stats, branches, snapshots] = await Promise.all([
    activity(),
    model.call("page.recent", { limit: 60 }, { at: false, brief: 200 }),
    model.call("stats", {}, { at: false }), model.call("branches", {}, { at: false, part: 200 }), model.call("snapshots", {}, { at: false, part: -40 }),
  ]);
  const names = await named(model, recent.map((each) => each.subject));
  const list = h("ul", { class: "rows feed", role: "log", "aria-label": "What was written" }, recent.map((each) => change(model, each, names)));
  const state = h("span", { class: "soft" }, "listening");
  let paused = false;
  let held = [];
  const show = async (changes) => {
    const said = await named(model, changes.map((each) => each.subject));
    list.prepend(...[...changes].reverse().map((each) => change(model, each, said, true)));
    while (list.children.length > MOST) list.lastChild.remove();
    look();
  };
  const pause = button("pause", () => {
    paused = !paused;
    pause.textContent = paused ? "go on" : "pause";
    pause.setAttribute("aria-pressed", String(paused));
    if (!paused) {
      show(held);
      held = [];
    }
    state.textContent = paused ? "paused" : "listening";
  }, { "aria-pressed": "false", name: "pause" });
  const heard = (changes) => {
    if (!paused) return show(changes);
    held = [...held, ...changes].slice(-MOST);
    state.textContent = `paused, ${held.length} waiting`;
    return undefined;
  };
  const followers = h("div", null);
  const known = (found) => {
    followers.replaceChildren(block(`Followers${found ? ` (${found.followers.length})` : ""}`, ...following(found)));
    const doors = new Map((found?.doors ?? []).map((each) => [each.tx, each.door]));
    for (const row of list.children) row.querySelector(".door").textContent = DOORS[doors.get(row.dataset.tx)] ?? "";
  };
  const look = () => document.hidden || activity().then(known);
  const looking = setInterval(look, LOOK);
  known(here);
  model.on("news", heard);
  model.on("settled", look);
  el.append(h("div", { class: "grid" }, [["nodes", stats.nodes], ["events", stats.events], ["links", stats.links], ["transactions", stats.transactions], ["journal", bytes(stats.journal_bytes)]].map(([name, value]) => h("div", { class: "block figure" }, h("b", null, typeof value === "number" ? value.toLocaleString("en") : value), h("span", { class: "soft" }, name)))),
    h("div", { class: "columns" }, block("Written", h("p", { class: "fields" }, pause, state), list.children.length ? "" : h("p", { class: "soft" }, "Nothing was written yet."), list,
        h("p", { class: "soft" }, "Doors are known of what this server wrote since it began. What has none was written before, or by another process.")),
      followers,
      block(`Branches (${branches.length})`, branches.length ? h("ul", { class: "rows" }, branches.map((each) => branch(model, each))) : nothing("There is the trunk alone.")),
      block(`Snapshots (${snapshots.length})`, snapshots.length ? h("ul", { class: "rows" }, snapshots.slice(-40).reverse().map((each) => h("li", { class: "row" }, button(line(each.name, 60), () => model.go({ valid: each.valid, tx: each.tx })), time(each.tx), h("span", { class: "soft" }, line(each.author ?? "", 40))))) : nothing("None was taken."))));
  return () => {
    clearInterval(looking);
    model.off("news", heard);
    model.off("settled", look);
  };
}

/** Who is here by way of this server; nobody else is known to it. */
function following(found) {
  if (!found) return [nothing("This token is not told who else is here.")];
  const rows = found.followers.map((each) => h("li", { class: "row" }, h("span", { class: "kind" }, DOORS[each.door]), h("span", null, each.what === "agent" ? "an agent" : "follows what is written"), h("span", { class: "soft" }, `may ${line(each.rights, 20)}, from ${line(each.client ?? "here", 60)}, since `), time(each.since)));
  return [h("ul", { class: "rows" }, rows), h("p", { class: "soft" }, `${count(found.connections, "open connection")}. A process that reads the folder by itself is not seen from here.`)];
}

function change(model, each, names, fresh) {
  return h("li", { class: `row ${fresh ? "fresh" : ""}`, "data-tx": each.tx, "data-subject": each.subject }, subject(model, each, names), h("span", { class: "door soft" }), h("span", { class: "soft", dir: "auto" }, [each.author && `by ${line(each.author, 40)}`, each.branch && `on ${line(each.branch, 40)}`, each.reason && line(each.reason, 160)].filter(Boolean).join(" · ")), time(each.tx));
}

function branch(model, each) {
  const here = model.get("branch") === each.name;
  const found = h("div", { class: "wide" });
  const compare = async () => {
    const differs = await model.call("compare", { other: each.name }, { at: false, brief: 200 });
    found.replaceChildren(...[["added there", differs.added], ["removed there", differs.removed], ["changed there", differs.changed.map((one) => one.after)]].filter(([, all]) => all.length).map(([label, all]) => h("p", null, `${label}: `, all.slice(0, 12).map((one) => [thingLink(model, one.id, words(one, 80)), " "]), all.length > 12 ? `and ${all.length - 12} more` : "")));
    if (!found.children.length) found.textContent = "It says the same.";
  };
  return h("li", { class: "row" }, h("b", null, line(each.name, 60)), h("span", { class: "soft" }, `${count(each.transactions, "transaction")} since `), time(each.forked_at), each.merged_at ? h("span", { class: "soft" }, "merged") : null,
    h("span", { class: "actions" }, button(here ? "back to the trunk" : "look at it", () => model.go({ branch: here ? "" : each.name }), { name: `at-${each.name}` }), here ? null : button("compare", () => compare().catch((error) => (found.textContent = error.message)), { name: `compare-${each.name}` })), found);
}
