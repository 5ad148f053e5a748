/** The contract of all stores of rollups, on ClickHouse. Run by `npm run test:clickhouse`. */
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ClickHouseClient, createClient } from "@clickhouse/client";
import { openClickHouseRollups } from "../../src/features/analytics/clickhouse/rollups.ts";
import { describeRollups, LOG, RETENTION } from "../../src/features/analytics/rollups-contract.ts";

// It is not in the node_modules of this repository.
const { createChdbConnection } = createRequire(join(process.env.LATCHKEY_TEST_CHDB!, "package.json"))(
  "chdb/connection",
);

describeRollups("ClickHouse", async () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-clickhouse-"));
  const client: ClickHouseClient = createClient({ connection: createChdbConnection({ path: folder }) });
  const rollups = await openClickHouseRollups(client, RETENTION, LOG);
  return {
    ...rollups,
    async close() {
      await rollups.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
});
