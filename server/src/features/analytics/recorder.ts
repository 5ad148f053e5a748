import type { Clock } from "../../../../engine/src/clock/clock.ts";
import { TurnoverMap } from "../../../../engine/src/collections/turnover-map.ts";
import type {
  CreditsEvent,
  DecisionRecorder,
  RatelimitEvent,
  VerificationEvent,
} from "../../../../engine/src/verification/event.ts";
import { type Budgets, budgetIdsOf, type KeyColumns, type RatelimitCell, type VerificationCell } from "./batch.ts";
import { DecisionLog, type DecisionRow } from "./decision-log.ts";
import { DecisionSample } from "./decisions.ts";
import { levels } from "./levels.ts";

/** The counts of one outcome and one tag set. */
interface Cell {
  readonly outcome: string;
  /** The sorted tag set, joined by U+0000, which tags cannot contain; empty without tags. */
  readonly tags: string;
  /** The tags in the order of the first event. Most callers use one order, and comparing is cheaper than sorting. */
  readonly given: readonly string[] | undefined;
  count: number;
  amount: number;
  latencyUs: number;
  readonly next: Cell | undefined;
}

type Key = NonNullable<VerificationEvent["key"]>;
const NO_BUDGETS: Budgets = [];

/** A verified key, or a workspace with attempts of unknown keys; with its cells, newest first. */
interface Verified {
  readonly workspaceId: string;
  readonly apiId: string | null;
  readonly keyId: string | null;
  readonly identityId: string | null;
  readonly budgets: Budgets;
  /** Time of the last use; 0 for a deleted key. */
  usedAt: number;
  first: Cell | undefined;
  /** Cells by outcome and tags, once there are too many to scan. */
  index: Map<string, Cell> | undefined;
  length: number;
}

interface Limited {
  readonly workspaceId: string;
  passed: Cell | undefined;
  denied: Cell | undefined;
}

interface Keys {
  readonly columns: KeyColumns;
  /** The place of each key in the columns. */
  readonly places: Map<string, number>;
}

/** The counts of one minute. */
interface Minute {
  readonly start: number;
  /** By API. It has some codes. */
  readonly keys: Map<string, Keys[]>;
  /** What is not in `keys`. */
  readonly verified: Map<string, Verified>;
  /** By namespace, then by identifier. */
  readonly limited: Map<string, Map<string, Limited>>;
}

/** The result of `drain`. */
export interface DrainedCounts {
  readonly keys: KeyColumns[];
  /** The verifications that are not in `keys`. */
  readonly verifications: VerificationCell[];
  readonly ratelimits: RatelimitCell[];
  /** Last uses of keys that are not in `keys`. */
  readonly uses: KeyUse[];
  /** The rows of the log of decisions. */
  readonly decisions: DecisionRow[];
  /** The number of counted events. */
  readonly events: number;
}

export interface KeyUse {
  readonly keyId: string;
  readonly at: number;
}

/** Up to this number of cells are scanned; more have an index. */
const SCAN_MAX = 8;

/** Cells per batch: few enough that its serialisation does not delay calls. */
export const CELLS_PER_BATCH = 2_000;

/**
 * Counts events in memory, synchronously and without throwing: two look-ups and three additions for a repeated event. It
 * is drained at least each second.
 */
export class Recorder implements DecisionRecorder {
  readonly #clock: Clock;
  readonly #minutes = new TurnoverMap<number, Minute>();
  #minute = newMinute(Number.NaN);
  /** The last entry of `keys` of this minute that was counted in. */
  #lastKeys: Keys | undefined;
  #cells = 0;
  #events = 0;
  readonly #whenFull: () => void;
  /** Events since the start, for the metrics. */
  recorded = 0;
  /** The first decision of each combination of counted values in each second. */
  readonly decisions = new DecisionSample();
  readonly log: DecisionLog;

  /**
   * @param whenFull called during an event when the counts fill a batch.
   * @param loggedPerMinute rows of the log of decisions of one workspace.
   */
  constructor(clock: Clock, whenFull: () => void = () => {}, loggedPerMinute = 0) {
    this.log = new DecisionLog(loggedPerMinute);
    this.log.passTo(clock.now());
    this.#clock = clock;
    this.#whenFull = whenFull;
  }

  verification(event: VerificationEvent): void {
    const { key, code, tags } = event;
    const latencyUs = this.#latencySince(event.startedAt);
    if (key !== null && hasNone(tags)) {
      const { columns, places } = this.#keysOf(key.apiId, event.at, event.workspaceId, code);
      const place = this.#placeIn(columns, places, key);
      if (place !== undefined) {
        if (code !== "NOT_FOUND" && event.at > (columns.usedAt[place] ?? 0)) columns.usedAt[place] = event.at;
        addTo(columns.creditsSpent, place, event.creditsSpent);
        addTo(columns.latencyUs, place, latencyUs);
        this.#decided(key.keyId, event, latencyUs, addTo(columns.counts, place, 1) === 1);
        return;
      }
    }
    const name = key === null ? event.workspaceId : key.keyId;
    const subject = this.#subjectOf(name, event);
    if (key !== null && code !== "NOT_FOUND" && event.at > subject.usedAt) subject.usedAt = event.at;
    const cell = cellAsGiven(subject, code, tags) ?? this.#cellOf(subject, code, tags);
    cell.amount += event.creditsSpent;
    cell.latencyUs += latencyUs;
    this.#decided(name, event, latencyUs, cell.count++ === 0);
  }

  /** @param isFirst whether it is the first of its counts in a second. */
  #decided(source: string, event: VerificationEvent, latencyUs: number, isFirst: boolean): void {
    const isSampled = isFirst && this.decisions.verification(event, latencyUs);
    if (event.code !== "VALID") this.log.refused(source, event.code, event, latencyUs);
    else if (isSampled) this.log.sample(source, event, latencyUs);
    this.#count();
  }

  /** Counts no verification. */
  credits(event: CreditsEvent): void {
    const { key, tags, credits } = event;
    if (hasNone(tags)) {
      const { columns, places } = this.#keysOf(key.apiId, event.at, event.workspaceId, "VALID");
      const place = this.#placeIn(columns, places, key);
      if (place !== undefined) {
        addTo(columns.creditsSpent, place, credits);
        this.#count();
        return;
      }
    }
    const subject = this.#subjectOf(key.keyId, event);
    const cell = cellAsGiven(subject, "VALID", tags) ?? this.#cellOf(subject, "VALID", tags);
    cell.amount += credits;
    this.#count();
  }

  ratelimit(event: RatelimitEvent): void {
    const { limited } = this.#minuteOf(event.at);
    let identifiers = limited.get(event.namespaceId);
    if (identifiers === undefined) {
      identifiers = new Map();
      limited.set(event.namespaceId, identifiers);
    }
    let subject = identifiers.get(event.identifier);
    if (subject === undefined) {
      subject = { workspaceId: event.workspaceId, passed: undefined, denied: undefined };
      identifiers.set(event.identifier, subject);
    }
    let cell = event.passed ? subject.passed : subject.denied;
    if (cell === undefined) {
      cell = this.#newCell(event.passed ? "PASSED" : "DENIED", "", undefined, undefined);
      if (event.passed) subject.passed = cell;
      else subject.denied = cell;
    }
    const latencyUs = this.#latencySince(event.startedAt);
    const isSampled = cell.count++ === 0 && this.decisions.ratelimit(event, latencyUs);
    if (!event.passed) this.log.refused(event.namespaceId, "DENIED", event, latencyUs);
    else if (isSampled) this.log.sample(event.namespaceId, event, latencyUs);
    cell.amount += event.cost;
    cell.latencyUs += latencyUs;
    this.#count();
  }

  /** Returns all counts and resets them; undefined if there are none. */
  drain(): DrainedCounts | undefined {
    this.decisions.startSecond();
    this.log.passTo(this.#clock.now());
    if (this.#events === 0 && this.log.isEmpty) return undefined;
    const keys: KeyColumns[] = [];
    const verifications: VerificationCell[] = [];
    const ratelimits: RatelimitCell[] = [];
    const uses: KeyUse[] = [];
    for (const { start, keys: byApi, verified, limited } of this.#takeMinutes()) {
      for (const ofApi of byApi.values()) for (const { columns } of ofApi) keys.push(columns);
      for (const { workspaceId, apiId, keyId, identityId, budgets, usedAt, first } of verified.values()) {
        if (usedAt > 0) uses.push({ keyId: keyId!, at: usedAt });
        const budgetIds: [budgetIds?: string[]] = budgets.length === 0 ? [] : [budgetIdsOf(budgets)];
        for (let cell = first; cell !== undefined; cell = cell.next) {
          const tags = cell.tags === "" ? "" : JSON.stringify(cell.tags.split("\0"));
          const { outcome, count, amount, latencyUs } = cell;
          verifications.push([
            start,
            workspaceId,
            apiId,
            keyId,
            identityId,
            tags,
            outcome,
            count,
            amount,
            latencyUs,
            ...budgetIds,
          ]);
        }
      }
      for (const [namespaceId, identifiers] of limited) {
        for (const [identifier, { workspaceId, passed, denied }] of identifiers) {
          for (const cell of [passed, denied]) {
            if (cell === undefined) continue;
            const { outcome, count, amount, latencyUs } = cell;
            ratelimits.push([
              start,
              workspaceId,
              namespaceId,
              identifier,
              outcome as "PASSED",
              count,
              amount,
              latencyUs,
            ]);
          }
        }
      }
    }
    const events = this.#events;
    this.#cells = 0;
    this.#events = 0;
    return { keys, verifications, ratelimits, uses, decisions: this.log.take(), events };
  }

  #takeMinutes(): Minute[] {
    const minutes = [...this.#minutes.values()];
    this.#minutes.clear();
    this.#minute = newMinute(Number.NaN);
    this.#lastKeys = undefined;
    return minutes;
  }

  #minuteOf(at: number): Minute {
    const start = at - (at % levels.minute);
    if (start === this.#minute.start) return this.#minute;
    let minute = this.#minutes.get(start);
    if (minute === undefined) {
      minute = newMinute(start);
      this.#minutes.set(start, minute);
    }
    this.#minute = minute;
    this.#lastKeys = undefined;
    return minute;
  }

  #keysOf(apiId: string, at: number, workspaceId: string, code: string): Keys {
    const { start, keys } = this.#minuteOf(at);
    const last = this.#lastKeys;
    if (last !== undefined && last.columns.apiId === apiId && last.columns.code === code) return last;
    let ofApi = keys.get(apiId);
    if (ofApi === undefined) {
      ofApi = [];
      keys.set(apiId, ofApi);
    }
    let found = ofApi.find(({ columns }) => columns.code === code);
    if (found === undefined) {
      const ids = { minute: start, workspaceId, apiId, code };
      const columns = {
        keyIds: [],
        identityIds: [],
        budgets: [],
        usedAt: [],
        counts: [],
        creditsSpent: [],
        latencyUs: [],
      };
      found = { columns: { ...ids, ...columns }, places: new Map() };
      ofApi.push(found);
    }
    this.#lastKeys = found;
    return found;
  }

  /**
   * The place of a key in columns, new if it has none; undefined if its place is that of the key with another identity or
   * other budgets.
   */
  #placeIn(columns: KeyColumns, places: Map<string, number>, key: Key): number | undefined {
    const { keyId, identity, budgets = NO_BUDGETS } = key;
    const identityId = identity === null ? null : identity.id;
    const known = places.get(keyId);
    if (known !== undefined) {
      const isOfIdentity = columns.identityIds[known] === identityId;
      return isOfIdentity && areSame(columns.budgets[known] ?? NO_BUDGETS, budgets) ? known : undefined;
    }
    const place = columns.keyIds.push(keyId) - 1;
    places.set(keyId, place);
    columns.identityIds.push(identityId);
    columns.budgets.push(budgets);
    columns.usedAt.push(0);
    columns.counts.push(0);
    columns.creditsSpent.push(0);
    columns.latencyUs.push(0);
    if (++this.#cells === CELLS_PER_BATCH) this.#whenFull();
    return place;
  }

  #subjectOf(name: string, event: VerificationEvent | CreditsEvent): Verified {
    const { verified } = this.#minuteOf(event.at);
    const identityId = event.key?.identity?.id ?? null;
    const budgets = event.key?.budgets ?? NO_BUDGETS;
    const subject = verified.get(name);
    return subject !== undefined && subject.identityId === identityId && areSame(subject.budgets, budgets)
      ? subject
      : this.#verifiedAs(verified, name, identityId, event);
  }

  /** A key whose identity or budgets change within a minute has two subjects in that minute. */
  #verifiedAs(
    verified: Map<string, Verified>,
    name: string,
    identityId: string | null,
    { workspaceId, key }: Pick<VerificationEvent, "workspaceId" | "key">,
  ): Verified {
    const budgets = key?.budgets ?? NO_BUDGETS;
    const full = verified.has(name) ? `${name} ${identityId} ${budgets.map(({ budgetId }) => budgetId)}` : name;
    let subject = verified.get(full);
    if (subject === undefined) {
      subject = {
        workspaceId,
        apiId: key?.apiId ?? null,
        keyId: key?.keyId ?? null,
        identityId,
        budgets,
        usedAt: 0,
        first: undefined,
        index: undefined,
        length: 0,
      };
      verified.set(full, subject);
    }
    return subject;
  }

  #cellOf(subject: Verified, code: string, given: readonly string[] | undefined): Cell {
    const tags = given === undefined || given.length === 0 ? "" : tagSet(given);
    if (subject.index === undefined) {
      for (let cell = subject.first; cell !== undefined; cell = cell.next) {
        if (cell.outcome === code && cell.tags === tags) return cell;
      }
    } else {
      const cell = subject.index.get(`${code} ${tags}`);
      if (cell !== undefined) return cell;
    }
    const cell = this.#newCell(code, tags, given, subject.first);
    subject.first = cell;
    subject.length++;
    if (subject.index !== undefined) subject.index.set(`${code} ${tags}`, cell);
    else if (subject.length > SCAN_MAX) {
      subject.index = new Map();
      for (let one: Cell | undefined = cell; one !== undefined; one = one.next) {
        subject.index.set(`${one.outcome} ${one.tags}`, one);
      }
    }
    return cell;
  }

  #latencySince(startedAt: number): number {
    return Math.round((this.#clock.monotonic() - startedAt) * 1_000);
  }

  #count(): void {
    this.#events++;
    this.recorded++;
  }

  #newCell(outcome: string, tags: string, given: readonly string[] | undefined, next: Cell | undefined): Cell {
    if (++this.#cells === CELLS_PER_BATCH) this.#whenFull();
    return { outcome, tags, given, count: 0, amount: 0, latencyUs: 0, next };
  }
}

/** Returns the sum. */
function addTo(column: number[], place: number, amount: number): number {
  const sum = (column[place] ?? 0) + amount;
  column[place] = sum;
  return sum;
}

function newMinute(start: number): Minute {
  return { start, keys: new Map(), verified: new Map(), limited: new Map() };
}

function hasNone(tags: readonly string[] | undefined): boolean {
  return tags === undefined || tags.length === 0;
}

/** The cell whose first event had the same tags in the same order. */
function cellAsGiven({ first, index }: Verified, code: string, tags: readonly string[] | undefined): Cell | undefined {
  if (index !== undefined) return undefined;
  for (let cell = first; cell !== undefined; cell = cell.next) {
    if (cell.outcome === code && isSame(cell.given, tags)) return cell;
  }
  return undefined;
}

function areSame(one: Budgets, other: Budgets): boolean {
  // A key has the same list until its record is read again.
  if (one === other) return true;
  if (one.length !== other.length) return false;
  for (let i = 0; i < one.length; i++) if (one[i]?.budgetId !== other[i]?.budgetId) return false;
  return true;
}

function isSame(one: readonly string[] | undefined, other: readonly string[] | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  if (one.length !== other.length) return false;
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
  return true;
}

function tagSet(tags: readonly string[]): string {
  if (tags.length === 1) return tags[0]!;
  return [...new Set(tags)].sort().join("\0");
}
