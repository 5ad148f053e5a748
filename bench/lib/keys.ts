/** Of a bench's own service only, which is gone with its folder. */
export const ROOT_KEY = "lk_root_of_a_bench_that_is_over_in_a_minute";
export const JSON_TYPE = { "Content-Type": "application/json" };
export const VERIFY_PATH = "/v2/keys.verifyKey";

const CALLS_AT_ONCE = 16;

/** Keys of one API in the service, as plain as keys are. */
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

/** @throws when the answer is no success. */
export async function post(url: string, headers: Record<string, string>, body: string): Promise<string> {
  const response = await fetch(url, { method: "POST", headers, body });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`);
  return text;
}
