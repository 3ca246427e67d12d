// Runs the tools of vercel-ai.ts with a model that asks for one of each: node dist/try-vercel-ai.js URL TOKEN
import { generateText, stepCountIs } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { Graphstore } from "graphstore-client";
import { memoryTools } from "./vercel-ai.js";

declare const process: { argv: string[] };
const [, , url = "", token = ""] = process.argv;
const asked = [
  { toolName: "remember", input: { says: "lunch is at noon" } },
  { toolName: "recall", input: { question: "lunch" } },
];
let turn = 0;
const model = new MockLanguageModelV4({
  doGenerate: async () => {
    const call = asked[turn++];
    return {
      content: call === undefined
        ? [{ type: "text" as const, text: "done" }]
        : [{ type: "tool-call" as const, toolCallId: String(turn), toolName: call.toolName, input: JSON.stringify(call.input) }],
      finishReason: { unified: call === undefined ? ("stop" as const) : ("tool-calls" as const), raw: undefined },
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      },
      warnings: [],
    };
  },
});
const answer = await generateText({ model, tools: memoryTools(new Graphstore(url, token)), prompt: "When is lunch?", stopWhen: stepCountIs(5) });
const results = answer.steps.flatMap((step) => step.toolResults.map((result) => JSON.stringify(result.output)));
if (results.length !== 2 || !results[1]?.includes("lunch is at noon")) throw new Error(JSON.stringify(results));
console.log(answer.text);
