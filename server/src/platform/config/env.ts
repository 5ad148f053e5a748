import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { didYouMean } from "../../../../engine/src/rules/spelling.ts";
import { OperatorError } from "../../log/operator-error.ts";

/** What every variable of the service begins with. */
export const PREFIX = "LATCHKEY_";

/** Variables of the commands that call a service. They are no settings of the service. */
const clientVariables: readonly string[] = ["LATCHKEY_URL", "LATCHKEY_PROFILE"];

/** A setting has a value that cannot be used. The message names the setting and the values that it accepts. */
export class ConfigurationError extends OperatorError {
  constructor(variable: string, value: string | undefined, remedy: string) {
    super(value === undefined ? `${variable}: ${remedy}` : `${variable}=${value}: ${remedy}`);
    this.name = "ConfigurationError";
  }
}

/** The environment of this process. No other file reads it. */
export const processEnvironment: NodeJS.ProcessEnv = process.env;

/** The texts of the settings that are set, by name without the prefix. */
export type SettingTexts = ReadonlyMap<string, string>;

/** The name of a setting. A secret can also come from the file that `<name>_FILE` names. */
export interface SettingName {
  readonly name: string;
  readonly isSecret: boolean;
}

/**
 * Reads the settings of the environment.
 *
 * @throws {ConfigurationError} on an unknown name, or a file that cannot be read.
 */
export function readEnvironment(environment: NodeJS.ProcessEnv, settings: readonly SettingName[]): SettingTexts {
  const texts = new Map<string, string>();
  const names = new Set(settings.map(({ name }) => name));
  const fileNames = new Map(settings.filter(({ isSecret }) => isSecret).map(({ name }) => [`${name}_FILE`, name]));
  for (const [variable, value] of Object.entries(environment)) {
    // LATCHKEY_TEST_… configures the test suite.
    if (!variable.startsWith(PREFIX) || variable.startsWith(`${PREFIX}TEST_`) || value === undefined) continue;
    if (clientVariables.includes(variable)) continue;
    const name = variable.slice(PREFIX.length);
    const secret = fileNames.get(name);
    if (secret !== undefined) {
      if (environment[PREFIX + secret] !== undefined) {
        throw new ConfigurationError(variable, undefined, `give either this or ${PREFIX}${secret}, not both`);
      }
      texts.set(secret, readSecretFile(variable, value));
      texts.set(name, resolve(value));
    } else if (names.has(name)) {
      texts.set(name, value);
    } else {
      const suggestion = suggestNames(name, [...names, ...fileNames.keys()]);
      throw new ConfigurationError(variable, undefined, `there is no such setting. ${suggestion}`);
    }
  }
  return texts;
}

function readSecretFile(variable: string, path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new ConfigurationError(variable, path, `the file cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** A sentence with the names that are nearest to an unknown one, or with all names if none is near. */
function suggestNames(unknown: string, names: readonly string[]): string {
  const withPrefix = (name: string) => PREFIX + name;
  return didYouMean(unknown, names, withPrefix) || `The settings are ${names.map(withPrefix).join(", ")}`;
}
