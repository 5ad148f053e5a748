import type { Latchkey } from "@latchkey/sdk";
import { type OpenHold, verify } from "@latchkey/sdk/hono";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { type Chat, mostOf, promptTokensAbout, readChat } from "./chat.ts";
import { costOf, tokensAbout, type Usage } from "./prices.ts";

const BODY_BYTES_MAX = 262_144;
/** The client extends a hold for as long as its answer lasts. If the gateway dies, it expires after this time. */
const HOLD_MS = 15_000;

interface Options {
  readonly latchkey: Latchkey;
  readonly apiId: string;
  readonly upstream: Upstream;
}

/** A provider with the API of OpenAI. */
export interface Upstream {
  /** Such as `https://api.openai.com/v1`. */
  readonly url: string;
  readonly key: string;
}

/** The gateway. A request holds the most that it can cost, and is charged what the upstream says that it did cost. */
export function gateway({ latchkey, apiId, upstream }: Options) {
  const app = new Hono();
  app.use(bodyLimit({ maxSize: BODY_BYTES_MAX, onError: (c) => problem(c, 413, "The body is too long.") }));

  app.post(
    "/v1/chat/completions",
    verify({
      latchkey,
      apiId,
      // A request that cannot be answered costs nothing.
      cost: async (c) => {
        const chat = await readChat(c);
        return chat ? mostOf(chat) : 0;
      },
      // `charge`: an answer that a dying gateway has begun to send is not free.
      hold: { ttl: HOLD_MS, onExpiry: "charge" },
      onReject: (rejection) => ({ ...rejection, body: errorOf(`The request was rejected: ${rejection.code}.`) }),
    }),
    async (c) => {
      const chat = await readChat(c);
      if (!chat) {
        return problem(c, 400, "The body must have a `model` of the price list and `messages` with texts.");
      }
      const meter = new Meter(chat, c.var.latchkey.hold!);
      const answer = await ask(upstream, chat, c.req.raw.signal);
      if (!answer?.ok || !answer.body) {
        meter.count({ prompt_tokens: 0, completion_tokens: 0 });
        return problem(c, 502, "The model does not answer.");
      }
      if (chat.stream)
        return c.body(answer.body.pipeThrough(meter.stream()), 200, { "Content-Type": "text/event-stream" });
      const completion = (await answer.json()) as { usage: Usage };
      meter.count(completion.usage);
      return c.json(completion);
    },
  );

  app.all("*", (c) => problem(c, 404, "There is no such route."));
  return app;
}

/** Undefined if the upstream cannot be reached. When the end user hangs up, the upstream is left too. */
function ask({ url, key }: Upstream, chat: Chat, signal: AbortSignal): Promise<Response | undefined> {
  return fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ ...chat, ...(chat.stream && { stream_options: { include_usage: true } }) }),
    signal,
  }).catch(() => undefined);
}

/** Reports what a call has cost so far, so that an answer that breaks off is charged what was sent. */
class Meter {
  readonly #chat: Chat;
  readonly #hold: OpenHold;
  #usage: Usage;

  constructor(chat: Chat, hold: OpenHold) {
    this.#chat = chat;
    this.#hold = hold;
    // The upstream charges the prompt even if its answer is not awaited.
    this.#usage = { prompt_tokens: promptTokensAbout(chat), completion_tokens: 0 };
    this.count(this.#usage);
  }

  count(usage: Usage): void {
    this.#usage = usage;
    this.#hold.report({ credits: costOf(this.#chat.model, usage), tags: [`model=${this.#chat.model}`] });
  }

  /** Counts the events of a stream that passes through. The last one has the usage by the upstream. */
  stream(): TransformStream<Uint8Array, Uint8Array> {
    const decoder = new TextDecoder();
    let rest = "";
    return new TransformStream({
      transform: (bytes, controller) => {
        const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
        rest = lines.pop()!;
        for (const line of lines) this.#countLine(line);
        controller.enqueue(bytes);
      },
    });
  }

  #countLine(line: string): void {
    if (!line.startsWith("data: {")) return;
    const { choices, usage } = JSON.parse(line.slice("data: ".length)) as {
      choices?: { delta: { content?: string | null } }[];
      usage?: Usage | null;
    };
    const text = choices?.[0]?.delta.content ?? "";
    const { prompt_tokens, completion_tokens } = this.#usage;
    this.count(usage ?? { prompt_tokens, completion_tokens: completion_tokens + tokensAbout(text) });
  }
}

/** An error in the shape in which clients of OpenAI expect it. */
function problem(c: Context, status: 400 | 404 | 413 | 502, detail: string) {
  return c.json(errorOf(detail), status);
}

function errorOf(message: string) {
  return { error: { message, type: "gateway_error" } };
}
