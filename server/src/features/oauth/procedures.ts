import type { Random } from "../../../../engine/src/random/random.ts";
import type { PoolsOf, Sql } from "../../platform/store/store.ts";
import type { Vault } from "../../platform/vault/vault.ts";
import { addSigningKey, findKeyCreation, findKeyPlace, findResources, findSigningKeys } from "./statements.ts";

/** The procedures of introspection and access tokens. */
export function oauthProcedures({ random, vault }: { random: Random; vault: Vault }) {
  const procedures = {
    reading: {
      signingKeys: (sql: Sql, workspaceId: string) => findSigningKeys(sql, workspaceId, vault),
      keyPlace: (sql: Sql, key: Parameters<typeof findKeyPlace>[1]) => findKeyPlace(sql, key),
      keyCreation: (sql: Sql, key: Parameters<typeof findKeyCreation>[1]) => findKeyCreation(sql, key),
      tokenResources: (sql: Sql, api: Parameters<typeof findResources>[1]) => findResources(sql, api),
    },
    writing: {
      addSigningKey: (sql: Sql, key: Parameters<typeof addSigningKey>[1]) => addSigningKey(sql, key, { random, vault }),
    },
  };
  const pools: PoolsOf<typeof procedures> = {
    keyPlace: "metered",
    keyCreation: "metered",
    tokenResources: "metered",
  };
  return { ...procedures, pools };
}
