import type { components, paths } from "./api.js";

export type Schemas = components["schemas"];
type Post<N extends string> = `/${N}` extends keyof paths ? (paths[`/${N}`] extends { post: infer P } ? P : never) : never;
type Json<C> = C extends { content: { "application/json": infer J } } ? J : never;

/** The names of all calls of a server, such as `node` or `recall/recall`. */
export type Call = { [P in keyof paths]: P extends `${string}{${string}` ? never : P extends `/${infer N}` ? (paths[P] extends { post: { responses: { 200: unknown } } } ? N : never) : never }[keyof paths];
/** The arguments of a call. */
export type Arguments<N extends Call> = Post<N> extends { requestBody?: infer B } ? Json<NonNullable<B>> : never;
/** The answer of a call. */
export type Answer<N extends Call> = Post<N> extends { responses: { 200: infer R } } ? Json<R> : never;
/** What stands beside the arguments: the coordinate of a read (`valid`, `tx`, `as_of`), the author of a write, a branch. */
export type At<N extends Call> = Post<N> extends { parameters: { query?: infer Q } } ? NonNullable<Q> : never;

/** A refusal by the server. `name` is the class of the error, `message` says what to do. */
export class GraphstoreError extends Error {
  constructor(readonly status: number, readonly answer: Schemas["Error"]) {
    super(answer.message);
    this.name = answer.error;
  }
}

/** A client of the server at a URL. `token`: a token of the store or of the server's issuer, or a function that returns one for each request. */
export class Graphstore {
  constructor(readonly url: string, private readonly token: string | (() => string | Promise<string>)) {}

  /** Ask the server for one call. Throws GraphstoreError if it refuses. */
  async call<N extends Call>(name: N, args: Arguments<N>, at?: At<N>): Promise<Answer<N>> {
    const token = typeof this.token === "string" ? this.token : await this.token();
    const query = new URLSearchParams(Object.entries(at ?? {}).flatMap(([key, value]) => (value == null ? [] : [[key, String(value)]])));
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const reply = await fetch(`${this.url.replace(/\/$/, "")}/${name}?${query}`, { method: "POST", headers, body: JSON.stringify(args) });
    const text = await reply.text();
    const isJson = reply.headers.get("content-type")?.startsWith("application/json") ?? false;
    if (reply.ok) return (isJson ? JSON.parse(text) : text) as Answer<N>;
    throw new GraphstoreError(reply.status, isJson ? (JSON.parse(text) as Schemas["Error"]) : { error: "HttpError", message: `${reply.status}: ${text.slice(0, 200)}` });
  }
}
