import { sha256 } from "../../../engine/src/crypto/digest.ts";
import type { Rewriting } from "../platform/store/move/copy.ts";
import type { CopiedTable, Row } from "../platform/store/move/database.ts";
import type { KeyRing } from "../platform/vault/key-ring.ts";
import { openDataKey, resealDataKey, type SealedDataKey } from "../platform/vault/reseal.ts";

/** Rows are copied as they are. */
export const unchanged: Rewriting = { copy: (_, row) => row, comparable: (_, row) => row };

/** Data keys are sealed under the first master key of `to`, and the vault gets its fingerprint. */
export function resealing(from: KeyRing, to: KeyRing): Rewriting {
  const fingerprint = to.first()!;
  return {
    copy(table, row) {
      if (table.name === "vault") return changed(table, row, { fingerprint });
      if (table.name !== "vault_data_keys") return row;
      const { sealed } = resealDataKey(from, to, dataKeyOf(table, row));
      return changed(table, row, { fingerprint, sealed });
    },
    comparable(table, row, side) {
      if (table.name === "vault") return side === "source" ? changed(table, row, { fingerprint }) : row;
      if (table.name !== "vault_data_keys") return row;
      // Each seal has a nonce of its own, so the keys themselves are compared.
      const dataKey = openDataKey(side === "source" ? from : to, dataKeyOf(table, row));
      return changed(table, row, { fingerprint, sealed: sha256(dataKey.toString("hex")).toString("hex") });
    },
  };
}

function dataKeyOf(table: CopiedTable, row: Row): SealedDataKey {
  const value = (name: string) => row[table.columns.findIndex((column) => column.name === name)]!;
  return { workspaceId: value("workspace_id"), fingerprint: value("fingerprint"), sealed: value("sealed") };
}

function changed(table: CopiedTable, row: Row, values: Readonly<Record<string, string>>): Row {
  return table.columns.map(({ name }, at) => values[name] ?? row[at]!);
}
