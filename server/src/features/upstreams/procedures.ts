import type { Random } from "../../../../engine/src/random/random.ts";
import type { QuotaLimits } from "../../platform/store/quotas/workspace-usage.ts";
import type { PoolsOf, Sql } from "../../platform/store/store.ts";
import type { Vault } from "../../platform/vault/vault.ts";
import { createUpstreamKey, type UpstreamKey } from "./key.ts";
import { findUpstream } from "./record.ts";

/** The procedures of upstream verifiers. */
export function upstreamProcedures({ random, vault, limits }: { random: Random; vault: Vault; limits: QuotaLimits }) {
  const procedures = {
    reading: {
      upstreamVerifier: (sql: Sql, api: { apiId: string; workspaceId: string }) => findUpstream(sql, api, vault),
    },
    writing: {
      createUpstreamKey: (sql: Sql, key: UpstreamKey) => createUpstreamKey(sql, key, random, limits),
    },
  };
  const pools: PoolsOf<typeof procedures> = { upstreamVerifier: "metered", createUpstreamKey: "metered" };
  return { ...procedures, pools };
}
