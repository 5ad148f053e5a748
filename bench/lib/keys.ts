/** Root key of the benchmark's own service, which is deleted with its folder. */
export const ROOT_KEY = "lk_root_of_a_bench_that_is_over_in_a_minute";
export const JSON_TYPE = { "Content-Type": "application/json" };
export const VERIFY_PATH = "/v2/keys.verifyKey";
export const LIMIT_PATH = "/v2/ratelimits.limit";

const CALLS_AT_ONCE = 16;
const VERIFIED_AT_ONCE = 128;

/** Creates keys of one API, all with the same options. */
export async function createKeys(url: string, count: number, options: object = {}): Promise<string[]> {
  const call = async (operation: string, input: object) => {
    const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
    return JSON.parse(await post(`${url}/v2/${operation}`, headers, JSON.stringify(input))).data;
  };
  const { apiId } = await call("apis.createApi", { name: "bench" });
  const keys: string[] = [];
  const worker = async () => {
    while (keys.length < count) keys.push((await call("keys.createKey", { apiId, prefix: "bench", ...options })).key);
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, worker));
  return keys.slice(0, count);
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
