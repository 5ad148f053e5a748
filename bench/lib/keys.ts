/** Root key of the benchmark's own service, which is deleted with its folder. */
export const ROOT_KEY = "lk_root_of_a_bench_that_is_over_in_a_minute";
export const JSON_TYPE = { "Content-Type": "application/json" };
export const VERIFY_PATH = "/v2/keys.verifyKey";

const CALLS_AT_ONCE = 16;

/** Creates keys of one API without any options. */
export async function createKeys(url: string, count: number): Promise<string[]> {
  const call = async (operation: string, input: object) => {
    const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
    return JSON.parse(await post(`${url}/v2/${operation}`, headers, JSON.stringify(input))).data;
  };
  const { apiId } = await call("apis.createApi", { name: "bench" });
  const keys: string[] = [];
  const worker = async () => {
    while (keys.length < count) keys.push((await call("keys.createKey", { apiId, prefix: "bench" })).key);
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, worker));
  return keys.slice(0, count);
}

/** @throws if the status is not a success. */
export async function post(url: string, headers: Record<string, string>, body: string): Promise<string> {
  const response = await fetch(url, { method: "POST", headers, body });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`);
  return text;
}
