import { createHash, randomBytes } from "node:crypto";

/** Root key of the benchmark's own service, which is deleted with its folder. */
export const ROOT_KEY = "lk_root_of_a_bench_that_is_over_in_a_minute";
export const JSON_TYPE = { "Content-Type": "application/json" };
export const VERIFY_PATH = "/v2/keys.verifyKey";
export const LIMIT_PATH = "/v2/ratelimits.limit";

const CALLS_AT_ONCE = 16;
const KEYS_PER_IMPORT = 1_000;
const VERIFIED_AT_ONCE = 128;

/** Creates keys of one API, all with the same options. */
export async function createKeys(url: string, count: number, options: object = {}): Promise<string[]> {
  const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
  const body = JSON.stringify({ apiId: await createApi(url), prefix: "bench", ...options });
  const keys: string[] = [];
  const worker = async () => {
    while (keys.length < count) keys.push(JSON.parse(await post(`${url}/v2/keys.createKey`, headers, body)).data.key);
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, worker));
  return keys.slice(0, count);
}

/** New key strings for an import. */
export function newKeys(count: number): string[] {
  return Array.from({ length: count }, () => `bench_${randomBytes(16).toString("base64url")}`);
}

/** Imports keys by their hashes into an API. */
export async function importKeys(url: string, apiId: string, keys: readonly string[]): Promise<void> {
  const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
  for (let i = 0; i < keys.length; i += KEYS_PER_IMPORT) {
    const hashes = keys
      .slice(i, i + KEYS_PER_IMPORT)
      .map((key) => ({ hash: createHash("sha256").update(key).digest("hex") }));
    const body = JSON.stringify({ migrationId: "bench", apiId, keys: hashes });
    const { failed } = JSON.parse(await post(`${url}/v2/keys.migrateKeys`, headers, body)).data;
    if (failed.length > 0) throw new Error(`${failed.length} keys were not imported`);
  }
}

/** Creates an API; returns its id. */
export async function createApi(url: string): Promise<string> {
  const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
  return JSON.parse(await post(`${url}/v2/apis.createApi`, headers, '{"name":"bench"}')).data.apiId;
}

/** Bodies of `ratelimits.limit` for different identifiers, none of which reaches its limit. */
export function limitBodies(count: number): string[] {
  return Array.from({ length: count }, (_, i) =>
    JSON.stringify({ namespace: "bench", identifier: `user ${i}`, limit: 1e9, duration: 3_600_000 }),
  );
}

/** @throws if the status is not a success. */
export async function post(url: string, headers: Record<string, string>, body: string): Promise<string> {
  const response = await fetch(url, { method: "POST", headers, body });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`);
  return text;
}

/**
 * Fills the cache of a server with every key.
 *
 * @throws if a key is not valid.
 */
export async function verifyEach(url: string, keys: readonly { readonly key: string }[]): Promise<void> {
  const rest = keys.values();
  const worker = async () => {
    for (const { key } of rest) {
      const text = await post(url + VERIFY_PATH, JSON_TYPE, JSON.stringify({ key }));
      if (!text.includes('"code":"VALID"')) throw new Error(`A key is not valid: ${text}`);
    }
  };
  await Promise.all(Array.from({ length: VERIFIED_AT_ONCE }, worker));
}
