// A memory for the Vercel AI SDK: give `memoryTools(store)` to `generateText` or `streamText` as `tools`.
import { tool } from "ai";
import type { Graphstore } from "graphstore-client";
import { z } from "zod";

export function memoryTools(store: Graphstore) {
  return {
    remember: tool({
      description: "Remember a fact from now on.",
      inputSchema: z.object({ says: z.string().describe("the fact, as one sentence") }),
      execute: async ({ says }) => (await store.call("add_node", { kind: "fact", content: { says } })).id,
    }),
    recall: tool({
      description: "Find what is known about a question, now or as it was on another day.",
      inputSchema: z.object({ question: z.string(), day: z.string().optional().describe("such as 2026-03-01") }),
      execute: async ({ question, day }) => {
        const found = await store.call("recall/recall", { text: question, k: 5 }, day === undefined ? {} : { valid: day });
        return found.hits.map((hit) => hit.node);
      },
    }),
  };
}
