/**
 * The same calls to envoyproxy/ratelimit and to this service, with the same configuration, by the client that is generated from
 * the definitions of the protocol: statuses, limits, names and what remains. The original and the client come from the proxy of Go
 * modules; without Go, the proxy or Redis the test is skipped. What differs on purpose is listed, and has to differ.
 *
 * The cases of the original's integration tests are among them, as far as they say what a service answers. The others are about its
 * Redis (TLS, passwords, Sentinel, Cluster, Memcached, a local cache, prefixes, keys that stop to count) and its statistics.
 */
import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { parse } from "yaml";
import type { Descriptor } from "../grpc/rate-limit-messages.ts";
import { TestServer } from "../harness.ts";
import { eventually, makeFolder } from "../process.ts";
import {
  buildClient,
  GeneratedClient,
  type Original,
  type OriginalAnswer,
  startOriginal,
} from "./ratelimit-original.ts";

const DAY = 4;

/** The cases of the original's documentation. Days, so that no window ends meanwhile. */
const configuration = `domain: side
descriptors:
  - { key: key1, rate_limit: { unit: day, requests_per_unit: 2 } }
  - { key: key1, value: exact, rate_limit: { unit: day, requests_per_unit: 5, name: exact } }
  - { key: block, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: files, value: files/*, share_threshold: true, rate_limit: { unit: day, requests_per_unit: 3 } }
  - { key: apart, value: files/*, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: order, value: a*, rate_limit: { unit: day, requests_per_unit: 11 } }
  - { key: order, value: ab*, rate_limit: { unit: day, requests_per_unit: 12 } }
  - { key: free, rate_limit: { unlimited: true } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: quota, quota_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: general, rate_limit: { unit: day, requests_per_unit: 1, name: general } }
  - { key: special, rate_limit: { unit: day, requests_per_unit: 9, name: special, replaces: [{ name: general }] } }
  - { key: week, rate_limit: { unit: week, requests_per_unit: 4 } }
  - { key: month, rate_limit: { unit: month, requests_per_unit: 4 } }
  - { key: year, rate_limit: { unit: year, requests_per_unit: 4294967295 } }
  - key: tenant
    descriptors:
      - key: path
        value: /a
        rate_limit: { unit: day, requests_per_unit: 6 }
        descriptors: [{ key: verb, rate_limit: { unit: day, requests_per_unit: 7 } }]
      - { key: path, value: /none }
`;

/** Those of its integration tests, with units of their own. */
const integration = `domain: integration
descriptors:
  - { key: key1, rate_limit: { unit: second, requests_per_unit: 50 } }
  - { key: key2, rate_limit: { unit: minute, requests_per_unit: 20 } }
  - { key: key3, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: key4, rate_limit: { unit: day, requests_per_unit: 20 } }
  - { key: files, value: files/*, share_threshold: true, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: files_no_share, value: files_no_share/*, rate_limit: { unit: hour, requests_per_unit: 10 } }
`;

/** What the domain has before and after its configuration changes. */
const reloads = [
  "domain: reload\ndescriptors:\n  - { key: other, rate_limit: { unit: day, requests_per_unit: 1 } }\n",
  "domain: reload\ndescriptors:\n  - { key: key1, rate_limit: { unit: day, requests_per_unit: 50 } }\n",
] as const;

type Call = readonly [descriptors: readonly Descriptor[], hits?: number];
const of = (...pairs: [string, string][]): Descriptor => ({ entries: pairs });
const times = (count: number, ...call: Call): Call[] => Array.from({ length: count }, () => call);

const same: readonly Call[] = [
  ...times(4, [of(["key1", "a"])]),
  ...times(2, [of(["key1", "b"])]),
  ...times(7, [of(["key1", "exact"])]),
  ...times(2, [of(["block", "x"])]),
  ...["files/a", "files/b", "files/a", "files/c", "other"].map((value): Call => [[of(["files", value])]]),
  ...["files/a", "files/b", "files/a"].map((value): Call => [[of(["apart", value])]]),
  ...["abc", "a", "ab", "b"].map((value): Call => [[of(["order", value])]]),
  ...times(2, [of(["free", "x"])], 1_000),
  ...times(3, [of(["shadow", "x"])]),
  ...times(2, [of(["general", "x"]), of(["special", "x"])]),
  ...times(2, [of(["special", "x"]), of(["general", "x"]), of(["unknown", "x"])]),
  [[of(["general", "x"])]],
  [[of(["week", "x"]), of(["month", "x"]), of(["year", "x"])]],
  [[of(["tenant", "t"])]],
  [[of(["tenant", "t"], ["path", "/a"])]],
  [[of(["tenant", "t"], ["path", "/b"])]],
  [[of(["tenant", "t"], ["path", "/none"])]],
  [[of(["tenant", "t"], ["path", "/a"], ["verb", "GET"])]],
  [[of(["tenant", "t"], ["path", "/a"], ["verb", "GET"], ["more", "x"])]],
  [[of(["path", "/a"], ["tenant", "t"])]],
  // A limit of the call, and hits of a descriptor.
  ...times(3, [{ ...of(["key1", "own"]), limit: [2, DAY] }]),
  [[{ ...of(["tenant", "h"], ["path", "/a"]), hits: 2 }], 5],
  [[{ ...of(["tenant", "h"], ["path", "/a"]), hits: 0 }], 5],
  [[of(["tenant", "h"], ["path", "/a"])], 3],
  [[of(["tenant", "h"], ["path", "/a"])], 0],
  // All are counted, also when one is over.
  ...times(2, [of(["block", "x"]), of(["tenant", "all"], ["path", "/a"])]),
];

/** What differs, and why. Each begins with values of its own. */
const different: readonly (readonly [why: string, calls: readonly Call[]])[] = [
  ["over only when all quotas of the call are; the original's never are", times(2, [of(["quota", "x"])])],
  [
    "keys and values are compared apart; the original joins them by '_'",
    [[[of(["tenant_x", "y"], ["path", "/a"])]], [[of(["key1_exact", ""])]]],
  ],
];

/** The longest window in which all calls of a case have to be made. */
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const ATTEMPTS = 5;

/**
 * Cases of the integration tests. `value` is another one in each attempt: the original's windows begin with each unit, so a
 * case is repeated if one has begun meanwhile.
 */
const integrationCases: readonly { name: string; window: number; calls: (value: string) => Call[] }[] = [
  { name: "a limit per second", window: MINUTE_MS, calls: (value) => [[[of(["key1", value])]]] },
  { name: "more calls than a limit", window: MINUTE_MS, calls: (value) => times(25, [of(["key2", value])]) },
  {
    name: "two limits, of which one is over",
    window: MINUTE_MS,
    calls: (value) => times(15, [of(["key2", `${value} two`]), of(["key3", `${value} two`])]),
  },
  {
    name: "values that share a threshold",
    window: HOUR_MS,
    calls: () => [...times(10, [of(["files", "files/a.pdf"])], 1), [[of(["files", "files/b.csv"])], 1]],
  },
  {
    name: "values that share none",
    window: HOUR_MS,
    calls: (value) =>
      Array.from({ length: 10 }, (_, i): Call => [[of(["files_no_share", `files_no_share/${value}-${i}`])]]),
  },
  { name: "no limit at all", window: HOUR_MS, calls: (value) => [[[of(["hello", value])], 1]] },
];

describe("envoyproxy/ratelimit beside this service", () => {
  const undo: (() => Promise<void> | void)[] = [];
  after(async () => {
    for (const step of undo.reverse()) await step();
  });

  it("answers the same calls alike, and otherwise only where that is said (rule 148)", async (t) => {
    const directory = makeFolder(t);
    let original: Original;
    let program: string;
    try {
      program = buildClient(directory);
      original = await startOriginal(directory, { side: configuration, integration, reload: reloads[0] });
      undo.push(() => original.stop());
    } catch (error) {
      return t.skip(`the original does not run: ${(error as Error).message.slice(0, 300)}`);
    }
    const server = await new TestServer({ settings: { PORT: "0", GRPC_PORT: "0" } }).open();
    undo.push(() => server.close());
    await server.service.listen();
    const configure = (namespace: string, text: string) =>
      server.ok("ratelimits.setDescriptors", { namespace, descriptors: parse(text).descriptors });
    for (const text of [configuration, integration, reloads[0]]) {
      const namespace = parse(text).domain;
      await server.ok("ratelimits.limit", { namespace, identifier: "first", limit: 1, duration: 1_000, cost: 0 });
      await configure(namespace, text);
    }
    const theirs = new GeneratedClient(program, original.url);
    const address = `http://127.0.0.1:${server.service.grpcAddress!.port}`;
    const ours = new GeneratedClient(program, address, server.rootKey);
    undo.push(
      () => theirs.close(),
      () => ours.close(),
    );

    const ask = async (client: GeneratedClient, [asked, hits]: Call, domain = "side") =>
      comparable(await client.call(domain, asked, hits));
    let compared = 0;
    const compare = async (call: Call, domain?: string) => {
      assert.deepEqual(await ask(ours, call, domain), await ask(theirs, call, domain), JSON.stringify(call));
      compared++;
    };
    for (const call of same) await compare(call);
    await compare([[of(["hello", "world"])], 1], "unknown");
    for (const [domain, calls] of [
      ["", [[[of(["a", "b"])]]]],
      ["side", [[[]]]],
    ] as const) {
      for (const call of calls as readonly Call[]) {
        const [here, there] = [await ours.call(domain, call[0]), await theirs.call(domain, call[0])];
        assert("error" in here && "error" in there, "both reject a call without a domain or a descriptor");
        compared++;
      }
    }

    for (const { name, window, calls } of integrationCases) {
      let answers: [here: unknown[], there: unknown[]] = [[], []];
      for (let attempt = 0; ; attempt++) {
        const startedIn = Math.floor(Date.now() / window);
        answers = [[], []];
        for (const call of calls(`${attempt}`)) {
          answers[0].push(await ask(ours, call, "integration"));
          answers[1].push(await ask(theirs, call, "integration"));
        }
        if (Math.floor(Date.now() / window) === startedIn || attempt === ATTEMPTS) break;
      }
      assert.deepEqual(answers[0], answers[1], name);
      compared += answers[0].length;
    }

    const resetOf = async (client: GeneratedClient) => {
      const answer = await client.call("integration", [of(["key4", "reset"])]);
      return "error" in answer ? undefined : answer.statuses[0]?.reset;
    };
    const before = [await resetOf(ours), await resetOf(theirs)] as const;
    await server.advance(2_000);
    assert((await resetOf(ours))! < before[0]!, "the reset comes nearer");
    await eventually("the reset of the original to come nearer", async () => (await resetOf(theirs))! < before[1]!);
    compared++;

    const reloaded: Call = [[of(["key1", "foo"])]];
    await compare(reloaded, "reload");
    await configure("reload", reloads[1]);
    original.configure("reload", reloads[1]);
    const hasLimit = async () => {
      const answer = await theirs.call("reload", [{ ...of(["key1", "probe"]), hits: 0 }]);
      return !("error" in answer) && answer.statuses[0]?.limit !== undefined;
    };
    await eventually("the original to read its configuration again", hasLimit);
    await compare(reloaded, "reload");

    for (const [why, calls] of different) {
      const [here, there]: [unknown[], unknown[]] = [[], []];
      for (const call of calls) {
        here.push(await ask(ours, call));
        there.push(await ask(theirs, call));
      }
      assert.notDeepEqual(here, there, why);
    }
    t.diagnostic(`${compared} calls were answered alike`);
    assert(compared > 110);
  });
});

/** Windows slide here, so resets are compared only in being there. */
function comparable(answer: OriginalAnswer): unknown {
  if ("error" in answer) return answer;
  return {
    ...answer,
    statuses: answer.statuses.map(({ reset, ...rest }) => ({ ...rest, hasReset: reset !== undefined })),
  };
}
