import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { newSealingKey, sealingKeyFingerprint } from "../crypto/seal.ts";

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

  /** The key to which a change leads, the last of several; undefined when there is one only. */
  next(): string | undefined {
    if (this.#source.kind === "folder") {
      const [, file] = keyFiles(this.#source.folder);
      // One that is there belongs to a change that was stopped.
      if (!existsSync(file)) writeKeyFile(file);
      this.#load();
    }
    // Never back to the first: whoever is not sure that a change came to its end may ask for it again.
    return this.#keys.size > 1 ? this.fingerprints.at(-1) : undefined;
  }

  /** Once the vault stands under `current`: in the folder it takes the place of its predecessor. */
  settle(current: string): void {
    if (this.#source.kind !== "folder") return;
    const [file, next] = keyFiles(this.#source.folder);
    const key = readKeyFile(next);
    if (!key || sealingKeyFingerprint(key) !== current) return;
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
          ? readKeyFiles(source.folder)
          : [];
    this.#keys = new Map(keys.map((key) => [sealingKeyFingerprint(key), key]));
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

/** The current key and, during a change, the next. */
function readKeyFiles(folder: string): Buffer[] {
  const [file, next] = keyFiles(folder);
  // The next one first: when it takes the place of the current one meanwhile, it is found there.
  const keys = [readKeyFile(next), readKeyFile(file)];
  return keys.filter((key) => key !== undefined).reverse();
}

/** The key in a file; undefined when there is no such file. */
function readKeyFile(file: string): Buffer | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return parseMasterKey(text.trim());
}

function writeKeyFile(file: string): void {
  const folder = dirname(file);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // Whoever dies or looks in the middle of it must not meet half a key, so it gets its name when it is complete.
  const draft = `${file}.${process.pid}`;
  rmSync(draft, { force: true });
  const descriptor = openSync(draft, "wx", 0o600);
  try {
    writeSync(descriptor, `${newSealingKey().toString("base64")}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  try {
    // Fails when there is one: two processes that start together must not each believe in a key of their own.
    linkSync(draft, file);
  } finally {
    rmSync(draft);
  }
  syncFolder(folder);
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
