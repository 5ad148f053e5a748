/** What the compiler must accept and reject. The type check is the test; nothing here runs. */
import { Hono } from "hono";
import * as forExpress from "../src/express.ts";
import * as forFastify from "../src/fastify.ts";
import * as forFetch from "../src/fetch.ts";
import * as forHono from "../src/hono.ts";
import { type ErrorType, type Key, Latchkey, LatchkeyError, type ProblemType, type Secret } from "../src/index.ts";
import * as forNext from "../src/next.ts";
import * as forNode from "../src/node.ts";

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

export function checkMiddlewareTypes(failOpen: boolean): unknown[] {
  const apiId = "api_1";
  const limit = { namespace: "n", limit: 1, duration: 1_000, identifier: "owner" } as const;
  const app = new Hono()
    .get("/a", forHono.verify({ apiId }), forHono.ratelimit(limit), (c) =>
      c.text(c.var.latchkey.identity?.externalId ?? ""),
    )
    // @ts-expect-error There is no key if the request passes without a verification.
    .get("/b", forHono.verify({ apiId, failOpen: true }), (c) => c.text(c.var.latchkey.keyId))
    // @ts-expect-error Perhaps.
    .get("/c", forHono.verify({ apiId, failOpen }), (c) => c.text(c.get("latchkey").keyId))
    .get("/d", (c) => c.text(c.var.latchkey?.keyId ?? ""));
  // @ts-expect-error No `verify` is chained to it.
  app.get("/e", (c) => c.text(c.var.latchkey.keyId));

  const GET = forNext.verify({ apiId }, async (request, { params }: { params: Promise<{ id: string }> }, key) =>
    Response.json([request.url, (await params).id, key.meta]),
  );
  GET satisfies (request: Request, context: { params: Promise<{ id: string }> }) => Promise<Response>;
  const POST = forNext.verify(
    { apiId },
    forNext.ratelimit(limit, (_request: Request, _context: unknown, key: forNext.VerifiedKey) =>
      Response.json(key.keyId),
    ),
  );

  const worker = forFetch.verify(
    { apiId },
    (_request, key, env: { region: string }) => new Response(env.region + key.apiId),
  );
  worker satisfies (request: Request, env: { region: string }) => Promise<Response>;
  const node = forNode.verify({ apiId, cost: ({ headers }) => Number(headers["x-cost"]) }, (_request, response, key) =>
    response.end(key.keyId),
  );

  return [
    app,
    GET,
    POST,
    worker,
    node,
    forExpress.verify({ apiId, permissions: ({ params }) => `documents.${params.id}` }),
    forExpress.ratelimit({ ...limit, identifier: ({ latchkey }) => latchkey?.keyId ?? "" }),
    forFastify.verify({
      apiId,
      onReject: (rejection, { ip }) => ({ ...rejection, body: { ip, code: rejection.code } }),
    }),
    // @ts-expect-error The API is missing.
    forExpress.verify({}),
    // @ts-expect-error A misspelled option.
    forFetch.verify({ apiId, permission: "documents.read" }, () => new Response()),
    // @ts-expect-error The identifier is missing.
    forFastify.ratelimit({ namespace: "n", limit: 1, duration: 1_000 }),
  ];
}
