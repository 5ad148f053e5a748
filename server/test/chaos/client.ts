import { Agent, request } from "node:http";
import { setTimeout } from "node:timers/promises";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { alphanumeric, type Random } from "../../../engine/src/random/random.ts";
import { ROOT_KEY } from "../process.ts";
import type { Answer, Journal } from "./journal.ts";

const ATTEMPT_MS = 6_000;
const RETRY_MS = [50, 500] as const;

/** The outcome of a call, and how many attempts it took. */
export interface Settled extends Answer {
  attempts: number;
}

/** Where calls go: the load balancer (neither), one node, or one edge. */
export interface Target {
  port: number;
  node?: number;
  edge?: number;
}

interface CallOptions {
  idempotencyKey?: string;
  /** Statuses other than 200 that are no failure. */
  expected?: readonly number[];
}

/** Calls the service as a careful program does: it repeats a call without a clear outcome, with its Idempotency-Key. */
export class Client {
  readonly #journal: Journal;
  readonly #random: Random;
  readonly #agent = new Agent({ keepAlive: true });
  /** Whether the last answer was a failure. */
  hasFailed = false;
  /** When repetitions end. */
  deadline = Number.POSITIVE_INFINITY;

  constructor(journal: Journal, random: Random) {
    this.#journal = journal;
    this.#random = random;
  }

  /** One attempt. */
  async once(target: Target, operation: string, body: unknown, call: CallOptions = {}): Promise<Answer> {
    const answer = await this.#send(target, operation, JSON.stringify(body), call.idempotencyKey);
    this.#journal.recordAnswer(answer, call.expected);
    this.hasFailed = answer.status !== 200;
    return answer;
  }

  /**
   * Repeats the call until it has a clear outcome, with one Idempotency-Key, which operations that create or charge
   * respect. The outcome is unknown (status 0) only if there is none by `deadline`. `goneIsDone`: a repetition that gets 404
   * shows that an earlier attempt was executed. `mayConflict`: 409 is a clear outcome.
   */
  async settle(
    target: Target,
    operation: string,
    body: unknown,
    { goneIsDone = false, mayConflict = false } = {},
  ): Promise<Settled> {
    const idempotencyKey = alphanumeric(this.#random, 20);
    const sentAt = systemClock.monotonic();
    for (let attempts = 1; ; attempts++) {
      const expected = goneIsDone && attempts > 1 ? [404] : [];
      const conflict = mayConflict ? [409] : [];
      const answer = {
        ...(await this.once(target, operation, body, { idempotencyKey, expected: [...expected, ...conflict] })),
        attempts,
      };
      const { status } = answer;
      if (expected.includes(status)) return { ...answer, status: 200, sentAt };
      if (conflict.includes(status)) return { ...answer, sentAt };
      const isOpen = status === 0 || status >= 500 || status === 409 || status === 429;
      if (!isOpen) return { ...answer, sentAt };
      if (systemClock.monotonic() > this.deadline) return { ...answer, status: 0, sentAt };
      await this.pause(...RETRY_MS);
    }
  }

  /** Waits for a random time in ms. */
  async pause(from: number, to: number): Promise<void> {
    await setTimeout(from + this.#random.below(to - from));
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(target: Target, operation: string, body: string, idempotencyKey: string | undefined): Promise<Answer> {
    const sentAt = systemClock.monotonic();
    return new Promise((resolve) => {
      const finish = (status: number, node: number | undefined, text: string) => {
        const parsed = parse(text);
        const error = parsed?.error && `${parsed.error.type}: ${parsed.error.detail}`;
        const problem = status === 0 ? text : (error ?? (status === 200 ? undefined : "no problem"));
        const answeredAt = systemClock.monotonic();
        resolve({ operation, status, node, edge: target.edge, problem, data: parsed?.data, sentAt, answeredAt });
      };
      const call = request(
        {
          host: "127.0.0.1",
          port: target.port,
          path: `/v2/${operation}`,
          method: "POST",
          agent: this.#agent,
          headers: {
            "content-type": "application/json",
            "content-length": Buffer.byteLength(body),
            authorization: `Bearer ${ROOT_KEY}`,
            ...(idempotencyKey && { "idempotency-key": idempotencyKey }),
          },
        },
        (response) => {
          let text = "";
          response
            .setEncoding("utf8")
            .on("data", (part: string) => {
              text += part;
            })
            .on("end", () => {
              clearTimeout(timer);
              // Answers of nodes have a request id, answers of the load balancer itself do not.
              const isNode = response.headers["x-request-id"] !== undefined;
              const named = /^node(\d+)$/.exec(String(response.headers["x-node"]))?.[1];
              const node = isNode ? (target.node ?? (named === undefined ? undefined : Number(named))) : undefined;
              finish(response.statusCode!, node, text);
            })
            .on("error", (error) => finish(0, target.node, error.message));
        },
      );
      const timer = globalThis.setTimeout(() => call.destroy(new Error("timed out")), ATTEMPT_MS);
      call.on("error", (error: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        finish(0, target.node, error.code ?? error.message);
      });
      // An answer that was cut off has neither an end nor always an error.
      call.on("close", () => finish(0, target.node, "closed"));
      call.end(body);
    });
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape of the answer.
function parse(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
