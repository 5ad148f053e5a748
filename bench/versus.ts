/**
 * This clone beside another one: `node server/bin/node.js bench/versus.ts <folder> [--pairs 9] [--seconds 1]
 * [--only verify|limit|limited] [--keys 1000] [--bare]`.
 *
 * Both services run at the same time and get the same load from wrk in turn, so the ratio tells what a change gains on a
 * machine that others use too. `limited`: verifications of keys with a limit. `--bare`: bare `node:http` as well.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compare } from "./lib/compare.ts";
import { createKeys, JSON_TYPE, LIMIT_PATH, limitBodies, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { startLatchkey, startServerUnderTest, stopServers } from "./lib/server-under-test.ts";
import { Wrk } from "./lib/wrk.ts";

const HEADERS = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
const { values, positionals } = parseArgs({
  options: {
    pairs: { type: "string", default: "9" },
    seconds: { type: "string", default: "1" },
    only: { type: "string" },
    keys: { type: "string", default: "1000" },
    bare: { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const keyCount = wholeNumber(values, "keys", 1, 100_000);
const rounds = wholeNumber(values, "pairs", 1, 100);
const seconds = wholeNumber(values, "seconds", 1, 60);
console.log(describeMachine());
const folder = mkdtempSync(join(tmpdir(), "latchkey-versus-"));
try {
  const other = await startLatchkey({ folder: join(folder, "other"), clone: positionals[0] });
  const own = await startLatchkey({ folder: join(folder, "own") });
  const servers = { other, own };
  const run = async (title: string, path: string, bodiesOf: Record<string, readonly string[]>) => {
    const wrks = new Map(
      Object.entries(servers).map(([name, { url }]) => [
        url,
        new Wrk({ path, headers: HEADERS, bodies: bodiesOf[name]! }),
      ]),
    );
    let length = 0;
    for (const [name, { url }] of Object.entries(servers)) {
      for (const body of bodiesOf[name]!) length = Buffer.byteLength(await post(url + path, HEADERS, body));
    }
    const bare = values.bare ? await startServerUnderTest("lib/bare-server.ts", [String(length)]) : undefined;
    if (bare) wrks.set(bare.url, new Wrk({ path, headers: HEADERS, bodies: bodiesOf.own! }));
    const all = bare ? { bare, ...servers } : servers;
    await compare({
      title,
      servers: all,
      wrk: { run: (url, length) => wrks.get(url)!.run(url, length) },
      rounds,
      seconds,
    });
    for (const wrk of wrks.values()) wrk.close();
  };
  for (const [kind, options] of [
    ["verify", {}],
    ["limited", { ratelimits: [{ name: "calls", limit: 1e9, duration: 3_600_000, autoApply: true }] }],
  ] as const) {
    if (values.only !== undefined && values.only !== kind) continue;
    if (values.only === undefined && kind === "limited") continue;
    const bodies: Record<string, string[]> = {};
    for (const [name, { url }] of Object.entries(servers)) {
      bodies[name] = (await createKeys(url, keyCount, options)).map((key) => JSON.stringify({ key }));
    }
    await run(kind, VERIFY_PATH, bodies);
  }
  if (values.only === undefined || values.only === "limit") {
    const bodies = limitBodies(keyCount);
    await run("limit", LIMIT_PATH, { other: bodies, own: bodies });
  }
} finally {
  await stopServers();
  rmSync(folder, { recursive: true, force: true });
}
