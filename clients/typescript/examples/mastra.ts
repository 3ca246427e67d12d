// A memory for Mastra: give `memoryTools(store)` to an `Agent` as `tools`.
import { createTool } from "@mastra/core/tools";
import type { Graphstore } from "graphstore-client";
import { z } from "zod";

export function memoryTools(store: Graphstore) {
  return {
    remember: createTool({
      id: "remember",
      description: "Remember a fact from now on.",
      inputSchema: z.object({ says: z.string().describe("the fact, as one sentence") }),
      outputSchema: z.object({ id: z.string() }),
      execute: async ({ says }) => ({ id: (await store.call("add_node", { kind: "fact", content: { says } })).id }),
    }),
    whatSuperseded: createTool({
      id: "what-superseded",
      description: "Say what took the place of a thing, and why.",
      inputSchema: z.object({ id: z.string() }),
      outputSchema: z.object({ current: z.array(z.string()) }),
      execute: async ({ id }) => {
        const found = await store.call("what_superseded", { id }); // of a link it is another answer
        return { current: "current" in found ? found.current.map((node) => node.id) : [] };
      },
    }),
  };
}
