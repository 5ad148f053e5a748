import type { PoolsOf, Sql } from "../store/store.ts";
import type { RotationStep, Vault } from "./vault.ts";

/** The procedures of the vault. */
export function vaultProcedures(vault: Vault) {
  const procedures = {
    reading: {
      revealSample: (sql: Sql, _: null) => vault.revealSample(sql),
      isVaultLocked: (sql: Sql, _: null) => vault.isLocked(sql),
    },
    writing: {
      /** One step of a rotation of the vault's master key. */
      rotateVault: (sql: Sql, step: RotationStep) => vault.rotateStep(sql, step),
      vaultRotation: (sql: Sql, _: null) => vault.rotation(sql),
      checkVault: (sql: Sql, _: null) => vault.check(sql),
    },
  };
  const pools: PoolsOf<typeof procedures> = { rotateVault: "maintenance" };
  return { ...procedures, pools };
}
