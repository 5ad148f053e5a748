import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { HashAlgorithm } from "../../../../engine/src/rules/imported-keys.ts";
import type { PlannedBudget } from "../budgets.ts";
import type { DumpedKey } from "../dump/rows.ts";
import type { Fields } from "../fields.ts";
import type { PlannedPlan } from "../plans.ts";

/** A key for `keys.migrateKeys`. It is validated later, by the schema of the operation. */
export type HashedKey = { hash: string } & Record<string, unknown>;

/**
 * A row as a key, with the budget and the plan that it shares with others, or why it cannot become one. Texts complete the
 * sentence "The row …".
 */
export type Mapped =
  | { key: HashedKey; budget?: PlannedBudget; plan?: PlannedPlan }
  | { rejected: string }
  | { skipped: string };

/** What a mapping depends on besides the row. */
export interface MappingOptions {
  readonly now: Instant;
  readonly algorithm: HashAlgorithm;
  /** The API of the other system whose keys are imported; undefined for all. */
  readonly sourceApi: string | undefined;
  /** The JSON documents of `--with`. */
  readonly others: readonly unknown[];
}

/** How keys of one system are imported. Key strings are hashed on this machine and never sent. */
export interface Source {
  /** Makes the mapping of rows for one import. */
  readonly mapping: (options: MappingOptions) => (row: Fields) => Mapped;
  /**
   * Fields that are not imported, by their names in the export. A text says why and what to do; null: the field says
   * nothing that has to be kept, such as the time of the last use.
   */
  readonly left: Readonly<Record<string, string | null>>;
  /** The rows in a row of a JSON or YAML document, where an export nests them. */
  readonly unfold?: (row: Record<string, unknown>) => Record<string, unknown>[];
  /** The list of rows in a document of a form of its own; undefined for other documents. */
  readonly listIn?: (document: unknown) => readonly unknown[] | undefined;
  /**
   * Reads the keys from a dump of the database as SQL; absent if dumps are not read.
   *
   * @param sourceApi the API whose keys are read; undefined for all.
   */
  readonly dump?: (file: string, sourceApi: string | undefined) => AsyncIterable<DumpedKey>;
  /** The algorithms that `--algorithm` can name. */
  readonly algorithms: readonly HashAlgorithm[];
  /** What `--with` gives; undefined if the option is not valid. */
  readonly others?: string;
  /** Whether rows are chosen by `--source-api`. */
  readonly hasApis?: true;
  /** Whether keys can be downloaded. */
  readonly isDownloadable?: true;
}

/** The members that have a value. */
export function present(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** The members of an object, if any of them has a value. */
export function presentObject(members: Record<string, unknown>): Record<string, unknown> | undefined {
  const found = present(members);
  return Object.keys(found).length > 0 ? found : undefined;
}

/** A key, or the rejection of a row without a hash. */
export function keyOf(
  hash: string | undefined,
  missing: string,
  members: Record<string, unknown>,
): { key: HashedKey } | { rejected: string } {
  return hash === undefined ? { rejected: missing } : { key: { hash, ...present(members) } };
}

const SECOND = 1_000;

/**
 * A limit of `rate` requests per `seconds`, in whole numbers and with a window of at least a second; undefined if there is
 * none. A rate such as 2.5 per second becomes 25 in 10 seconds. One that no window makes whole is off by less than 1 %.
 */
export function limitOf(name: string, rate: unknown, seconds: unknown) {
  if (typeof rate !== "number" || typeof seconds !== "number" || rate <= 0 || seconds <= 0) return undefined;
  const scales = [1, 10, 60, 100, 1_000, 3_600];
  const scale =
    scales.find((factor) => isWhole(rate * factor) && isWhole(seconds * factor * SECOND) && seconds * factor >= 1) ??
    Math.ceil(Math.max(100 / rate, 1 / seconds));
  return { name, limit: Math.round(rate * scale), duration: Math.round(seconds * scale * SECOND), autoApply: true };
}

function isWhole(value: number): boolean {
  return Math.abs(value - Math.round(value)) < 1e-9;
}
