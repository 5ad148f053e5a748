import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { OperatorError } from "../log/operator-error.ts";

const PREFIX = "LATCHKEY_";

/** A setting that cannot be used: stops the start, and says what would do. */
export class ConfigurationError extends OperatorError {
  constructor(name: string, value: string | undefined, remedy: string) {
    super(value === undefined ? `${name}: ${remedy}` : `${name}=${value}: ${remedy}`);
    this.name = "ConfigurationError";
  }
}

/** The environment of this process. Nothing else reads it. */
export const processEnvironment: NodeJS.ProcessEnv = process.env;

/** Raw settings by name without the prefix, as text. */
export type Settings = ReadonlyMap<string, string>;

/** Names that hold secrets: given as `…_FILE` too, and never repeated in a message. */
export const secretNames: readonly string[] = ["ROOT_KEY", "DATABASE_URL", "VAULT_KEY", "REDIS_URL", "CLICKHOUSE_URL"];

/**
 * The settings of the environment.
 *
 * @throws {ConfigurationError} on a name that is not known, or a file that cannot be read.
 */
export function readEnvironment(environment: NodeJS.ProcessEnv, known: readonly string[]): Settings {
  const settings = new Map<string, string>();
  for (const [variable, value] of Object.entries(environment)) {
    // The test suite's own variables are addressed to it.
    if (!variable.startsWith(PREFIX) || variable.startsWith(`${PREFIX}TEST_`) || value === undefined) continue;
    const name = variable.slice(PREFIX.length);
    const secret = name.endsWith("_FILE") ? name.slice(0, -"_FILE".length) : undefined;
    if (secret !== undefined && secretNames.includes(secret)) {
      if (environment[PREFIX + secret] !== undefined) {
        throw new ConfigurationError(variable, undefined, `give either this or ${PREFIX}${secret}, not both`);
      }
      settings.set(secret, readSecretFile(variable, value));
      settings.set(name, resolve(value));
    } else if (known.includes(name)) {
      settings.set(name, value);
    } else {
      throw new ConfigurationError(variable, undefined, `there is no such setting. ${suggestion(name, known)}`);
    }
  }
  return settings;
}

function readSecretFile(variable: string, path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new ConfigurationError(variable, path, `the file cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** The known names that are nearest to one that is not. */
function suggestion(name: string, known: readonly string[]): string {
  const names = [...known, ...secretNames.map((secret) => `${secret}_FILE`)];
  const distances = names.map((one) => ({ one, distance: editDistance(name.slice(0, NAME_LENGTH_MAX), one) }));
  const least = Math.min(...distances.map(({ distance }) => distance));
  const nearest = distances.filter(({ distance }) => distance === least).map(({ one }) => PREFIX + one);
  return least <= Math.max(2, Math.floor(name.length / 3))
    ? `Did you mean ${nearest.join(" or ")}?`
    : `Directories are ${known.map((one) => PREFIX + one).join(", ")}`;
}

const NAME_LENGTH_MAX = 64;

/** How many characters have to be inserted, deleted or replaced to make one text of the other (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length]!;
}
