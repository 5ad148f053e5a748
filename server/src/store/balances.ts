import type { BalanceRow } from "./schema.ts";
import type { Sql } from "./store.ts";

/** The credits of one workspace's pools. A pool without a row is unlimited. */
export class BalanceWriter {
  readonly #sql: Sql;
  readonly #workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.#sql = sql;
    this.#workspaceId = workspaceId;
  }

  /** Makes this the pool's balance, whatever it was. */
  async put(balance: Omit<BalanceRow, "workspace_id">): Promise<void> {
    const { pool_id, ...values } = balance;
    await this.#sql.db
      .insertInto("balances")
      .values({ pool_id, workspace_id: this.#workspaceId, ...values })
      .onConflict((conflict) => conflict.column("pool_id").doUpdateSet(values))
      .execute();
  }

  /** Makes the pool unlimited. */
  async remove(poolId: string): Promise<void> {
    await this.#sql.db
      .deleteFrom("balances")
      .where("pool_id", "=", poolId)
      .where("workspace_id", "=", this.#workspaceId)
      .execute();
  }
}
