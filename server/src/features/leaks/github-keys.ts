import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { type EcdsaKey, readEcdsaKey } from "../../../../engine/src/crypto/signature.ts";

/** Keys are read again when they are this old, so that a key that GitHub withdrew ends. */
const AGE_MAX: Milliseconds = 24 * 3_600_000;
/** The least time between two attempts to read them. */
const READ_INTERVAL: Milliseconds = 60_000;

const KEYS_MAX = 100;

/** The answer of https://api.github.com/meta/public_keys/secret_scanning. */
const KeyList = z.object({
  public_keys: z
    .array(z.object({ key_identifier: z.string().min(1).max(200), key: z.string().max(2_000) }))
    .max(KEYS_MAX),
});

/** The public keys of GitHub cannot be read, and none that were read before apply. */
export class GithubKeysUnavailable extends Error {
  constructor(cause: unknown) {
    super("The public keys of GitHub's secret scanning cannot be read", { cause });
    this.name = "GithubKeysUnavailable";
  }
}

/** @throws {Error} if the text is no list of keys in GitHub's form, or has a key that is not on the curve P-256. */
export function parseGithubKeys(text: string): Map<string, EcdsaKey> {
  const { public_keys } = KeyList.parse(JSON.parse(text));
  return new Map(
    public_keys.map(({ key_identifier, key }) => {
      const read = readEcdsaKey(key);
      if (!read) throw new Error(`The key ${key_identifier} is no public key on the curve P-256`);
      return [key_identifier, read];
    }),
  );
}

/** Reads the list of keys from a URL or a file. */
export type ReadGithubKeys = () => Promise<string>;

/** Reads the list from a file. */
export const githubKeysFile =
  (path: string): ReadGithubKeys =>
  () =>
    readFile(path, "utf8");

/** The keys with which GitHub signs its reports. They are read at first use, and again when a report names another one. */
export class GithubKeys {
  readonly #clock: Clock;
  readonly #read: ReadGithubKeys;
  #keys: ReadonlyMap<string, EcdsaKey> = new Map();
  /** Monotonic times of the last read that succeeded, and of the last attempt. */
  #readAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #failure: unknown;
  #reading: Promise<void> | undefined;

  constructor(clock: Clock, read: ReadGithubKeys) {
    this.#clock = clock;
    this.#read = read;
  }

  /**
   * The key with this identifier; undefined if there is none.
   *
   * @throws {GithubKeysUnavailable} if the keys cannot be read.
   */
  async find(identifier: string): Promise<EcdsaKey | undefined> {
    const isFresh = () => this.#clock.monotonic() - this.#readAt < AGE_MAX;
    if (!isFresh() || !this.#keys.has(identifier)) await this.#refresh();
    if (!isFresh()) throw new GithubKeysUnavailable(this.#failure);
    return this.#keys.get(identifier);
  }

  async #refresh(): Promise<void> {
    if (this.#reading === undefined) {
      const now = this.#clock.monotonic();
      if (now - this.#triedAt < READ_INTERVAL) return;
      this.#triedAt = now;
      this.#reading = this.#load().finally(() => {
        this.#reading = undefined;
      });
    }
    await this.#reading;
  }

  async #load(): Promise<void> {
    try {
      this.#keys = parseGithubKeys(await this.#read());
      this.#readAt = this.#clock.monotonic();
    } catch (error) {
      this.#failure = error;
    }
  }
}
