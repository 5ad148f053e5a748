/** Pairs of a hold and its settlement over HTTP, compared with paying verifications of the same keys. */
import { systemClock } from "../../engine/src/clock/system.ts";
import { openBenchStore } from "./bench-store.ts";
import { JSON_TYPE, ROOT_KEY, VERIFY_PATH, verifyEach } from "./keys.ts";
import { type ProcessUnderTest, startLatchkey } from "./server-under-test.ts";
import { spread, writeSpread } from "./statistics.ts";
import { childrenCpu } from "./thread-cpu.ts";
import { Wrk } from "./wrk.ts";

const KEYS = 10_000;
const CONNECTIONS = 255;
const CREDITS = 1e12;
const COST = 10;
const SETTLED = 7;
const WARM_UP_SECONDS = 2;

export interface HoldPairs {
  /** The data folder of the service. */
  folder: string;
  /** The database; undefined: the embedded one. */
  url: string | undefined;
  /** How many budgets the keys share. */
  budgets: number;
  rounds: number;
  seconds: number;
}

/** What one window did, per second and in microseconds of CPU for each verification or pair. */
interface Window {
  rate: number;
  node: number;
  database: number;
}

/** Prints pairs and paying verifications, measured in turn; returns the rate of pairs ÷ that of verifications. */
export async function compareHoldPairs({ folder, url, budgets, rounds, seconds }: HoldPairs): Promise<number> {
  const store = await openBenchStore(folder, url);
  const now = systemClock.now();
  const { workspaceId } = await store.transact("prepare", { now, rootKey: ROOT_KEY });
  const budgetIds = await store.transact("createBudgets", { workspaceId, count: budgets, remaining: CREDITS, now });
  const keys = await store.transact("createKeys", { workspaceId, count: KEYS, remaining: null, budgetIds, now });
  await store.close();
  const server = await startLatchkey({
    folder,
    settings: url === undefined ? {} : { DATABASE_URL: url },
  });
  const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
  const bodies = (more: object) => keys.map(({ key }) => JSON.stringify({ key, credits: { cost: COST }, ...more }));
  const verifications = new Wrk({ path: VERIFY_PATH, headers, bodies: bodies({}) }, CONNECTIONS);
  const settlements = { path: "/v2/holds.settleHold", credits: SETTLED };
  const pairs = new Wrk(
    { path: VERIFY_PATH, headers, bodies: bodies({ hold: { ttl: 60_000 } }), settlements },
    CONNECTIONS,
  );
  try {
    await verifyEach(server.url, keys);
    for (const load of [verifications, pairs]) await load.measure(server.url, WARM_UP_SECONDS);
    const measured: Record<"verification" | "pair", Window[]> = { verification: [], pair: [] };
    for (let i = 0; i < rounds; i++) {
      measured.verification.push(await measure(server, verifications, seconds, 1));
      measured.pair.push(await measure(server, pairs, seconds, 2));
    }
    const label = `${url === undefined ? "SQLite" : "PostgreSQL"}, ${budgets.toLocaleString("en")} budget(s)`;
    for (const [kind, windows] of Object.entries(measured)) {
      const of = (figure: keyof Window) => writeSpread(spread(windows.map((window) => window[figure])));
      console.log(
        `${`${label}, ${kind}s`.padEnd(42)}${of("rate")} per second, µs of CPU each: node ${of("node")}` +
          (url === undefined ? "" : `, PostgreSQL ${of("database")}`),
      );
    }
    const ratio = (figure: keyof Window, invert: boolean) =>
      spread(
        measured.pair.map((pair, i) => {
          const quotient = pair[figure] / measured.verification[i]![figure];
          return invert ? 1 / quotient : quotient;
        }),
      );
    console.log(
      `${"".padEnd(4)}pairs ÷ verifications: ${writeSpread(ratio("rate", false), 2)}; by CPU of the node ` +
        writeSpread(ratio("node", true), 2),
    );
    return ratio("rate", false).median;
  } finally {
    for (const load of [verifications, pairs]) load.close();
    await server.stop();
  }
}

async function measure(server: ProcessUnderTest, load: Wrk, seconds: number, calls: number): Promise<Window> {
  const [node, database] = [await server.cpuMs(), childrenCpu(["postgres"])];
  const { requests, seconds: took } = await load.run(server.url, seconds);
  const done = requests / calls;
  const used = (from: number, to: number) => ((to - from) * 1_000) / done;
  return {
    rate: done / took,
    node: used(node, await server.cpuMs()),
    database: used(database, childrenCpu(["postgres"])),
  };
}
