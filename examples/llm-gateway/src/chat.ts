import type { Context } from "hono";
import { costOf, isModel, type Model, tokensAbout, tokensAtMost } from "./prices.ts";

const ANSWER_TOKENS_DEFAULT = 1_024;
const ANSWER_TOKENS_MAX = 16_384;

/** A request for a chat completion. */
export interface Chat {
  readonly model: Model;
  readonly messages: readonly Message[];
  readonly max_tokens: number;
  readonly stream: boolean;
}

interface Message {
  readonly role: string;
  readonly content: string;
}

/** The request; undefined if this gateway cannot price it. Hono keeps the body, so it can be read again. */
export async function readChat(c: Context): Promise<Chat | undefined> {
  const body: unknown = await c.req.json().catch(() => undefined);
  if (typeof body !== "object" || body === null) return undefined;
  const { model, messages, stream = false, max_tokens = ANSWER_TOKENS_DEFAULT } = body as Record<string, unknown>;
  if (!isModel(model) || !Array.isArray(messages) || messages.length === 0) return undefined;
  if (!messages.every(isMessage) || typeof stream !== "boolean") return undefined;
  if (!Number.isInteger(max_tokens) || (max_tokens as number) < 1 || (max_tokens as number) > ANSWER_TOKENS_MAX) {
    return undefined;
  }
  // Only members that are known here reach the upstream: another one could make it cost more, as `n` does.
  const texts = messages.map(({ role, content }) => ({ role, content }));
  return { model, messages: texts, stream, max_tokens: max_tokens as number };
}

/** The most that a request can cost, in micro-dollars. */
export function mostOf({ model, messages, max_tokens }: Chat): number {
  return costOf(model, { prompt_tokens: tokensAtMost(textOf(messages)), completion_tokens: max_tokens });
}

/** About what the prompt costs, in tokens, for an answer that ends before the upstream has said it. */
export function promptTokensAbout({ messages }: Chat): number {
  return tokensAbout(textOf(messages));
}

/** What counts as the prompt: each message has some tokens besides its text, which the names of its members stand for. */
function textOf(messages: readonly Message[]): string {
  return JSON.stringify(messages);
}

function isMessage(message: unknown): message is Message {
  if (typeof message !== "object" || message === null) return false;
  const { role, content } = message as Record<string, unknown>;
  return typeof role === "string" && typeof content === "string";
}
