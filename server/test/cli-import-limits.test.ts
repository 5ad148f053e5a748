/** `latchkey import --from envoy-ratelimit`: configurations of envoyproxy/ratelimit become trees of namespaces. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { CommandLine } from "./command-line.ts";
import { makeFolder, ROOT_KEY, type Server, start } from "./process.ts";

const edge = `domain: edge
descriptors:
  # A comment, and a limit of each address.
  - key: remote_address
    rate_limit: { unit: MINUTE, requests_per_unit: 100, name: address }
    detailed_metric: true
    descriptors:
      - key: path
        value: /login*
        share_threshold: true
        rate_limit:
          unit: hour
          requests_per_unit: 5
          replaces: [{ name: address }]
  - { key: status, value: 404, shadow_mode: true, rate_limit: { unit: day } }
  - &internal { key: plan, value: internal, rate_limit: { unlimited: true } }
  - key: nested
    descriptors: [*internal]
    value_to_metric: true
    quota_mode: false
`;

const tree = [
  {
    key: "remote_address",
    rate_limit: { requests_per_unit: 100, unit: "minute", name: "address" },
    detailed_metric: true,
    descriptors: [
      {
        key: "path",
        value: "/login*",
        rate_limit: { requests_per_unit: 5, unit: "hour", replaces: [{ name: "address" }] },
        share_threshold: true,
      },
    ],
  },
  { key: "status", value: "404", rate_limit: { requests_per_unit: 0, unit: "day" }, shadow_mode: true },
  { key: "plan", value: "internal", rate_limit: { unlimited: true } },
  {
    key: "nested",
    value_to_metric: true,
    descriptors: [{ key: "plan", value: "internal", rate_limit: { unlimited: true } }],
  },
];

describe("limits of envoyproxy/ratelimit", () => {
  const directory = makeFolder({ after });
  let server: Server;
  let commandLine: CommandLine;
  before(async () => {
    commandLine = new CommandLine();
    server = await start({ directory });
  });
  after(() => commandLine.close());

  /** An empty workspace, and imports of files into it. */
  async function workspace(t: TestContext) {
    const { key } = await server.ok("workspaces.createWorkspace", { name: "limits" }, ROOT_KEY);
    const directory = makeFolder(t);
    const environment = { HOME: directory, LATCHKEY_URL: server.address, LATCHKEY_ROOT_KEY: key as string };
    const run = (...args: string[]) => commandLine.run({ args: ["import", ...args], environment, directory });
    return {
      ok: (operation: string, body: object) => server.ok(operation, body, key as string),
      run,
      write: (name: string, text: string) => writeFileSync(join(directory, name), text),
      take: (...args: string[]) => run(...args, "--from", "envoy-ratelimit"),
    };
  }

  it("become the trees of namespaces, and a second time change nothing (rule 147)", async (t) => {
    const { ok, take, write } = await workspace(t);
    write("edge.yaml", edge);
    write("other.yaml", "domain: other\ndescriptors: [{ key: a, rate_limit: { unit: Week, requests_per_unit: 1 } }]\n");
    const planned = await take("edge.yaml", "other.yaml", "--dry-run");
    assert.deepEqual([planned.code, planned.stderr], [0, ""]);
    assert.equal(
      planned.stdout,
      "edge (edge.yaml): 6 descriptors with 5 limits, new.\nother (other.yaml): 1 descriptors with 1 limits, new.\n" +
        "Nothing was imported. To import, run the command without --dry-run.\n",
    );
    assert.deepEqual(await ok("ratelimits.listNamespaces", {}), []);

    const first = await take("edge.yaml", "other.yaml");
    assert.deepEqual([first.code, first.stderr], [0, ""]);
    assert.deepEqual((await ok("ratelimits.getDescriptors", { namespace: "edge" })).descriptors, tree);
    const week = [{ key: "a", rate_limit: { requests_per_unit: 1, unit: "week" } }];
    assert.deepEqual((await ok("ratelimits.getDescriptors", { namespace: "other" })).descriptors, week);

    const { updatedAt } = await ok("ratelimits.getDescriptors", { namespace: "edge" });
    const second = await take("edge.yaml", "other.yaml", "--json");
    assert.deepEqual(
      JSON.parse(second.stdout).domains.map(({ domain, outcome }: Record<string, string>) => [domain, outcome]),
      [
        ["edge", "unchanged"],
        ["other", "unchanged"],
      ],
    );
    assert.equal((await ok("ratelimits.getDescriptors", { namespace: "edge" })).updatedAt, updatedAt);

    // What belongs to the namespace and not to the file stays.
    await ok("ratelimits.setDescriptors", { namespace: "other", descriptors: week, atomic: true });
    write("other.yaml", "domain: other\ndescriptors: []\n");
    assert.match((await take("other.yaml")).stdout, /^other .* 0 descriptors with 0 limits, changed\.\n$/);
    write("other.yaml", "domain: other\ndescriptors: [{ key: b }]\n");
    assert.match((await take("other.yaml", "--dry-run", "--offline")).stdout, /^other .* valid\.\n/);
  });

  it("that cannot be kept are refused with their lines, and nothing is changed (rule 147)", async (t) => {
    const { ok, take, write } = await workspace(t);
    write("good.yaml", "domain: good\ndescriptors: [{ key: a }]\n");
    const limit = (text: string) => `domain: bad\ndescriptors:\n  - key: a\n    rate_limit:\n${text}`;
    const refused: [text: string, line: number, message: RegExp][] = [
      ["descriptors: []\n", 1, /no domain/],
      ["domain: bad\n\nlimits: []\n", 3, /'limits' is not known in the configuration/],
      ["domain: bad\ndescriptors: {}\n", 2, /descriptors must be a list/],
      ["domain: bad\ndescriptors:\n  - value: x\n", 3, /no key/],
      ["domain: bad\ndescriptors:\n  - key: a\n    ratelimit: {}\n", 4, /'ratelimit' is not known in a descriptor/],
      [
        "domain: bad\ndescriptors:\n  - key: a\n  - key: b\n    descriptors:\n      - c\n",
        6,
        /a descriptor must be a map/,
      ],
      ["domain: bad\ndescriptors:\n  - key: a\n  - key: b\n  - key: a\n    value: ''\n", 5, /of an earlier one/],
      ["domain: bad\ndescriptors:\n  - key: a*\n", 3, /a key that ends with '\*'/],
      ["domain: bad\ndescriptors:\n  - key: a\n    value: b\n    share_threshold: true\n", 5, /share_threshold needs/],
      ["domain: bad\ndescriptors:\n  - key: a\n    shadow_mode: sometimes\n", 4, /shadow_mode must be true or false/],
      [limit("      unit: fortnight\n      requests_per_unit: 1\n"), 5, /the unit is 'fortnight'/],
      [limit("      requests_per_unit: 1\n"), 5, /the unit is ''/],
      [limit("      unit: day\n      requests_per_unit: 1.5\n"), 6, /not an integer/],
      [limit("      unit: day\n      requests_per_unit: 4294967296\n"), 6, /not an integer/],
      [limit("      unlimited: true\n      unit: day\n"), 6, /no unit beside unlimited/],
      [limit("      unlimited: true\n      name: a\n      replaces:\n        - name: a\n"), 8, /cannot replace itself/],
      [limit("      unlimited: true\n      replaces:\n        - name: ''\n"), 7, /has no name/],
      [limit('      unlimited: true\n      name: "a\\r\\nx-admin: 1"\n'), 6, /printable ASCII/],
      [`domain: bad\ndescriptors:\n${"  - key: b\n".repeat(2)}`, 4, /of an earlier one/],
      ["domain: good\ndescriptors: []\n", 1, /also that of good\.yaml/],
    ];
    for (const [text, line, message] of refused) {
      write("bad.yaml", text);
      const { code, stderr } = await take("good.yaml", "bad.yaml");
      assert.equal(code, 1, text);
      assert.match(stderr, /Nothing was changed/);
      assert.match(stderr, new RegExp(`bad\\.yaml:${line}: .*${message.source}`), text);
    }
    const deep = Array.from(
      { length: 17 },
      (_, level) => `${" ".repeat(4 * level)}- key: a\n${" ".repeat(4 * level)}  descriptors:`,
    );
    write("bad.yaml", `domain: bad\ndescriptors:\n${deep.join("\n")}\n`);
    assert.match((await take("bad.yaml")).stderr, /bad\.yaml:35: descriptors are nested deeper than 16 levels/);
    // A short text that stands for a million descriptors.
    const doubled = Array.from(
      { length: 7 },
      (_, i) =>
        `  - &n${i} { key: k${i}, descriptors: [${Array.from({ length: 8 }, (_, j) => (i === 0 ? `{ key: l${j} }` : `{ key: l${j}, descriptors: [*n${i - 1}] }`)).join(", ")}] }`,
    );
    write("bad.yaml", `domain: bad\ndescriptors:\n${doubled.join("\n")}\n`);
    assert.match((await take("bad.yaml")).stderr, /more than 10000 descriptors/);
    write("bad.yaml", "domain: [\n");
    assert.match((await take("bad.yaml")).stderr, /bad\.yaml is not YAML/);
    assert.deepEqual(await ok("ratelimits.listNamespaces", {}), []);
  });

  it("take no options of keys, and keys no several files", async (t) => {
    const { run, take, write } = await workspace(t);
    write("edge.yaml", edge);
    assert.match(
      (await take("edge.yaml", "--api-id", "api_1")).stderr,
      /--api-id: --from envoy-ratelimit reads limits/,
    );
    assert.match((await take("edge.yaml", "--offline")).stderr, /give --dry-run too/);
    assert.match((await take("missing.yaml")).stderr, /missing\.yaml cannot be read \(ENOENT\)/);
    assert.match((await run("a.csv", "--from", "generic")).stderr, /--api-id: name the API/);
    assert.match(
      (await run("a.csv", "b.csv", "--from", "generic", "--api-id", "api_1")).stderr,
      /b\.csv: .* in one file/,
    );
  });
});
