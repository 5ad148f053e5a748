import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  exportPKCS8,
  generateKeyPair,
  importJWK,
  importPKCS8,
  type JWK,
} from "jose";
import type { Clock, Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import type { SigningAlgorithm } from "../../platform/store/schema.ts";
import { nextActiveFrom, PUBLISHED_BEFORE, publishedKeysAt, type Rotation, signingKeyAt } from "./rotation.ts";
import type { NewSigningKey, OpenedSigningKey } from "./statements.ts";

/** How old keys that were read may be. A next key is published for much longer, so every node knows it before its use. */
const AGE_MAX: Milliseconds = 60_000;

/** Workspaces whose keys are cached. */
const WORKSPACES_MAX = 1_000;

/** RFC 7518, section 3.3, asks for 2,048 bits or more. */
const RSA_BITS = 2_048;

/** A key that signs access tokens. */
export interface SigningKey {
  readonly id: string;
  readonly algorithm: SigningAlgorithm;
  readonly activeFrom: number;
  /** As it is published. */
  readonly jwk: JWK;
  readonly publicKey: CryptoKey;
  readonly privateKey: CryptoKey;
}

interface CachedKeys {
  readonly keys: readonly SigningKey[];
  /** Monotonic time before their query. */
  readonly readAt: Milliseconds;
}

export interface SigningKeysOptions {
  clock: Clock;
  rotation: Rotation;
  find(workspaceId: string): Promise<readonly OpenedSigningKey[]>;
  /** Stores a key, unless another node has stored one. */
  add(key: { workspaceId: string; made: NewSigningKey; rotation: Rotation; now: Instant }): Promise<void>;
}

/**
 * The signing keys of each workspace. The database says which one signs from when on, so that all nodes agree. Whoever reads
 * them first when the next one is due makes it.
 */
export class SigningKeys {
  readonly #options: SigningKeysOptions;
  /** Least recently read first. */
  readonly #cached = new Map<string, CachedKeys>();
  readonly #reading = new Map<string, Promise<CachedKeys>>();

  constructor(options: SigningKeysOptions) {
    this.#options = options;
  }

  /** The key that signs now. */
  async current(workspaceId: string, now: Instant): Promise<SigningKey> {
    const key = signingKeyAt(await this.#keysOf(workspaceId), now);
    if (key === undefined) throw new Error("A workspace has no signing key");
    return key;
  }

  /** The keys that verify tokens now. */
  async published(workspaceId: string, now: Instant): Promise<SigningKey[]> {
    return publishedKeysAt(await this.#keysOf(workspaceId), this.#options.rotation, now);
  }

  async #keysOf(workspaceId: string): Promise<readonly SigningKey[]> {
    const cached = this.#cached.get(workspaceId);
    const age = cached ? this.#options.clock.monotonic() - cached.readAt : Number.POSITIVE_INFINITY;
    if (cached && age < AGE_MAX) return cached.keys;
    try {
      return (await this.#refresh(workspaceId)).keys;
    } catch (error) {
      // A key that others have made since is not used before it was published for as long.
      if (cached && age < PUBLISHED_BEFORE && (error as Error).name === StoreUnavailable.name) return cached.keys;
      throw error;
    }
  }

  #refresh(workspaceId: string): Promise<CachedKeys> {
    let reading = this.#reading.get(workspaceId);
    if (!reading) {
      reading = this.#read(workspaceId).finally(() => this.#reading.delete(workspaceId));
      this.#reading.set(workspaceId, reading);
    }
    return reading;
  }

  async #read(workspaceId: string): Promise<CachedKeys> {
    const { clock, rotation, find, add } = this.#options;
    let readAt = clock.monotonic();
    let stored = await find(workspaceId);
    if (nextActiveFrom(stored, rotation, clock.now()) !== undefined) {
      await add({ workspaceId, made: await newSigningKey(rotation.algorithm), rotation, now: clock.now() });
      readAt = clock.monotonic();
      stored = await find(workspaceId);
    }
    const known = new Map(this.#cached.get(workspaceId)?.keys.map((key) => [key.id, key]));
    const keys = await Promise.all(stored.map((key) => known.get(key.id) ?? open(key)));
    const read = { keys, readAt };
    this.#cached.delete(workspaceId);
    this.#cached.set(workspaceId, read);
    for (const first of this.#cached.keys()) {
      if (this.#cached.size <= WORKSPACES_MAX) break;
      this.#cached.delete(first);
    }
    return read;
  }
}

async function newSigningKey(algorithm: SigningAlgorithm): Promise<NewSigningKey> {
  const options = { extractable: true, ...(algorithm === "RS256" && { modulusLength: RSA_BITS }) };
  const { publicKey, privateKey } = await generateKeyPair(algorithm, options);
  const jwk = await exportJWK(publicKey);
  return {
    id: await calculateJwkThumbprint(jwk),
    algorithm,
    publicKey: JSON.stringify(jwk),
    privateKey: await exportPKCS8(privateKey),
  };
}

async function open({ id, algorithm, publicKey, privateKey, activeFrom }: OpenedSigningKey): Promise<SigningKey> {
  const jwk: JWK = { ...(JSON.parse(publicKey) as JWK), kid: id, alg: algorithm, use: "sig" };
  return {
    id,
    algorithm,
    activeFrom,
    jwk,
    publicKey: (await importJWK(jwk, algorithm)) as CryptoKey,
    privateKey: await importPKCS8(privateKey, algorithm),
  };
}
