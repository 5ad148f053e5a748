import { CommandError, print, UsageError } from "../../../../cli/src/output.ts";
import { ProgressLine } from "../../../../cli/src/progress.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { seededRandom } from "../../../../engine/src/random/seeded.ts";
import { systemRandom } from "../../../../engine/src/random/system.ts";
import type { DemoRows } from "../../platform/store/demo.ts";
import { openAnalyticsStore } from "../../service/analytics.ts";
import { claimFolder } from "../../service/claim.ts";
import { writeContent, writeLastUsed } from "./demo-content.ts";
import { writeTraffic } from "./demo-traffic.ts";
import type { CommandHandler, Invocation } from "./invocation.ts";
import { withStore } from "./store.ts";

const NAME = "Demo";
const KEYS = { min: 100, max: 1_000_000 };

/** Fills a workspace of its own with 30 days of traffic, to look at. */
export const demo: CommandHandler = async (invocation, options) => {
  const keys = wholeNumber("--keys", options.keys!, KEYS.min, KEYS.max);
  const seed = wholeNumber("--seed", options.seed!, 0, 2 ** 32 - 1);
  if (invocation.secrets.clickhouseUrl !== undefined) {
    throw new CommandError("LATCHKEY_CLICKHOUSE_URL: the demo writes analytics to the database only. Leave it out.");
  }
  // A service that runs on an embedded database would not notice new keys of another process.
  const folder = claimFolder(invocation.config, systemRandom);
  try {
    await fill(invocation, keys, seed);
  } finally {
    folder.release();
  }
};

function wholeNumber(option: string, given: string, min: number, max: number): number {
  const value = /^\d+$/.test(given) ? Number(given) : Number.NaN;
  if (!(value >= min && value <= max))
    throw new UsageError(`${option} ${given}: give a whole number from ${min} to ${max}`);
  return value;
}

async function fill(invocation: Invocation, keys: number, seed: number): Promise<void> {
  const { config, secrets, json } = invocation;
  const startedAt = systemClock.monotonic();
  const progress = new ProgressLine();
  await withStore(
    invocation,
    async (store) => {
      const now = systemClock.now();
      const prepared = await store.transact("prepare", { now, rootKey: secrets.rootKey });
      const workspaces = await store.read("listWorkspaces", null);
      const existing = workspaces.find(({ name }) => name === NAME);
      if (existing) {
        throw new CommandError(
          `The workspace ${existing.id} has the name "${NAME}": the demo runs once per database. Use another one, such as ` +
            "with --data-dir ./demo-data.",
        );
      }
      const { workspaceId, rootKeyId, key } = await store.transact("createWorkspace", {
        now,
        actor: "cli",
        name: NAME,
      });
      const random = seededRandom(seed);
      const workspace = { workspaceId, administratorId: rootKeyId, now, random, keys };
      let verifications: number;
      try {
        const insert = (rows: DemoRows) => store.transact("insertDemoRows", rows);
        const content = await writeContent(workspace, insert, (written) =>
          progress.show(`${written.toLocaleString("en")} of ${keys.toLocaleString("en")} keys`),
        );
        const analytics = await openAnalyticsStore(config, secrets, systemClock);
        try {
          await analytics.transact("migrate", null);
          const traffic = await writeTraffic(
            workspace,
            content,
            {
              rollups: (level, rows) => analytics.transact("addRollups", { level, rows }),
              usage: (level, rows) => analytics.transact("addUsage", { level, rows }),
            },
            (day, days) => progress.show(`traffic of ${day} of ${days} days`),
          );
          verifications = traffic.verifications;
          await writeLastUsed(workspace, traffic.lastUsed, insert);
        } finally {
          await analytics.close();
        }
      } finally {
        progress.clear();
      }
      const seconds = Math.round((systemClock.monotonic() - startedAt) / 1_000);
      const administrator = prepared.issued?.key;
      const result = {
        workspaceId,
        rootKey: key,
        keys,
        verifications,
        seconds,
        ...(administrator && { administrator }),
      };
      print(json, result, () => [
        `Workspace ${workspaceId} "${NAME}" has ${keys.toLocaleString("en")} keys and ` +
          `${verifications.toLocaleString("en")} verifications of 30 days, made in ${seconds} s.`,
        `Its administrator's root key: ${key}`,
        ...(administrator ? [`The root key of the service's administrator: ${administrator}`] : []),
        "They are shown only once, and the database has only their hashes.",
        "Start the service with the same settings, open its address in a browser, and sign in with the first root key.",
      ]);
    },
    { creates: true },
  );
}
