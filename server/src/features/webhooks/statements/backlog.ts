import type { Instant, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type { WebhookRow } from "../../../platform/store/schema.ts";

/** The most deliveries of a webhook that wait. */
export const PENDING_MAX = 10_000;

/** The same for a webhook that has not delivered lately, or whose last attempt failed. */
export const PENDING_UNPROVEN_MAX = 200;

/** For how long a delivery shows that an endpoint works. */
const PROOF_LIFE: Milliseconds = 60_000;

/** How often a webhook without room gets one more delivery: events of other objects may be accepted by now. */
const PROBE_INTERVAL: Milliseconds = 60_000;

/** More ranges than these are joined, with the events between them. */
const RANGES_MAX = 20;

/** Events that wait without a delivery: from one number to another, or to the newest. */
type Range = [from: number, to: number | null];

/** How many deliveries a webhook can get now. */
export function roomOf(
  webhook: Pick<WebhookRow, "failing_since" | "delivered_at" | "handed_at" | "pending">,
  now: Instant,
): number {
  const { failing_since, delivered_at, handed_at, pending } = webhook;
  const isProven = failing_since === null && delivered_at !== null && now - delivered_at <= PROOF_LIFE;
  const room = (isProven ? PENDING_MAX : PENDING_UNPROVEN_MAX) - pending;
  if (room > 0) return room;
  return pending < PENDING_MAX && now - (handed_at ?? 0) >= PROBE_INTERVAL ? 1 : 0;
}

/**
 * The events of a webhook that wait without deliveries, because too many deliveries wait: ranges of numbers, in ascending
 * order. Those between two ranges happened while it was disabled. So an endpoint that is dead costs a position, and not a
 * row for each event.
 */
export class Backlog {
  readonly #ranges: Range[];

  constructor(column: string | null) {
    this.#ranges = column === null ? [] : JSON.parse(column);
  }

  get column(): string | null {
    return this.isEmpty ? null : JSON.stringify(this.#ranges);
  }

  get isEmpty(): boolean {
    return this.#ranges.length === 0;
  }

  /** The first range. */
  get first(): Readonly<Range> | undefined {
    return this.#ranges[0];
  }

  /** Whether an event waits here. A late commit may have a number before the first range. */
  has(number: number): boolean {
    return this.#ranges.some(([from, to]) => from <= number && (to === null || number <= to));
  }

  /** Every event from this one on waits here. */
  open(from: number): void {
    const last = this.#ranges.at(-1);
    if (last !== undefined && (last[1] === null || this.#ranges.length >= RANGES_MAX)) last[1] = null;
    else this.#ranges.push([from, null]);
  }

  /** No event from this one on waits here, because the webhook is disabled. */
  closeBefore(number: number): void {
    const last = this.#ranges.at(-1);
    if (last === undefined || last[1] !== null) return;
    if (last[0] < number) last[1] = number - 1;
    else this.#ranges.pop();
  }

  /** Everything in the first range before this number has a delivery. Null: everything in it. */
  advance(to: number | null): void {
    const first = this.#ranges[0]!;
    if (to === null || (first[1] !== null && to > first[1])) this.#ranges.shift();
    else first[0] = to;
  }
}
