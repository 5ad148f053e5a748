import type { Clock, Instant, Milliseconds } from "../../../engine/src/clock/clock.ts";
import { every } from "../../../engine/src/clock/every.ts";
import { AUTH_FAILURES_INTERVAL, type AuthFailures } from "../features/events/statements/auth-failures.ts";
import type { Events } from "../log/events.ts";
import {
  type FailedAuthentications,
  type FailedAuthenticationsFrom,
  OTHERS,
} from "../platform/rpc/failed-authentications.ts";
import type { ProblemCode } from "../platform/rpc/problems.ts";

/** How soon a failure is reported. */
const REPORT_INTERVAL: Milliseconds = 2_000;
/** Lines in the log per minute. Each source has one at most. */
const LINES_MAX = 10;
const LINE_INTERVAL: Milliseconds = 60_000;
/** Sources whose failures wait for their line. */
const SOURCES_MAX = 1_000;

/** Failures within an interval that are a burst. */
export const BURST = 20;
/** Addresses that the event of a burst names. */
const ADDRESSES_MAX = 5;
/** Workspaces whose failures are counted, and addresses for each. */
const WORKSPACES_MAX = 1_000;
const COUNTED_ADDRESSES_MAX = 100;

export interface AuthenticationFailuresOptions {
  collected: FailedAuthentications;
  clock: Clock;
  events: Pick<Events, "authenticationsFailed">;
  /** The workspace of failures that belong to no workspace. */
  defaultWorkspaceId: string;
  record(bursts: readonly AuthFailures[]): Promise<unknown>;
}

/** The failures of a workspace in the current interval. */
interface Counted {
  failures: number;
  readonly addresses: Map<string, number>;
  isReported: boolean;
}

/**
 * Reports failed authentications: lines in the log, each with the count of its source since the one before; a counter; and an
 * event when a workspace has a burst, at most one in an interval.
 *
 * A credential that does not exist belongs to no workspace. Its event is in the default workspace, whose root keys administer
 * the service: any other workspace would learn of attempts on its neighbours. A disabled or expired root key belongs to its
 * workspace.
 */
export class AuthenticationFailures {
  /** Failures by problem, for the metrics. */
  readonly counts = new Map<ProblemCode, number>();
  readonly #options: AuthenticationFailuresOptions;
  readonly #timer: { cancel(): void };
  /** Failures that no line has reported yet, by source. */
  readonly #unlogged = new Map<string, FailedAuthenticationsFrom>();
  /** Sources that have a line in this minute. */
  readonly #logged = new Set<string>();
  #lines = { since: Number.NEGATIVE_INFINITY, count: 0 };
  #interval = 0;
  readonly #counted = new Map<string, Counted>();

  constructor(options: AuthenticationFailuresOptions) {
    this.#options = options;
    this.#timer = every(options.clock, REPORT_INTERVAL, () => this.report());
  }

  /** Reports what was collected. Rejects if the events could not be written; the next call tries again. */
  async report(): Promise<void> {
    const { collected, clock } = this.#options;
    const now = clock.now();
    for (const failed of collected.take()) {
      this.counts.set(failed.problem, (this.counts.get(failed.problem) ?? 0) + failed.failures);
      this.#wait(failed);
      this.#count(failed, now);
    }
    this.#log();
    await this.#recordBursts(now);
  }

  async stop(): Promise<void> {
    this.#timer.cancel();
    await this.report();
  }

  #wait(failed: FailedAuthenticationsFrom): void {
    const source = `${failed.network} ${failed.problem}`;
    const hasRoom = this.#unlogged.has(source) || this.#unlogged.size < SOURCES_MAX;
    this.#add(hasRoom ? source : OTHERS, hasRoom ? failed : { ...failed, network: OTHERS });
  }

  #add(source: string, failed: FailedAuthenticationsFrom): void {
    const failures = failed.failures + (this.#unlogged.get(source)?.failures ?? 0);
    this.#unlogged.set(source, { ...failed, failures });
  }

  /**
   * Writes a line for each new source, as far as the lines of the minute suffice, those of the most failures first. At the end
   * of the minute, one for each source that has failed since its line, and one for all that have none.
   */
  #log(): void {
    const { clock } = this.#options;
    const now = clock.monotonic();
    const isNext = now - this.#lines.since >= LINE_INTERVAL;
    if (isNext) {
      this.#lines = { since: now, count: 0 };
      this.#logged.clear();
    }
    const waiting = [...this.#unlogged].sort(([, one], [, other]) => other.failures - one.failures);
    for (const [source, failed] of waiting) {
      if (this.#lines.count >= LINES_MAX - 1) break;
      if (!this.#logged.has(source)) this.#write(source, failed);
    }
    if (!isNext || this.#unlogged.size === 0) return;
    const rest = [...this.#unlogged.values()];
    this.#unlogged.clear();
    for (const failed of rest) this.#add(OTHERS, { ...failed, network: OTHERS });
    this.#write(OTHERS, this.#unlogged.get(OTHERS)!);
  }

  #write(source: string, { network, address, path, requestId, problem, failures }: FailedAuthenticationsFrom): void {
    this.#lines.count++;
    this.#unlogged.delete(source);
    this.#logged.add(source);
    this.#options.events.authenticationsFailed({ address, network, failures, problem, path, requestId });
  }

  #count({ workspaceId, problem, address, failures }: FailedAuthenticationsFrom, now: Instant): void {
    const interval = Math.floor(now / AUTH_FAILURES_INTERVAL);
    if (interval !== this.#interval) {
      this.#interval = interval;
      this.#counted.clear();
    }
    const { defaultWorkspaceId } = this.#options;
    // A disabled workspace learns nothing while it is disabled.
    const owner = problem === "workspace_disabled" ? defaultWorkspaceId : (workspaceId ?? defaultWorkspaceId);
    let counted = this.#counted.get(owner);
    if (counted === undefined) {
      if (this.#counted.size >= WORKSPACES_MAX) return;
      counted = { failures: 0, addresses: new Map(), isReported: false };
      this.#counted.set(owner, counted);
    }
    counted.failures += failures;
    const { addresses } = counted;
    if (addresses.has(address) || addresses.size < COUNTED_ADDRESSES_MAX) {
      addresses.set(address, (addresses.get(address) ?? 0) + failures);
    }
  }

  async #recordBursts(now: Instant): Promise<void> {
    const bursts = [...this.#counted].filter(([, { failures, isReported }]) => failures >= BURST && !isReported);
    if (bursts.length === 0) return;
    await this.#options.record(
      bursts.map(([workspaceId, { failures, addresses }]) => ({
        workspaceId,
        failures,
        at: now,
        since: this.#interval * AUTH_FAILURES_INTERVAL,
        addresses: [...addresses]
          .sort(([, one], [, other]) => other - one)
          .slice(0, ADDRESSES_MAX)
          .map(([address, count]) => ({ address, failures: count })),
      })),
    );
    for (const [, counted] of bursts) counted.isReported = true;
  }
}
