import { addressBlock } from "../../../../engine/src/rules/address.ts";
import type { RatelimitEvent, VerificationEvent } from "../../../../engine/src/verification/event.ts";
import { levels } from "./levels.ts";

/** A decision of the log: the columns by which it is found, and its answer without its id. */
export type DecisionRow = readonly [
  at: number,
  workspaceId: string,
  code: string,
  /** The ids are empty if the decision has none. */
  keyId: string,
  apiId: string,
  identityId: string,
  namespaceId: string,
  requestId: string,
  answer: DecisionAnswer,
];

/** What the log says of a decision. Members that do not apply are absent. */
export interface DecisionAnswer {
  readonly at: number;
  readonly kind: "verification" | "ratelimit";
  readonly code: string;
  readonly requestId: string;
  readonly latencyUs: number;
  readonly keyId?: string;
  readonly apiId?: string;
  readonly identityId?: string;
  readonly namespaceId?: string;
  readonly identifier?: string;
  readonly limit?: { readonly name?: string; readonly limit?: number; readonly duration?: number };
  readonly cost: number;
  readonly creditsSpent?: number;
  readonly tags?: readonly string[];
  readonly network?: string;
  readonly leftOut?: number;
  readonly leftOutOfOthers?: number;
}

/** The codes of rate limits, beside those of verifications. */
export const ratelimitCodes = ["PASSED", "DENIED"] as const;

/** The codes of decisions that are no refusals. */
export const acceptedCodes: readonly string[] = ["VALID", "PASSED"];

type LoggedEvent = VerificationEvent | RatelimitEvent;

interface Kept {
  readonly event: LoggedEvent;
  readonly latencyUs: number;
  readonly leftOut?: number;
  readonly leftOutOfOthers?: number;
}

/** The refusals of one key, namespace or the like with one code in one minute. */
interface Source {
  kept: number;
  leftOut: number;
  /** The last refusal that was left out. */
  last: LoggedEvent | undefined;
  latencyUs: number;
}

/** The decisions of one workspace in one minute. */
interface Minute {
  kept: number;
  sampled: number;
  readonly samples: Set<string>;
  readonly sources: Map<string, Source>;
  /** The refusals of sources beyond the maximum, by code. */
  readonly others: Map<string, Source>;
}

/** Sources of all workspaces in one minute, each of a few hundred bytes. */
const SOURCES_MAX = 20_000;

/** One source fills at most this part of a minute, and valid decisions this part. */
const PART_OF_SOURCE = 4;
const PART_OF_SAMPLES = 10;

/** Rows per minute of a workspace, so that the log covers at least a day of one node, however many calls are refused. */
export function rowsPerMinute(rowsMax: number): number {
  // The end of a minute adds up to one row for each source.
  const perDay = (2 * levels.day) / levels.minute;
  return rowsMax === 0 ? 0 : Math.max(1, Math.floor(rowsMax / perDay));
}

/**
 * Selects the decisions that are stored: the first refusals of each key, namespace and code in a minute, and a sample of
 * the others. The rest is counted. The last refusal that was left out is stored at the end of the minute with the count,
 * so that no refusal is missing in the sum. Memory and rows are bounded by workspace, so that none displaces the
 * decisions of another one.
 */
export class DecisionLog {
  readonly #perMinute: number;
  readonly #perSource: number;
  readonly #samples: number;
  #minutes = new Map<string, Minute>();
  #kept: Kept[] = [];
  #sources = 0;
  #minute = 0;

  /** @param perMinute rows of one workspace in a minute; 0: nothing is stored. */
  constructor(perMinute: number) {
    this.#perMinute = perMinute;
    this.#perSource = Math.ceil(perMinute / PART_OF_SOURCE);
    this.#samples = Math.ceil(perMinute / PART_OF_SAMPLES);
  }

  /** Whether `take` returns something, although there was no decision. */
  get isEmpty(): boolean {
    return this.#kept.length === 0;
  }

  /** Takes a decision that is no refusal: the first one of a source in each minute is stored. */
  sample(source: string, event: LoggedEvent, latencyUs: number): void {
    if (this.#perMinute === 0) return;
    const minute = this.#minuteOf(event.workspaceId);
    if (minute.sampled === this.#samples || minute.samples.has(source)) return;
    minute.sampled++;
    minute.samples.add(source);
    this.#kept.push({ event, latencyUs });
  }

  /** Takes a refusal. */
  refused(source: string, code: string, event: LoggedEvent, latencyUs: number): void {
    if (this.#perMinute === 0) return;
    const minute = this.#minuteOf(event.workspaceId);
    const name = `${code} ${source}`;
    let known = minute.sources.get(name);
    if (known === undefined && minute.sources.size < this.#perMinute && this.#sources < SOURCES_MAX) {
      this.#sources++;
      known = newSource();
      minute.sources.set(name, known);
    }
    if (known === undefined) {
      leaveOut(otherOf(minute, code), event, latencyUs);
    } else if (known.kept < this.#perSource && minute.kept < this.#perMinute) {
      known.kept++;
      minute.kept++;
      this.#kept.push({ event, latencyUs });
    } else leaveOut(known, event, latencyUs);
  }

  /** Ends the minute if it is over. */
  passTo(now: number): void {
    const minute = now - (now % levels.minute);
    if (minute !== this.#minute) this.endMinute();
    this.#minute = minute;
  }

  /** Stores the last refusal of each source with the number of those that were left out. */
  endMinute(): void {
    for (const { sources, others } of this.#minutes.values()) {
      for (const { leftOut, last, latencyUs } of sources.values()) {
        if (last !== undefined) this.#kept.push({ event: last, latencyUs, leftOut: leftOut - 1 });
      }
      for (const { leftOut, last, latencyUs } of others.values()) {
        if (last !== undefined) this.#kept.push({ event: last, latencyUs, leftOutOfOthers: leftOut - 1 });
      }
    }
    this.#minutes = new Map();
    this.#sources = 0;
  }

  /** The rows since the last call of this method. */
  take(): DecisionRow[] {
    if (this.#kept.length === 0) return [];
    const rows = this.#kept.map(rowOf);
    this.#kept = [];
    return rows;
  }

  #minuteOf(workspaceId: string): Minute {
    let minute = this.#minutes.get(workspaceId);
    if (minute === undefined) {
      minute = { kept: 0, sampled: 0, samples: new Set(), sources: new Map(), others: new Map() };
      this.#minutes.set(workspaceId, minute);
    }
    return minute;
  }
}

function newSource(): Source {
  return { kept: 0, leftOut: 0, last: undefined, latencyUs: 0 };
}

function otherOf({ others }: Minute, code: string): Source {
  let other = others.get(code);
  if (other === undefined) {
    other = newSource();
    others.set(code, other);
  }
  return other;
}

function leaveOut(source: Source, event: LoggedEvent, latencyUs: number): void {
  source.leftOut++;
  source.last = event;
  source.latencyUs = latencyUs;
}

function rowOf({ event, latencyUs, leftOut = 0, leftOutOfOthers = 0 }: Kept): DecisionRow {
  const { at, workspaceId, address, requestId } = event;
  const network = addressBlock(address);
  const shared = {
    ...(network !== undefined && { network }),
    ...(leftOut > 0 && { leftOut }),
    ...(leftOutOfOthers > 0 && { leftOutOfOthers }),
  };
  if ("namespaceId" in event) {
    const { namespaceId, identifier, asked } = event;
    const code = event.passed ? "PASSED" : "DENIED";
    const answer: DecisionAnswer = {
      at,
      kind: "ratelimit",
      code,
      requestId,
      latencyUs,
      namespaceId,
      identifier: loggedIdentifier(identifier),
      limit: { limit: asked.limit, duration: asked.duration },
      cost: asked.cost,
      ...shared,
    };
    return [at, workspaceId, code, "", "", "", namespaceId, requestId, answer];
  }
  const { key, code, tags, creditsSpent, cost, limit } = event;
  const identityId = key?.identity?.id;
  const answer: DecisionAnswer = {
    at,
    kind: "verification",
    code,
    requestId,
    latencyUs,
    ...(key && { keyId: key.keyId, apiId: key.apiId }),
    ...(identityId !== undefined && { identityId }),
    ...(limit !== undefined && { limit: { name: limit } }),
    cost: cost ?? 1,
    creditsSpent,
    tags: tags ?? [],
    ...shared,
  };
  return [at, workspaceId, code, key?.keyId ?? "", key?.apiId ?? "", identityId ?? "", "", requestId, answer];
}

/** An identifier as the log has it: the log has no full address of an end user. */
function loggedIdentifier(identifier: string): string {
  return addressBlock(identifier) ?? identifier;
}
