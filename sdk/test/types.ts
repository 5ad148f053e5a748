/** What the compiler must accept and reject. The type check is the test; nothing here runs. */
import { type ErrorType, type Key, Latchkey, LatchkeyError, type ProblemType, type Secret } from "../src/index.ts";

export async function checkTypes(latchkey: Latchkey): Promise<unknown[]> {
  const verified = await latchkey.keys.verifyKey({ key: "a", ratelimits: [{ name: "requests", cost: 2 }] });
  const code:
    | "VALID"
    | "NOT_FOUND"
    | "FORBIDDEN"
    | "INSUFFICIENT_PERMISSIONS"
    | "USAGE_EXCEEDED"
    | "RATE_LIMITED"
    | "DISABLED"
    | "EXPIRED" = verified.data.code;
  const balance: number | undefined = verified.data.credits;
  // @ts-expect-error The answer has no such member.
  verified.data.owner;
  // @ts-expect-error The key is missing.
  await latchkey.keys.verifyKey({});
  // @ts-expect-error The input is missing.
  await latchkey.keys.verifyKey();
  // @ts-expect-error A misspelled member.
  await latchkey.keys.verifyKey({ key: "a", permission: "documents.read" });
  // @ts-expect-error The wrong type.
  await latchkey.keys.verifyKey({ key: "a", credits: { cost: "1" } });

  const created = await latchkey.keys.createKey({ apiId: "a", credits: { remaining: null }, roles: ["a"] as const });
  const secret: Secret = created.data.key;
  // @ts-expect-error A secret is not a text.
  const text: string = created.data.key;
  await latchkey.keys.verifyKey({ key: secret }, { signal: AbortSignal.timeout(5), timeout: 5, retries: 0 });
  // @ts-expect-error The name of a key is not a secret.
  await latchkey.keys.createKey({ apiId: "a", name: secret });
  const plaintext: Secret | undefined = (await latchkey.keys.getKey({ keyId: "a" })).data.plaintext;

  // All members of this input can be omitted.
  const page = await latchkey.apis.listApis();
  const cursor: string | undefined = page.pagination.cursor;
  for await (const key of latchkey.apis.listKeys.all({ apiId: "a" })) key satisfies Key;
  for await (const override of latchkey.ratelimits.listOverrides.all({ namespace: "a" })) {
    override.limit satisfies number;
    // @ts-expect-error Entries, not pages.
    override.overrides;
  }
  // @ts-expect-error This operation is not a list.
  latchkey.keys.getKey.all;
  await latchkey.ratelimits.multiLimit([{ namespace: "a", identifier: "b", limit: 1, duration: 1_000 }]);

  const error: unknown = undefined;
  if (error instanceof LatchkeyError) {
    if (error.type === "data/key_not_found") error.type satisfies ProblemType;
    // @ts-expect-error A misspelled type.
    if (error.type === "data/key_missing") return [];
    // @ts-expect-error Not a type of the service.
    if (error.type === "timeout") error.type satisfies ProblemType;
    error.type satisfies ErrorType;
    error.retryAfter satisfies number | undefined;
  }
  // @ts-expect-error A misspelled option.
  new Latchkey({ uri: "http://127.0.0.1:3000" });
  return [code, balance, text, plaintext, cursor];
}
