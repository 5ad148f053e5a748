import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestServer } from "./harness.ts";
import { eventually } from "./process.ts";

/** A request that a receiver got. */
export interface Received {
  /** The id of the event. */
  id: string;
  headers: IncomingHttpHeaders;
  body: string;
  event: { id: string; type: string; timestamp: string; data: Record<string, unknown> };
}

/** An endpoint on this machine that records what it gets. */
export class WebhookReceiver {
  readonly received: Received[] = [];
  /** What it answers: a status, or nothing until the test does it. */
  answer: (request: Received, response: ServerResponse) => number | undefined = () => 200;
  readonly #server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const event = JSON.parse(body) as Received["event"];
    const got = { id: request.headers["webhook-id"] as string, headers: request.headers, body, event };
    const status = this.answer(got, response);
    this.received.push(got);
    if (status !== undefined) response.writeHead(status).end();
  });

  static async open(t: { after(undo: () => void): void }): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver();
    receiver.#server.listen(0, "127.0.0.1");
    await once(receiver.#server, "listening");
    t.after(() => {
      receiver.#server.close();
      receiver.#server.closeAllConnections();
    });
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hooks`;
  }

  /** The types of the events that it got, in order. */
  get types(): string[] {
    return this.received.map(({ event }) => event.type);
  }
}

/** Shorter than the time after which a request is ended. */
const STEP = 2_500;

/** Advances the clock in steps. Each one ends when no request is under way, as if the network took no time. */
export async function passDelivering(server: TestServer, length: number): Promise<void> {
  for (let left = length; left > 0; left -= STEP) {
    await server.advance(Math.min(left, STEP));
    await settle(server);
  }
}

/** Sets the wall clock forward by a long time, and delivers what is due then. */
export async function jump(server: TestServer, length: number): Promise<void> {
  server.clock.step(length);
  await passDelivering(server, 1_000);
}

/** Resolves when no request is under way, and none waits to be recorded. */
export async function settle(server: TestServer): Promise<void> {
  await eventually("requests to webhooks to end", async () => {
    await server.store.settled();
    return /^latchkey_webhooks_open 0$/m.test(await server.scrape());
  });
}

/** Asserts that the events of each object were first received in the order of the list. */
export function assertOrder(
  received: readonly Received[],
  objectOf: (event: Received["event"]) => string,
  all: readonly string[],
): void {
  const first = [...new Set(received.map(({ id }) => id))];
  assert.deepEqual([...first].sort(), [...all].sort());
  const byId = new Map(received.map(({ id, event }) => [id, event]));
  const order = (ids: readonly string[]) => Object.groupBy(ids, (id) => objectOf(byId.get(id)!));
  assert.deepEqual({ ...order(first) }, { ...order(all.filter((id) => byId.has(id))) });
}
