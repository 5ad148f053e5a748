import { existsSync } from "node:fs";
import { CommandError, print, table } from "../../../../cli/src/output.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import type { TableCursor } from "../../platform/store/inspection.ts";
import { pendingSteps, requireSupported } from "../../platform/store/migrate.ts";
import type { Store } from "../../platform/store/store.ts";
import type { AppProcedures } from "../../service/procedures.ts";
import type { CommandHandler, Invocation } from "./invocation.ts";
import { withStore } from "./store.ts";

/** What one check found. */
interface Check {
  name: string;
  /** `ok`, `wrong`, or `skipped` with the reason in `text`. */
  outcome: "ok" | "wrong" | "skipped";
  text: string;
}

interface CheckedTable {
  rows: number;
  digest: string;
}

/** Time between two lines of progress. */
const PROGRESS_INTERVAL = 10_000;

/**
 * Checks the configured database after a restore or a failover, and changes nothing. Exits with 1 if anything is wrong. On
 * a database that nodes write to, counts and digests are those of different moments.
 */
export const verifyStore: CommandHandler = (invocation) =>
  withStore(invocation, async (store) => {
    const checks: Check[] = [];
    const check = (name: string, isRight: boolean, text: string) =>
      void checks.push({ name, outcome: isRight ? "ok" : "wrong", text });

    const state = await store.read("schemaState", null);
    requireSupported(state);
    const waiting = pendingSteps(state);
    if (state.database === 0) throw new CommandError("This database is empty: no migration has run.");
    if (waiting.length > 0) {
      const text = `${waiting.length} migrations have not run (${waiting[0]} …): start the service, or run \`latchkey migrate up\`, and verify again`;
      checks.push({ name: "schema", outcome: "skipped", text });
    } else {
      const missing = await store.read("missingParts", null);
      check(
        "schema",
        missing.length === 0,
        missing.length === 0 ? `version ${state.database}` : `missing: ${some(missing)}`,
      );
    }
    await checkIntegrity(invocation, checks);
    if (waiting.length === 0) await checkContents(store, check);
    await checkVault(store, checks);
    const tables = waiting.length === 0 ? await digestTables(store) : {};

    const wrong = checks.filter(({ outcome }) => outcome === "wrong");
    print(invocation.json, { ok: wrong.length === 0, checks, tables }, () => [
      ...table(
        ["check", "outcome", ""],
        checks.map(({ name, outcome, text }) => [name, outcome, text]),
      ),
      "",
      ...table(
        ["table", "rows", "digest"],
        Object.entries(tables).map(([name, { rows, digest }]) => [name, String(rows), digest]),
      ),
    ]);
    if (wrong.length > 0) {
      throw new CommandError(
        `${wrong.length} of ${checks.length} checks failed: ${wrong.map(({ name }) => name).join(", ")}. Do not serve from ` +
          "this database; restore another copy.",
      );
    }
  });

/** PostgreSQL checks its pages itself when they are read, if the cluster has checksums. */
async function checkIntegrity({ config }: Invocation, checks: Check[]): Promise<void> {
  const { database } = config;
  if (database.kind !== "sqlite" || !existsSync(database.file)) return;
  const { findFault } = await import("../../platform/store/sqlite/integrity.ts");
  const fault = findFault(database.file, "full");
  checks.push({
    name: "integrity",
    outcome: fault === undefined ? "ok" : "wrong",
    text: fault ?? "every page and index",
  });
}

async function checkContents(
  store: Store<AppProcedures>,
  check: (name: string, isRight: boolean, text: string) => void,
): Promise<void> {
  const keys = await store.read("foreignKeys", null);
  const orphans: string[] = [];
  for (const key of keys) {
    const count = await store.read("orphans", key);
    if (count > 0) orphans.push(`${count} rows of ${key.table} without ${key.parent}`);
  }
  check("references", orphans.length === 0, orphans.length === 0 ? `${keys.length} foreign keys` : some(orphans));
  for (const { rule, rows } of await store.read("brokenRules", null)) {
    check(rule, rows === 0, rows === 0 ? "" : `${rows} rows break it`);
  }
  const sequences = await store.read("sequences", null);
  const behind = sequences.filter(({ last, highest }) => last < highest);
  check(
    "sequences are ahead of the data",
    behind.length === 0,
    behind.length === 0
      ? sequences.map(({ table, last }) => `${table} ${last}`).join(", ")
      : some(behind.map(({ table, last, highest }) => `${table} continues after ${last}, but has ${highest}`)),
  );
}

async function checkVault(store: Store<AppProcedures>, checks: Check[]): Promise<void> {
  const name = "recoverable keys can be decrypted";
  const sample = await store.read("revealSample", null);
  if (sample.kind === "locked") {
    const text = `set LATCHKEY_VAULT_KEY to the master key ${sample.fingerprint}: without it no node starts`;
    checks.push({ name, outcome: "skipped", text });
  } else if (sample.kind === "broken") checks.push({ name, outcome: "wrong", text: sample.keyId });
  else checks.push({ name, outcome: "ok", text: `${sample.decrypted} as a sample` });
}

async function digestTables(store: Store<AppProcedures>): Promise<Record<string, CheckedTable>> {
  const tables: Record<string, CheckedTable> = {};
  let shownAt = systemClock.monotonic();
  for (const { name, key } of await store.read("storedTables", null)) {
    const total: CheckedTable = { rows: 0, digest: "" };
    for (let cursor: TableCursor | null = { name, key, after: null, digest: "" }; cursor !== null; ) {
      const page: { rows: number; digest: string; next: TableCursor | null } = await store.read("digestRows", cursor);
      total.rows += page.rows;
      total.digest = page.digest;
      cursor = page.next;
      if (systemClock.monotonic() - shownAt < PROGRESS_INTERVAL) continue;
      shownAt = systemClock.monotonic();
      process.stderr.write(`${name}: ${total.rows} rows so far\n`);
    }
    tables[name] = total;
  }
  return tables;
}

function some(all: readonly string[]): string {
  return all.slice(0, 5).join(", ") + (all.length > 5 ? ` and ${all.length - 5} more` : "");
}
