import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freshDatabase } from "../../test/services/postgres.ts";
import { SimulatedClock } from "../clock/simulated.ts";
import { openPostgresStore } from "../store/postgres/store.ts";
import { openSqliteStore } from "../store/sqlite/store.ts";
import { describeRollups, NOON, RETENTION } from "./rollups-contract.ts";
import { type AnalyticsProcedures, openRollupProcedures } from "./sql/procedures.ts";
import { analyticsModule, openSqlRollups } from "./sql/store.ts";

const clock = new SimulatedClock(NOON);

describeRollups("SQLite", async () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-rollups-"));
  const store = await openSqliteStore<AnalyticsProcedures>(
    join(folder, "analytics.db"),
    { module: analyticsModule, options: null },
    { clock, durability: "normal" },
  );
  const rollups = await openSqlRollups(store, RETENTION);
  return {
    ...rollups,
    async close() {
      await rollups.close();
      rmSync(folder, { recursive: true });
    },
  };
});

describeRollups("PostgreSQL", async () => {
  const { url, drop } = await freshDatabase();
  const rollups = await openSqlRollups(await openPostgresStore({ url, clock }, openRollupProcedures()), RETENTION);
  return {
    ...rollups,
    async close() {
      await rollups.close();
      await drop();
    },
  };
});
