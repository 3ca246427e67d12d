// What all views share: the state, which is the page's address, and the calls of the server. The contract of views is anywidget's: get, set, save_changes, on, off.

const KEY = "graphstore-token";
const STILL = 2_000; // milliseconds

/** What a server refused, with its status. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** What a call says beside its arguments: where it is asked, and how much of the answer is wanted. */
export function query(model, { at = true, brief = 4000, fields, part, write = false } = {}) {
  const query = new URLSearchParams();
  if (model.get("branch")) query.set("branch", model.get("branch"));
  for (const axis of ["valid", "tx"]) {
    const value = at === true ? model.get(axis) : at?.[axis];
    if (value) query.set(axis, value);
  }
  if (!write && brief) query.set("brief", brief);
  if (fields) query.set("fields", fields);
  if (part) query.set("part", part);
  return query.toString();
}

/** The token: from the address's fragment, which is taken out at once, or from this session. */
function token() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found) {
    sessionStorage.setItem(KEY, found);
    history.replaceState(history.state, "", location.pathname + location.search);
  }
  return sessionStorage.getItem(KEY) ?? "";
}

export class Model {
  #state = new URLSearchParams(location.search);
  #before = "";
  #heard = new Map();
  #token = token();
  #still = new Map(); // answers that no cursor changes, for as long as nothing is written
  rights = "";

  constructor() {
    this.#before = this.#state.toString();
    addEventListener("popstate", () => {
      this.#state = new URLSearchParams(location.search);
      this.#tell();
    });
  }

  // ---- the state

  get(name) {
    return this.#state.get(name) ?? "";
  }

  set(name, value) {
    if (value === "" || value == null || value === false) this.#state.delete(name);
    else this.#state.set(name, String(value));
  }

  /** Keep what was set: the address says it, and who listens is told. `over` replaces the entry of the history instead of adding one. */
  save_changes({ over = false } = {}) {
    if (this.#state.toString() === this.#before) return;
    const address = this.address({});
    if (over) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    this.#tell();
  }

  #tell() {
    const before = new URLSearchParams(this.#before);
    const names = new Set([...before.keys(), ...this.#state.keys()]);
    this.#before = this.#state.toString();
    for (const name of names) {
      if (before.get(name) !== this.#state.get(name)) this.tell(`change:${name}`, this.get(name));
    }
    this.tell("change");
  }

  /** Set and keep several at once. A change of tab drops what belonged to the tab before. */
  go(changes, how) {
    if (changes.tab && changes.tab !== this.get("tab")) {
      for (const name of [...this.#state.keys()]) if (!["valid", "tx", "branch", "tab"].includes(name)) this.#state.delete(name);
    }
    for (const [name, value] of Object.entries(changes)) this.set(name, value);
    this.save_changes(how);
  }

  /** The address of the state with some changes. */
  address(changes) {
    const to = new URLSearchParams(changes.tab && changes.tab !== this.get("tab") ? ["valid", "tx", "branch"].flatMap((name) => (this.get(name) ? [[name, this.get(name)]] : [])) : this.#state);
    for (const [name, value] of Object.entries(changes)) {
      if (value) to.set(name, value);
      else to.delete(name);
    }
    const query = to.toString();
    return location.pathname + (query ? `?${query}` : "");
  }

  on(event, heard) {
    if (!this.#heard.has(event)) this.#heard.set(event, new Set());
    this.#heard.get(event).add(heard);
  }

  off(event, heard) {
    this.#heard.get(event)?.delete(heard);
  }

  tell(event, value) {
    for (const heard of [...(this.#heard.get(event) ?? [])]) heard(value);
  }

  /** Whether both cursors are at now. */
  get isNow() {
    return !this.get("valid") && !this.get("tx");
  }

  // ---- the server

  sign(token) {
    this.#still.clear();
    this.#token = token.trim();
    sessionStorage.setItem(KEY, this.#token);
  }

  /** A request with the token. Raises Refused; what has no answer at all is a lost server. */
  async ask(path, { method = "GET", body, headers = {}, signal } = {}) {
    let answer;
    const all = { ...(this.#token && { authorization: `Bearer ${this.#token}` }), ...(body && { "content-type": "application/json" }), ...headers };
    try {
      answer = await fetch(path, { method, headers: all, body, signal, cache: "no-store" });
    } catch (error) {
      if (error.name !== "AbortError") this.tell("lost");
      throw error.name === "AbortError" ? error : new Refused(0, "The server does not answer.");
    }
    this.tell("found");
    if (answer.ok) return answer;
    const said = await answer.json().catch(() => ({}));
    if (answer.status === 401) this.tell("stranger");
    throw new Refused(answer.status, said.message ?? `The server said ${answer.status}.`);
  }

  /** A call of the store by its name. `at`: asked at the cursors; or {valid, tx}. */
  async call(name, args = {}, { signal, ...more } = {}) {
    const [path, body] = [`/${name.replace(".", "/")}?${query(this, more)}`, JSON.stringify(args)];
    const asked = async () => (await this.ask(path, { method: "POST", body, signal })).json();
    if (more.write) return asked().finally(() => this.#still.clear());
    return more.at === false && !signal ? this.#once(path + body, asked) : asked();
  }

  /** An answer that is asked once while a cursor moves: for STILL at most, and until something is written. */
  #once(key, asked) {
    const known = this.#still.get(key);
    if (known && performance.now() - known.since < STILL) return known.answer;
    if (this.#still.size > 100) this.#still.clear();
    const answer = asked();
    this.#still.set(key, { answer, since: performance.now() });
    answer.catch(() => this.#still.delete(key));
    return answer;
  }

  async learn() {
    this.rights = (await (await this.ask("/rights")).json()).rights;
  }

  /** Follow what is written, while the page is seen: each change tells `news`. */
  async listen() {
    let since = "now";
    for (;;) {
      if (document.hidden) await new Promise((seen) => document.addEventListener("visibilitychange", seen, { once: true }));
      const stop = new AbortController();
      const hide = () => document.hidden && stop.abort();
      document.addEventListener("visibilitychange", hide);
      try {
        const answer = await this.ask(`/changes?since=${encodeURIComponent(since)}`, { headers: { accept: "text/event-stream" }, signal: stop.signal });
        this.tell("listening");
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let rest = ""; ; ) {
          const { value, done } = await reader.read();
          if (done) break;
          const events = (rest + value).split("\n\n");
          rest = events.pop();
          for (const each of events) {
            const id = /^id: (.*)$/m.exec(each);
            const data = /^data: (.*)$/m.exec(each);
            if (id) since = id[1];
            if (!id || !data) continue;
            this.#still.clear();
            this.tell("news", JSON.parse(data[1]));
          }
        }
      } catch (error) {
        if (error.status === 401) return;
      }
      document.removeEventListener("visibilitychange", hide);
      if (!stop.signal.aborted) await new Promise((later) => setTimeout(later, 1000));
    }
  }
}
