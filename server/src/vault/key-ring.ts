import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { fingerprint, newSealingKey } from "../crypto/seal.ts";

const KEY_BYTES = 32;
const BASE64_32 = /^[A-Za-z0-9+/_-]{43}=?$/;

/** Where master keys come from; can be copied to the thread that uses them. */
export type KeyRingSource =
  /** Given by configuration, the current one and, during a change, the next. */
  | { kind: "given"; keys: readonly string[] }
  /** Kept in the data folder: `vault-key`, and during a change `vault-key.next`. */
  | { kind: "folder"; folder: string }
  /** None: keys cannot be recoverable. */
  | { kind: "none" };

/** The master keys that this process can use, by fingerprint. */
export class KeyRing {
  readonly #source: KeyRingSource;
  #keys = new Map<string, Buffer>();

  constructor(source: KeyRingSource) {
    this.#source = source;
    this.#load();
  }

  get isEmpty(): boolean {
    if (this.#keys.size === 0) this.#load();
    return this.#keys.size === 0;
  }

  get fingerprints(): string[] {
    return [...this.#keys.keys()];
  }

  /** The key under which a new vault is to stand: the first that was given, or one made in the folder. */
  first(): string | undefined {
    if (this.isEmpty && this.#source.kind === "folder") {
      writeKeyFile(keyFiles(this.#source.folder)[0]);
      this.#load();
    }
    return this.fingerprints[0];
  }

  /** The key to which a change from `current` leads; undefined when no other was given. */
  next(current: string): string | undefined {
    if (this.#source.kind === "folder") {
      const [, file] = keyFiles(this.#source.folder);
      // One that is there belongs to a change that was stopped.
      if (!existsSync(file)) writeKeyFile(file);
      this.#load();
    }
    return this.fingerprints.find((candidate) => candidate !== current);
  }

  /** Once the vault stands under `current`: in the folder it takes the place of its predecessor. */
  settle(current: string): void {
    if (this.#source.kind !== "folder") return;
    const [file, next] = keyFiles(this.#source.folder);
    if (!existsSync(next) || fingerprint(readKeyFile(next)) !== current) return;
    renameSync(next, file);
    syncFolder(this.#source.folder);
  }

  /** The key with this fingerprint. One that another process has put into the folder meanwhile is found too. */
  find(wanted: string): Buffer | undefined {
    if (!this.#keys.has(wanted)) this.#load();
    return this.#keys.get(wanted);
  }

  #load(): void {
    const source = this.#source;
    const keys =
      source.kind === "given"
        ? source.keys.map(parseMasterKey)
        : source.kind === "folder"
          ? keyFiles(source.folder)
              .filter((file) => existsSync(file))
              .map(readKeyFile)
          : [];
    this.#keys = new Map(keys.map((key) => [fingerprint(key), key]));
  }
}

/** @throws when the text is not 32 bytes as base64; the message does not repeat it. */
export function parseMasterKey(text: string): Buffer {
  const key = Buffer.from(text, "base64");
  if (!BASE64_32.test(text) || key.length !== KEY_BYTES) throw new Error("A vault key is 32 bytes as base64");
  return key;
}

function keyFiles(folder: string): [current: string, next: string] {
  return [join(folder, "vault-key"), join(folder, "vault-key.next")];
}

function readKeyFile(file: string): Buffer {
  return parseMasterKey(readFileSync(file, "utf8").trim());
}

function writeKeyFile(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // Exclusive: two processes that start together must not each believe in a key of their own.
  const descriptor = openSync(file, "wx", 0o600);
  try {
    writeSync(descriptor, `${newSealingKey().toString("base64")}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  syncFolder(dirname(file));
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
