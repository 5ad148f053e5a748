import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { didYouMean, nearestNames } from "../../../../engine/src/rules/spelling.ts";
import { OperatorError } from "../../log/operator-error.ts";

/** What every variable of the service begins with. */
export const PREFIX = "LATCHKEY_";

/** What the commands that call a service read, without the prefix. These are no settings of the service. */
const clientNames: readonly string[] = ["URL", "PROFILE"];
/** Settings of the service that those commands read too. */
const sharedNames: readonly string[] = ["ROOT_KEY", "ROOT_KEY_FILE", "HOST", "PORT", "DATA_DIR"];

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
  for (const [name, value] of ownVariables(environment)) {
    if (clientNames.includes(name)) continue;
    const variable = PREFIX + name;
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
      const suggestion = suggestNames(name, [...names, ...fileNames.keys()], clientNames);
      throw new ConfigurationError(variable, undefined, `there is no such setting. ${suggestion}`);
    }
  }
  return texts;
}

/**
 * Checks that no variable of the commands that call a service is misspelled: they would call another service. Applications and
 * deployments have variables of their own with the same prefix, so only a name is taken for a mistake that is near to one which those
 * commands read, does not begin with it, and stands alone.
 *
 * @throws {ConfigurationError} with the nearest names.
 */
export function checkClientVariables(environment: NodeJS.ProcessEnv, settings: readonly SettingName[]): void {
  const known = [
    ...clientNames,
    ...settings.flatMap(({ name, isSecret }) => (isSecret ? [name, `${name}_FILE`] : [name])),
  ];
  const read = [...clientNames, ...sharedNames];
  for (const [name, value] of ownVariables(environment)) {
    if (value === "" || known.includes(name)) continue;
    const meant = nearestNames(name, known).filter((near) => read.includes(near));
    if (meant.length === 0 || meant.some((near) => name.startsWith(near) || environment[PREFIX + near])) continue;
    throw new ConfigurationError(
      PREFIX + name,
      undefined,
      `there is no such variable. ${didYouMean(name, known, withPrefix)}`,
    );
  }
}

/** The variables of Latchkey, by their names without the prefix. LATCHKEY_TEST_… configures the test suite. */
function ownVariables(environment: NodeJS.ProcessEnv): [name: string, value: string][] {
  return Object.entries(environment).flatMap(([variable, value]) =>
    variable.startsWith(PREFIX) && !variable.startsWith(`${PREFIX}TEST_`) && value !== undefined
      ? [[variable.slice(PREFIX.length), value]]
      : [],
  );
}

function readSecretFile(variable: string, path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new ConfigurationError(variable, path, `the file cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** A sentence with the names that are nearest to an unknown one, of the settings and others, or with all settings if none is near. */
function suggestNames(unknown: string, settings: readonly string[], others: readonly string[]): string {
  const suggestion = didYouMean(unknown, [...settings, ...others], withPrefix);
  return suggestion || `The settings are ${settings.map(withPrefix).join(", ")}`;
}

function withPrefix(name: string): string {
  return PREFIX + name;
}
