/** An upstream that answers with as many words as `max_tokens` allows, one every `WORD_MS`. The question `fail` fails. */
import { setTimeout } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import type { Chat } from "./chat.ts";
import { promptTokensAbout } from "./chat.ts";

const { PORT = "8090", WORD_MS = "50" } = process.env;
const WORD = "word";

const app = new Hono();
app.post("/v1/chat/completions", async (c) => {
  const chat = await c.req.json<Chat>();
  if (chat.messages.at(-1)?.content === "fail") return c.json({ error: { message: "The model is overloaded." } }, 500);
  const usage = { prompt_tokens: promptTokensAbout(chat), completion_tokens: chat.max_tokens };
  const answer = { id: "chatcmpl-1", object: "chat.completion", created: 0, model: chat.model };
  if (!chat.stream) {
    await setTimeout(chat.max_tokens * Number(WORD_MS));
    const message = { role: "assistant", content: Array(chat.max_tokens).fill(WORD).join(" ") };
    return c.json({ ...answer, choices: [{ index: 0, message, finish_reason: "length" }], usage });
  }
  return streamSSE(c, async (stream) => {
    const send = (choices: object[], more = {}) =>
      stream.writeSSE({ data: JSON.stringify({ ...answer, object: "chat.completion.chunk", choices, ...more }) });
    for (let sent = 0; sent < chat.max_tokens && !stream.aborted; sent++) {
      await send([{ index: 0, delta: { role: "assistant", content: WORD }, finish_reason: null }]);
      await setTimeout(Number(WORD_MS));
    }
    await send([], { usage });
    await stream.writeSSE({ data: "[DONE]" });
  });
});

serve({ fetch: app.fetch, port: Number(PORT) }, ({ port }) =>
  console.log(`Mock upstream on http://localhost:${port}/v1`),
);
