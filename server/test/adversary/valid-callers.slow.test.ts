/**
 * Callers with valid sessions and keys, all in one second and behind one address, beside others who invent tokens. The
 * clock stands still, so that no budget is refilled.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { before, it } from "node:test";
import inject from "light-my-request";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { base58, formatKey, PORTAL_TOKEN_PREFIX } from "../../../engine/src/rules/key-string.ts";
import { describeOnStores } from "../harness.ts";
import { callPortal } from "../portal-caller.ts";

const ADMINISTRATORS = 20;
const HOLDERS = 1_000;
const KEYS_PER_USER = 10;

/** The proxy, which hides the addresses of its users. */
const PROXY = "203.0.113.1";

const random = seededRandom(28);
const bytes = (length: number) => Uint8Array.from({ length }, () => random.below(256));
/** A token that was never issued, in the form of those that were. */
const inventedPortalToken = () => `${PORTAL_TOKEN_PREFIX}_${base58(bytes(32))}`;
const inventedDashboardToken = () => Buffer.from(bytes(32)).toString("base64url");

/** Adds up equal statuses. */
function tally(statuses: readonly number[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

describeOnStores("valid callers behind one address", (server, store) => {
  // Budgets do not depend on the database, so that a part of the calls shows on PostgreSQL that its look-ups pass too.
  const users = store === "sqlite" ? 200 : HOLDERS / KEYS_PER_USER;
  const loading = store === "sqlite" ? users : users / 4;
  let apiId: string;
  /** The key strings and ids of each user. */
  const owned: { externalId: string; keys: string[]; keyIds: string[] }[] = [];

  before(async () => {
    apiId = (await server.ok("apis.createApi", { name: "shared", ownKeyAccess: true })).apiId;
    for (let user = 0; user < users; user++) {
      const keys = Array.from({ length: KEYS_PER_USER }, () => formatKey(null, bytes(16)).key);
      owned.push({ externalId: `user_${user}`, keys, keyIds: [] });
    }
    // In bulk, because the service would commit each key alone.
    const all = owned.flatMap(({ externalId, keys }, user) =>
      keys.map((key) => ({ user, hash: createHash("sha256").update(key).digest("hex"), externalId })),
    );
    for (let i = 0; i < all.length; i += 500) {
      const chunk = all.slice(i, i + 500);
      const keys = chunk.map(({ hash, externalId }) => ({ hash, externalId }));
      const { migrated } = await server.ok("keys.migrateKeys", { migrationId: "former", apiId, keys });
      for (const [n, { keyId }] of migrated.entries()) owned[chunk[n]!.user]!.keyIds.push(keyId);
    }
  });

  /** A new session of each user who loads the page. */
  const openSessions = () =>
    Promise.all(
      owned.slice(0, loading).map(async ({ externalId, keyIds }) => {
        const { token } = await server.ok("portal.createSession", { apiId, externalId, actions: ["list", "usage"] });
        return { token, keyIds };
      }),
    );

  const signIn = async (rootKey: string) => {
    const { headers } = await inject(server.service.dispatch, {
      method: "POST",
      url: "/dashboard/session",
      payload: JSON.stringify({ rootKey }),
      remoteAddress: PROXY,
      headers: { "content-type": "application/json", "sec-fetch-site": "same-origin" },
    });
    return /latchkey_session=([\w-]+)/.exec(String(headers["set-cookie"]))?.[1];
  };

  /** What each user's page asks at its start, and what the dashboard asks for each administrator. */
  const load = (sessions: Awaited<ReturnType<typeof openSessions>>, cookies: readonly (string | undefined)[]) => [
    ...sessions.flatMap(({ token, keyIds }) => [
      portal(token, "getSession"),
      portal(token, "listKeys"),
      ...keyIds.map((keyId) => portal(token, "getUsage", { keyId })),
    ]),
    ...cookies.flatMap((cookie) => [
      dashboard(cookie!, "GET", "/dashboard/session"),
      dashboard(cookie!, "POST", "/dashboard/api/v2/apis.listApis"),
      dashboard(cookie!, "POST", "/dashboard/api/v2/rootKeys.listSessions"),
    ]),
  ];

  const portal = async (token: string, name: string, body = {}, from = PROXY) =>
    (await callPortal(server, token, name, body, { from })).status;

  const dashboard = async (cookie: string, method: "GET" | "POST", url: string, from = PROXY) => {
    const { statusCode } = await inject(server.service.dispatch, {
      method,
      url,
      remoteAddress: from,
      headers: {
        "content-type": "application/json",
        "sec-fetch-site": "same-origin",
        cookie: `latchkey_session=${cookie}`,
      },
      ...(method === "POST" && { payload: "{}" }),
    });
    return statusCode;
  };

  /** Invented tokens of both kinds. */
  const junk = (count: number, addressOf: (i: number) => string) =>
    Array.from({ length: count }, (_, i) =>
      i % 2 === 0
        ? portal(inventedPortalToken(), "listKeys", {}, addressOf(i))
        : dashboard(inventedDashboardToken(), "GET", "/dashboard/session", addressOf(i)),
    );

  it("load the portal and the dashboard in one second, beside 1,300 invented tokens", async () => {
    const sessions = await openSessions();
    const rootKeys = await Promise.all(Array.from({ length: ADMINISTRATORS }, () => server.grant("*")));
    // From 1,000 addresses, each of which gets a share of the budget.
    const others = await Promise.all(junk(1_000, (i) => `198.51.${i >> 8}.${i & 255}`));
    const own = junk(300, () => PROXY);
    const cookies = await Promise.all(rootKeys.map(({ key }) => signIn(key)));
    assert(!cookies.includes(undefined), "an administrator could not sign in");
    assert.deepEqual(tally(await Promise.all(load(sessions, cookies))), {
      200: loading * (2 + KEYS_PER_USER) + 3 * ADMINISTRATORS,
    });
    const invented = tally([...others, ...(await Promise.all(own))]);
    assert.equal((invented[401] ?? 0) + (invented[503] ?? 0), 1_300, JSON.stringify(invented));
    const refused = /^latchkey_lookups_refused_total\{kind="sessions"\} (\d+)$/m.exec(await server.scrape())?.[1];
    assert.equal(Number(refused), invented[503] ?? 0);
  });

  it("read their own keys, 1,000 of one workspace in one second", async () => {
    const keys = owned.flatMap((owner) => owner.keys).slice(0, HOLDERS);
    const replies = await Promise.all(
      keys.map((key) =>
        server.request("POST", "/v2/keys.getOwnKey", {
          raw: JSON.stringify({ key }),
          from: PROXY,
          headers: { "content-type": "application/json" },
        }),
      ),
    );
    assert.deepEqual(tally(replies.map(({ status }) => status)), { 200: HOLDERS });
  });
});
