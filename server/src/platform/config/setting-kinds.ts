import { resolve } from "node:path";
import { ConfigurationError, PREFIX, type SettingName, type SettingTexts } from "./env.ts";

/** One setting. The configuration's type, its reader, `--help` and the check of its documentation derive from it. */
export interface Setting<T> extends SettingName {
  readonly help: string;
  /** The default as help texts show it. */
  readonly shownDefault: string;
  /** The accepted values, where bounds or words say them. */
  readonly range: string | undefined;
  /** Command-line flags give the value itself, or a file that holds it. */
  readonly flag: "value" | "file";
  /** @throws {ConfigurationError} on a value that cannot be used. */
  read(texts: SettingTexts): T;
}

/**
 * The default of a setting: a text that is parsed like a given one, or, in `unset`, the value of a setting that has no
 * text. `shownDefault` is what help texts say of it.
 */
export type Default<D> =
  | { readonly default: string | number; readonly unset?: never; readonly shownDefault?: never }
  | { readonly default?: never; readonly unset: D; readonly shownDefault: string };

export type SettingOptions<D> = Default<D> & {
  readonly help: string;
  readonly range?: string;
  /** Messages do not repeat the value, and it can come from a file. */
  readonly isSecret?: boolean;
  /** `file`: other accounts of a machine can read the arguments of a process, so there is no flag with the value. */
  readonly flag?: "value" | "file";
};

/** Rejects a value; the remedy says which values the setting accepts. */
export type Reject = (remedy: string, value?: string) => never;

/** Declares a setting that `parse` reads. */
export function setting<T, D = never>(
  name: string,
  options: SettingOptions<D>,
  parse: (text: string, reject: Reject) => T,
): Setting<T | D> {
  const { help, range, isSecret = false, flag = "value" } = options;
  return {
    name,
    help,
    range,
    isSecret,
    flag,
    shownDefault: options.shownDefault ?? String(options.default),
    read(texts) {
      const text = texts.get(name) ?? (options.default === undefined ? undefined : String(options.default));
      if (text === undefined) return options.unset as D;
      return parse(text, (remedy, value = text) => {
        throw new ConfigurationError(PREFIX + name, isSecret ? undefined : value, remedy);
      });
    },
  };
}

/** The name or the address of a machine. An empty one would be all addresses of this machine. */
export function host(name: string, options: SettingOptions<never>): Setting<string> {
  return setting(name, options, (given, reject) => given || reject("give an address or a name, or unset it"));
}

/** The path of a file or a folder. An empty one would be the folder in which the program was started. */
export function path<D = never>(name: string, options: SettingOptions<D>): Setting<string | D> {
  return setting(name, options, (given, reject) =>
    given === "" ? reject("give a path, or unset it") : resolve(given),
  );
}

/** A whole number between two bounds, both included. */
export function wholeNumber(
  name: string,
  { min, max, ...options }: SettingOptions<never> & { readonly min: number; readonly max: number },
): Setting<number> {
  const range = `${min} to ${max}`;
  return setting(name, { ...options, range }, (given, reject) => {
    const value = /^\d+$/.test(given) ? Number(given) : Number.NaN;
    return value >= min && value <= max ? value : reject(`give a whole number from ${range}`);
  });
}

/** Bounds of a setting, written as its values are. */
export interface Bounds {
  readonly min: string;
  readonly max: string;
}

const DURATION_UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A length of time; its value is in milliseconds. */
export function duration<D = never>(name: string, options: SettingOptions<D> & Bounds): Setting<number | D> {
  return quantity(name, options, DURATION_UNITS, "a duration such as 250ms, 30s, 10m, 2h or 7d");
}

/** A duration such as 30s, in milliseconds; NaN if it is none. */
export function parseDuration(given: string): number {
  return parseQuantity(given, DURATION_UNITS);
}

const BYTE_UNITS = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 };

/** A size; its value is in bytes. */
export function bytes(name: string, options: SettingOptions<never> & Bounds): Setting<number> {
  return quantity(name, options, BYTE_UNITS, "a size such as 64m or 1g");
}

function quantity<D>(
  name: string,
  { min, max, ...options }: SettingOptions<D> & Bounds,
  units: Readonly<Record<string, number>>,
  examples: string,
): Setting<number | D> {
  const [least, most] = [parseQuantity(min, units), parseQuantity(max, units)];
  const range = `${min} to ${max}`;
  return setting(name, { ...options, range } as unknown as SettingOptions<D>, (given, reject) => {
    const value = parseQuantity(given, units);
    return value >= least && value <= most ? value : reject(`give ${examples}, from ${range}`);
  });
}

/** NaN if it is not a whole number with a unit; 0 needs no unit. */
function parseQuantity(given: string, units: Readonly<Record<string, number>>): number {
  if (given === "0") return 0;
  const [, amount, unit] = /^(\d+)\s*([a-z]*)$/i.exec(given) ?? [];
  return Number(amount) * (units[unit?.toLowerCase() ?? "?"] ?? Number.NaN);
}

/** One of several words. */
export function choice<const T extends string>(
  name: string,
  { choices, ...options }: SettingOptions<never> & { readonly choices: readonly T[] },
): Setting<T> {
  return setting(name, { ...options, range: choices.join(", ") }, (given, reject) =>
    (choices as readonly string[]).includes(given)
      ? (given as T)
      : reject(`give ${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`),
  );
}

/** True for the first of two words, false for the second. */
export function toggle(
  name: string,
  { words, ...options }: SettingOptions<never> & { readonly words: readonly [on: string, off: string] },
): Setting<boolean> {
  const word = choice(name, { ...options, choices: words });
  return { ...word, read: (texts) => word.read(texts) === words[0] };
}

/** Settings by the place of their values. */
export interface SettingTree {
  readonly [place: string]: Setting<unknown> | SettingTree;
}

/** The values of a tree of settings. */
export type ValuesOf<S> = { -readonly [P in keyof S]: S[P] extends Setting<infer T> ? T : ValuesOf<S[P]> };

/** Whether a member of a tree is a setting and not a group. */
export function isSetting(node: Setting<unknown> | SettingTree): node is Setting<unknown> {
  return typeof node.read === "function";
}

/** @throws {ConfigurationError} on a value that cannot be used. */
export function readSettings<S extends SettingTree>(tree: S, texts: SettingTexts): ValuesOf<S> {
  const values = Object.entries(tree).map(([place, node]) => [
    place,
    isSetting(node) ? node.read(texts) : readSettings(node, texts),
  ]);
  return Object.fromEntries(values) as ValuesOf<S>;
}

/** Every setting of a tree, in the order of declaration. */
export function listSettings(tree: SettingTree): Setting<unknown>[] {
  return Object.values(tree).flatMap((node) => (isSetting(node) ? [node] : listSettings(node)));
}
