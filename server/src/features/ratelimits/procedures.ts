import type { NamespaceReference } from "../../../../engine/src/directory/stored.ts";
import type { PoolsOf, Sql } from "../../platform/store/store.ts";
import { createNamespaces, type Dependencies, type FirstUse } from "./namespace-creation.ts";
import { findNamespaces } from "./statements/namespaces.ts";

/** The procedures of rate limits. */
export function ratelimitProcedures(dependencies: Dependencies) {
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
