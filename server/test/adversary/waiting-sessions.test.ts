/** What happens to a session of the dashboard or of the portal while its call waits (rule 225). */
import assert from "node:assert/strict";
import { it } from "node:test";
import inject from "light-my-request";
import { operations } from "../../src/service/operations.ts";
import { describeOnStores, examine, type TestServer } from "../harness.ts";
import type { InterceptedStore } from "../intercepted-store.ts";
import { callPortal } from "../portal-caller.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

interface Made {
  apiId: string;
  keyId: string;
  key: string;
  externalId: string;
  rootKeyId: string;
  /** Of the dashboard, or of the portal. */
  token: string;
  sessionId: string;
}

interface Change {
  how: string;
  change(server: TestServer, made: Made): unknown;
  answer: string | undefined;
}

const ofRootKeys: readonly Change[] = [
  {
    how: "its root key is deleted",
    change: (server, { rootKeyId }) => server.ok("rootKeys.deleteRootKey", { rootKeyId }),
    answer: "authentication_failed",
  },
  {
    how: "its root key is disabled",
    change: (server, { rootKeyId }) => server.ok("rootKeys.updateRootKey", { rootKeyId, enabled: false }),
    answer: "root_key_disabled",
  },
  {
    how: "its root key expires",
    change: async (server, { rootKeyId }) => {
      const expires = server.clock.now() + MINUTE;
      await server.ok("rootKeys.updateRootKey", { rootKeyId, expires });
      server.clock.step(MINUTE);
    },
    answer: "root_key_expired",
  },
  {
    how: "its root key loses its permissions",
    change: (server, { rootKeyId }) =>
      server.ok("rootKeys.updateRootKey", { rootKeyId, permissions: ["apis.api_other.read_key"] }),
    answer: "insufficient_permissions",
  },
  {
    how: "only the name of its root key changes",
    change: (server, { rootKeyId }) => server.ok("rootKeys.updateRootKey", { rootKeyId, name: "renamed" }),
    answer: undefined,
  },
];

const ofDashboard: readonly Change[] = [
  ...ofRootKeys,
  {
    how: "it ends by signing out",
    change: (server, { token }) => browse(server, "DELETE", "/dashboard/session", token),
    answer: "authentication_failed",
  },
  {
    how: "it is over",
    change: (server) => server.clock.step(12 * HOUR),
    answer: "authentication_failed",
  },
];

const ofPortal: readonly Change[] = [
  // The holder of a session learns nothing about the root key.
  ...ofRootKeys.map((one) => (one.answer?.startsWith("root_key") ? { ...one, answer: "authentication_failed" } : one)),
  {
    how: "it is deleted",
    change: (server, { apiId, sessionId }) => server.ok("portal.deletePortalSessions", { apiId, sessionId }),
    answer: "authentication_failed",
  },
  {
    how: "its owner is deleted",
    change: (server, { externalId }) => server.ok("identities.deleteIdentity", { identity: externalId }),
    answer: "authentication_failed",
  },
  {
    how: "its API is deleted",
    change: (server, { apiId }) => server.ok("apis.deleteApi", { apiId }),
    answer: "authentication_failed",
  },
  { how: "it is over", change: (server) => server.clock.step(HOUR), answer: "authentication_failed" },
  {
    how: "it is read again meanwhile",
    change: async (server, { token }) => {
      await server.advance(2_000);
      assert.equal((await callPortal(server, token, "getSession")).status, 200);
    },
    answer: undefined,
  },
];

async function browse(server: TestServer, method: "POST" | "DELETE", url: string, token: string, body?: object) {
  const response = await inject(server.service.dispatch, {
    method,
    url,
    headers: {
      "sec-fetch-site": "same-origin",
      cookie: `latchkey_session=${token}`,
      ...(body && { "content-type": "application/json" }),
    },
    ...(body && { payload: JSON.stringify(body) }),
  });
  const operation = operations.find(({ name }) => url.endsWith(`/${name}`));
  return examine(operation, url, response.statusCode, response.headers as Record<string, string>, response.payload);
}

let owners = 0;

async function make(server: TestServer, kind: "dashboard" | "portal"): Promise<Made> {
  const apiId = await server.createApi();
  const externalId = `owner_${++owners}`;
  const { key: as, rootKeyId } = await server.grant(`apis.${apiId}.*`);
  const { key, keyId } = await server.createKey(apiId, { externalId });
  const made = { apiId, externalId, rootKeyId, key, keyId };
  if (kind === "dashboard") {
    const { headers } = await browse(server, "POST", "/dashboard/session", "", { rootKey: as });
    return {
      ...made,
      sessionId: "",
      token: /latchkey_session=([\w-]+)/.exec(String(headers["set-cookie"]))?.[1] ?? "",
    };
  }
  const actions = ["list", "usage"];
  const { token, sessionId } = await server.ok(
    "portal.createSession",
    { apiId, externalId, actions, expiresIn: HOUR },
    { as },
  );
  return { ...made, token, sessionId };
}

/** The answer of a call during whose first call of this procedure something changes. */
async function during<T>(
  store: Pick<InterceptedStore, "holdNext">,
  procedure: string,
  call: () => Promise<T>,
  change: () => unknown,
): Promise<T> {
  const held = store.holdNext(procedure);
  const waiting = call();
  await held.reached;
  await change();
  held.release();
  return waiting;
}

describeOnStores("A session whose call waits (rule 225)", (server) => {
  for (const { how, change, answer } of ofDashboard) {
    for (const [name, procedure, lost] of [
      ["keys.getKey", "query", "insufficient_permissions"],
      ["keys.whoami", "query", "key_not_found"],
    ] as const) {
      it(`of the dashboard reads nothing by ${name} when ${how}`, async () => {
        const made = await make(server, "dashboard");
        const body = name === "keys.whoami" ? { key: made.key } : { keyId: made.keyId };
        const url = `/dashboard/api/v2/${name}`;
        const { problem } = await during(
          server.store,
          procedure,
          () => browse(server, "POST", url, made.token, body),
          () => change(server, made),
        );
        assert.equal(problem, answer === "insufficient_permissions" ? lost : answer);
      });
    }
  }

  for (const { how, change, answer } of ofPortal) {
    for (const [name, procedure] of [
      ["listKeys", "query"],
      ["getUsage", "query"],
      ["getUsage", "stats"],
      ["getTotalUsage", "counts"],
    ] as const) {
      it(`of the portal reads nothing by ${name} when ${how} before its ${procedure}`, async () => {
        const made = await make(server, "portal");
        const store = procedure === "query" ? server.store : server.analytics;
        const body = name === "getUsage" ? { keyId: made.keyId } : {};
        const { problem } = await during(
          store as never,
          procedure,
          () => callPortal(server, made.token, name, body),
          () => change(server, made),
        );
        assert.equal(problem, answer);
      });
    }
  }

  for (const { how, change, answer } of ofDashboard) {
    it(`of the dashboard ends no hold when ${how}`, async () => {
      const made = await make(server, "dashboard");
      const { keyId, key, token } = made;
      await server.ok("keys.updateCredits", { keyId, operation: "set", value: 10 });
      const { hold } = await server.verify(key, { credits: { cost: 4 }, hold: { ttl: 24 * HOUR } });
      const { problem } = await during(
        server.store,
        "spend",
        () => browse(server, "POST", "/dashboard/api/v2/holds.releaseHold", token, { holdId: hold.holdId }),
        () => change(server, made),
      );
      assert.equal(problem, answer);
      const { state } = await server.ok("holds.getHold", { holdId: hold.holdId });
      assert.equal(state, answer === undefined ? "released" : "open");
    });
  }

  it("is counted once", async () => {
    const { token } = await make(server, "portal");
    const calls = await Promise.all(Array.from({ length: 200 }, () => callPortal(server, token, "getSession")));
    assert.deepEqual([...new Set(calls.map(({ status }) => status))], [200]);
  });

  it("is answered by what it may do then", async () => {
    const made = await make(server, "portal");
    const { problem, body } = await during(
      server.store,
      "query",
      () => callPortal(server, made.token, "getSession"),
      () =>
        server.ok("rootKeys.updateRootKey", {
          rootKeyId: made.rootKeyId,
          permissions: [`apis.${made.apiId}.read_key`],
        }),
    );
    assert.equal(problem, undefined);
    assert.deepEqual(body.data.actions, ["list"]);
  });
});
