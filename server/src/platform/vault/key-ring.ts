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
import { newSealingKey, sealingKeyFingerprint } from "../../../../engine/src/crypto/seal.ts";

const KEY_BYTES = 32;
const BASE64_32 = /^[A-Za-z0-9+/_-]{43}=?$/;

/** The source of master keys; clonable, for other threads. */
export type KeyRingSource =
  /** From the configuration: the current key and, during a rotation, the next. */
  | { kind: "given"; keys: readonly string[] }
  /** From the data folder: `vault-key` and, during a rotation, `vault-key.next`. */
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

  /** The master key of a new vault: the first configured key, or the key in the folder, which is created if missing. */
  first(): string | undefined {
    if (this.isEmpty && this.#source.kind === "folder") {
      writeKeyFile(keyFiles(this.#source.folder)[0]);
      this.#load();
    }
    return this.fingerprints[0];
  }

  /** The next master key of a rotation: the last of several; undefined if there is only one. */
  next(): string | undefined {
    if (this.#source.kind === "folder") {
      const [, file] = keyFiles(this.#source.folder);
      // An existing file belongs to an interrupted rotation.
      if (!existsSync(file)) writeKeyFile(file);
      this.#load();
    }
    // Always the last key, so that a repeated rotation never returns to the first key.
    return this.#keys.size > 1 ? this.fingerprints.at(-1) : undefined;
  }

  /** Replaces the file of the current key by the file of the next one, if the next one is the vault's master key. */
  promote(current: string): void {
    if (this.#source.kind !== "folder") return;
    const [file, next] = keyFiles(this.#source.folder);
    const key = readKeyFile(next);
    if (!key || sealingKeyFingerprint(key) !== current) return;
    renameSync(next, file);
    syncFolder(this.#source.folder);
  }

  /** The key with this fingerprint. Reads the folder again, because another process may have written a new key. */
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

/** The current key and, during a rotation, the next. */
function readKeyFiles(folder: string): Buffer[] {
  const [file, next] = keyFiles(folder);
  // The next key first: if it is renamed to the current one meanwhile, the second read finds it.
  const keys = [readKeyFile(next), readKeyFile(file)];
  return keys.filter((key) => key !== undefined).reverse();
}

/** The key in a file; undefined if the file does not exist. */
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
  // Written to a draft and then linked, so that a crash or a concurrent reader never sees half a key.
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
    // Fails if the file exists, so that two processes that start together use the same key.
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
