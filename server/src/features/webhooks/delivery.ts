import { after, type Instant, type Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { every } from "../../../../engine/src/clock/every.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import type { Events } from "../../log/events.ts";
import { OutboundClient } from "../../platform/outbound/client.ts";
import type { Transport } from "../../platform/outbound/exchange.ts";
import { OUTBOUND_END_MAX } from "../../platform/outbound/outbound-thread.ts";
import { hostOf } from "../../platform/outbound/url.ts";
import { HeldLease, type HeldLeaseOptions } from "../../platform/store/held-lease.ts";
import type { Store } from "../../platform/store/store.ts";
import { webhookBody, webhookHeaders } from "./message.ts";
import type { webhookProcedures } from "./procedures.ts";
import type { Receiver } from "./receiver.ts";
import { nextAttempt } from "./retries.ts";
import { type SlotBounds, Slots } from "./slots.ts";
import type { Attempt, DueDelivery, DueWebhook } from "./statements/delivering.ts";

/** Interval between two looks for work. */
const INTERVAL: Milliseconds = 500;

/** The time of one request. */
const REQUEST_TIMEOUT: Milliseconds = 15_000;

/** The beginning of an answer that is read. It is not kept. */
const ANSWER_BYTES_MAX = 1_024;

/** Requests that are under way. A workspace takes half of those to one host at most. */
const SLOTS: SlotBounds = { total: 100, perHost: 40, perWorkspace: 20, perWebhook: 5, slow: 20 };

/** The time of an attempt after which its endpoint counts as slow, and for how long. */
const SLOW_MIN: Milliseconds = 5_000;
const SLOW_FOR: Milliseconds = 60_000;

/** Slow endpoints that are remembered. Beyond it, all are forgotten: each gets on the list again by its next attempt. */
const SLOW_MAX = 10_000;

/** Webhooks whose deliveries are read at once. */
const WEBHOOKS_PER_READ = 20;

const GONE = 410;

interface WebhookDeliveryOptions extends Pick<HeldLeaseOptions, "clock" | "holder" | "formerHolders"> {
  store: Pick<Store<ReturnType<typeof webhookProcedures>>, "read" | "transact"> & HeldLeaseOptions["store"];
  client: Pick<OutboundClient, "send" | "close">;
  random: Random;
  events: Pick<Events, "webhookDisabled" | "webhooksFailed">;
}

/**
 * Hands events of the outbox to webhooks, and delivers them, on the node that has the lease.
 *
 * Every attempt is recorded after its answer. What a crash leaves unrecorded is sent again, so a receiver gets each event
 * at least once. An event of an object is sent after all earlier ones have been answered or given up. No request is under
 * way when the lease can expire, so two nodes never send events of one object at the same time.
 */
export class WebhookDelivery {
  /** Attempts of this process, by result. */
  readonly attempts = { delivered: 0, failed: 0, dead: 0 };
  readonly #options: WebhookDeliveryOptions;
  readonly #held: HeldLease;
  readonly #timer: { cancel(): void };
  readonly #slots = new Slots(SLOTS);
  /** Deliveries under way or not recorded yet, by webhook and number, with what gives their slots back. */
  readonly #underWay = new Map<string, () => void>();
  /** Monotonic time until which a webhook counts as slow. */
  readonly #slowUntil = new Map<string, Milliseconds>();
  #recording: { attempt: Attempt; webhook: Receiver }[] = [];
  #running: Promise<void> | undefined;
  /** The last transaction of deliveries. */
  #writing: Promise<unknown> = Promise.resolve();
  #isRequested = false;
  #isStopped = false;
  #outboxLag: Milliseconds = 0;
  #dueLag: Milliseconds = 0;
  #lookedAt = 0;

  constructor(options: WebhookDeliveryOptions) {
    this.#options = options;
    this.#held = new HeldLease({ ...options, name: "webhooks" });
    this.#timer = every(options.clock, INTERVAL, () => this.#run());
  }

  /** Whether this node has the lease, as far as it knows. */
  get hasLease(): boolean {
    return this.#held.lease !== undefined;
  }

  /** Requests under way. */
  get open(): number {
    return this.#slots.total;
  }

  /** The age of the oldest undelivered event, failing webhooks excluded. 0 without the lease. */
  get lag(): Milliseconds {
    if (!this.hasLease) return 0;
    const sinceLook = this.#options.clock.monotonic() - this.#lookedAt;
    return Math.max(this.#outboxLag, this.#dueLag) + (sinceLook > 2 * INTERVAL ? sinceLook : 0);
  }

  /** Ends requests under way, which are sent again later, and gives the lease back. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer.cancel();
    this.#options.client.close();
    // Not for reads: the database may never answer them.
    await this.#writing.catch(() => {});
    if (this.hasLease) await this.#record().catch(() => {});
    await this.#held.release();
  }

  /** Looks for work until there is none, once at a time. */
  #run(): Promise<void> {
    this.#isRequested = true;
    this.#running ??= this.#runWhileRequested().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #runWhileRequested(): Promise<void> {
    while (this.#isRequested && !this.#isStopped) {
      this.#isRequested = false;
      try {
        if (await this.#haveLease()) await this.#pass();
      } catch (error) {
        if (this.#isStopped) return;
        // The embedded database returns errors of its thread by name.
        if ((error as Error).name === "LeaseLost") this.#lose();
        // `databaseLost` reports that the database does not answer.
        else if ((error as Error).name !== "StoreUnavailable") this.#options.events.webhooksFailed(error);
      }
    }
  }

  async #haveLease(): Promise<boolean> {
    const { hasLease } = this;
    await this.#held.take();
    if (!hasLease) this.#lookedAt = this.#options.clock.monotonic();
    return this.hasLease;
  }

  #lose(): void {
    this.#held.lose();
    // The next holder sends again what was not recorded.
    for (const { attempt, webhook } of this.#recording.splice(0)) this.#end(webhook, attempt.eventNumber);
  }

  async #pass(): Promise<void> {
    const { store, clock } = this.#options;
    await this.#record();
    const now = clock.now();
    const { outboxSince, behind, due } = await store.read("deliveryWork", now);
    if (this.#isStopped) return;
    this.#lookedAt = clock.monotonic();
    this.#outboxLag = outboxSince === null ? 0 : Math.max(0, now - outboxSince);
    if (outboxSince !== null) {
      await this.#write(store.transact("handOut", { lease: this.#held.lease!, now }));
      this.#isRequested = true;
    }
    if (behind.length > 0) {
      const step = { lease: this.#held.lease!, webhookIds: behind, now };
      if (await this.#write(store.transact("catchUp", step))) this.#isRequested = true;
    }
    if (await this.#begin(due, now)) this.#isRequested = true;
  }

  /** Records the attempts that have ended. */
  async #record(): Promise<void> {
    const { store, clock, events } = this.#options;
    const ended = this.#recording;
    if (ended.length === 0) return;
    this.#recording = [];
    try {
      const attempts = ended.map(({ attempt }) => attempt);
      const recording = store.transact("recordAttempts", { lease: this.#held.lease!, attempts, now: clock.now() });
      const disabled = await this.#write(recording);
      for (const webhook of disabled) events.webhookDisabled(webhook);
    } catch (error) {
      this.#recording = [...ended, ...this.#recording];
      throw error;
    }
    for (const { attempt, webhook } of ended) this.#end(webhook, attempt.eventNumber);
  }

  /** Makes a stop wait for a transaction. */
  #write<T>(transaction: Promise<T>): Promise<T> {
    this.#writing = transaction;
    return transaction;
  }

  /** Begins requests in the free slots; whether it began any. */
  async #begin(due: readonly DueWebhook[], now: Instant): Promise<boolean> {
    const { store, clock } = this.#options;
    // An endpoint that fails, or is slow, delays its own deliveries.
    const delayed = due.filter(({ webhookId, isFailing }) => !isFailing && this.#slots.of(webhookId) === 0);
    this.#dueLag = delayed.reduce((lag, { dueAt }) => Math.max(lag, now - dueAt), 0);
    const candidates = due.map((webhook) => {
      return { ...webhook, host: hostOf(webhook.url), isSlow: webhook.isFailing || this.#isSlow(webhook.webhookId) };
    });
    const shares = [...this.#slots.divide(candidates)].slice(0, WEBHOOKS_PER_READ);
    if (shares.length === 0) return false;
    const wanted = shares.map(([{ webhookId }, count]) => ({ webhookId, limit: count + this.#slots.of(webhookId) }));
    const found = await store.read("dueDeliveries", { wanted, now });
    let begun = 0;
    for (const { webhook, deliveries } of found) {
      const [candidate, count] = shares.find(([{ webhookId }]) => webhookId === webhook.webhookId)!;
      const free = deliveries.filter(({ event_number }) => !this.#underWay.has(nameOf(webhook, event_number)));
      for (const delivery of free.slice(0, count)) {
        // A request must have ended when another node can take the lease.
        if (this.#isStopped || clock.monotonic() + REQUEST_TIMEOUT + OUTBOUND_END_MAX >= this.#held.until) return false;
        // With the URL that was read last.
        const giveBack = this.#slots.take({ ...candidate, host: hostOf(webhook.url) });
        this.#underWay.set(nameOf(webhook, delivery.event_number), giveBack);
        begun++;
        void this.#attempt(webhook, delivery);
      }
    }
    return begun > 0;
  }

  async #attempt(webhook: Receiver, delivery: DueDelivery): Promise<void> {
    const { client, clock, random } = this.#options;
    const [at, startedAt] = [clock.now(), clock.monotonic()];
    const body = webhookBody(delivery);
    const headers = webhookHeaders(delivery.event_id, body, webhook.secrets, at);
    const { answerStatus, error } =
      webhook.secrets.length === 0
        ? {
            answerStatus: null,
            error: "The secret of the webhook cannot be read: rotate it, unless the key of the vault is missing",
          }
        : await client.send({ url: webhook.url, method: "POST", headers, body }).then(
            ({ status }) => ({
              answerStatus: status,
              error: status >= 200 && status <= 299 ? null : `The answer had the status ${status}`,
            }),
            (failure: Error) => ({ answerStatus: null, error: failure.message }),
          );
    // A stop ended it.
    if (error !== null && this.#isStopped) return;
    const duration = clock.monotonic() - startedAt;
    if (duration >= SLOW_MIN) this.#recordSlow(webhook.webhookId);
    const isGone = answerStatus === GONE;
    const chance = random.below(2 ** 20) / 2 ** 20;
    const endedAt = after(at, Math.round(duration));
    const nextAttemptAt =
      error === null || isGone ? null : nextAttempt(delivery.attempts + 1, endedAt, delivery.deadline, chance);
    this.attempts[error === null ? "delivered" : nextAttemptAt === null ? "dead" : "failed"]++;
    const { webhookId, url } = webhook;
    const { event_number: eventNumber } = delivery;
    const attempt = { webhookId, url, eventNumber, at: endedAt, answerStatus, error, duration, nextAttemptAt, isGone };
    this.#recording.push({ attempt, webhook });
    void this.#run();
  }

  #end(webhook: Receiver, eventNumber: number): void {
    const name = nameOf(webhook, eventNumber);
    this.#underWay.get(name)!();
    this.#underWay.delete(name);
  }

  #isSlow(webhookId: string): boolean {
    return (this.#slowUntil.get(webhookId) ?? 0) > this.#options.clock.monotonic();
  }

  #recordSlow(webhookId: string): void {
    if (this.#slowUntil.size >= SLOW_MAX) this.#slowUntil.clear();
    this.#slowUntil.set(webhookId, this.#options.clock.monotonic() + SLOW_FOR);
  }
}

/** Starts to deliver. `allowPrivate`: to any address, and over unencrypted HTTP. */
export function openWebhookDelivery({
  allowPrivate,
  outbound,
  ...options
}: Omit<WebhookDeliveryOptions, "client"> & { allowPrivate: boolean; outbound: Transport }): WebhookDelivery {
  const client = new OutboundClient({
    clock: options.clock,
    transport: outbound,
    allowPrivate,
    timeout: REQUEST_TIMEOUT,
    answerBytesMax: ANSWER_BYTES_MAX,
    // The slots have the bounds: a request without one would count as a failed attempt.
    requestsPerHost: SLOTS.total,
    requestsMax: SLOTS.total,
  });
  return new WebhookDelivery({ ...options, client });
}

function nameOf({ webhookId }: Pick<Receiver, "webhookId">, eventNumber: number): string {
  return `${webhookId} ${eventNumber}`;
}
