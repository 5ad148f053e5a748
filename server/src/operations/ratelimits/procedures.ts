import type { NamespaceReference } from "../../directory/stored.ts";
import type { Random } from "../../random/random.ts";
import type { QuotaLimits } from "../../store/administration/workspace-usage.ts";
import { findNamespaces } from "../../store/ratelimits/namespaces.ts";
import type { PoolsOf, Sql } from "../../store/store.ts";
import { createNamespaces, type FirstUse } from "./namespace-creation.ts";

/** The procedures of rate limits. */
export function ratelimitProcedures(dependencies: { random: Random; limits: QuotaLimits }) {
  const procedures = {
    reading: {
      namespacesByReferences: (sql: Sql, references: readonly NamespaceReference[]) => findNamespaces(sql, references),
    },
    writing: {
      createNamespaces: (sql: Sql, use: FirstUse) => createNamespaces(sql, use, dependencies),
    },
  };
  const pools: PoolsOf<typeof procedures> = { namespacesByReferences: "lookup", createNamespaces: "metered" };
  return { ...procedures, pools };
}
