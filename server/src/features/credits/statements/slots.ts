import { sql as raw } from "kysely";
import { type ConcurrencyLimit, concurrencyOf, SLOTS, slotsId } from "../../../../../engine/src/rules/slots.ts";
import { insertRows } from "../../../platform/store/insert-rows.ts";
import type { StoreRules } from "../../../platform/store/inspection.ts";
import { demandStep } from "../../../platform/store/migrate.ts";
import type { LateIndex } from "../../../platform/store/retention.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";

/** An owner of slots, a pool of keys or an identity, and the limits that it is to have slots for. */
export interface SlotOwner {
  readonly id: string;
  readonly limits: readonly Pick<ConcurrencyLimit, "name">[];
}

const insertedTypes = {
  pool_id: "text",
  remaining: "bigint",
  slots_of: "text",
  slots_name: "text",
} as const;

/** How many slots are in use, by their id. */
export type SlotsInUse = ReadonlyMap<string, number>;

const NO_SLOTS: SlotsInUse = new Map();

/** Reads how many slots are in use. */
export class SlotReader extends WorkspaceRows {
  /** Those of the limits of a key, by its pool, or of an identity. */
  async inUse(owners: readonly SlotOwner[]): Promise<SlotsInUse> {
    const ids = owners.flatMap(({ id, limits }) => limits.map(({ name }) => slotsId(id, name)));
    if (ids.length === 0) return NO_SLOTS;
    const found = await this.sql.db
      .selectFrom("balances")
      .select(["pool_id", "held"])
      .where(this.sql.dialect.values.isOneOf("pool_id", ids))
      .where("workspace_id", "=", this.workspaceId)
      .execute();
    return new Map(found.map(({ pool_id, held }) => [pool_id, held ?? 0]));
  }
}

/** The slots of one workspace's limits of concurrency. They are balances, with all slots that no open hold has. */
export class SlotWriter extends WorkspaceRows {
  static readonly writes = true;

  /** Whether these limits of concurrency can be stored: programs of earlier releases know none. */
  async accepts(limits: readonly unknown[] | null | undefined): Promise<boolean> {
    return !limits || limits.length === 0 || demandStep(this.sql, "039-slots");
  }

  /** Makes slots for limits of new keys and identities in one statement. Existing ones stay as they are. */
  async insertAll(owners: readonly SlotOwner[]): Promise<void> {
    const rows = owners.flatMap(({ id, limits }) =>
      limits.map(({ name }) => ({ pool_id: slotsId(id, name), remaining: SLOTS, slots_of: id, slots_name: name })),
    );
    if (rows.length === 0) return;
    // In the order of ids, so that two transactions cannot deadlock.
    rows.sort((a, b) => (a.pool_id < b.pool_id ? -1 : 1));
    await insertRows(this.sql, "balances", insertedTypes, rows, { workspace_id: this.workspaceId })
      .onConflict((conflict) => conflict.column("pool_id").doNothing())
      .execute();
  }

  /** Makes the slots of the limits that the keys of a pool have now. Of others, those stay that open holds have. */
  replaceOfPool(poolId: string): Promise<void> {
    return this.#replace(poolId, async () => {
      const keys = await this.sql.db
        .selectFrom("keys")
        .select("concurrency")
        .where("pool_id", "=", poolId)
        .where("workspace_id", "=", this.workspaceId)
        .where("concurrency", "is not", null)
        .execute();
      return keys.flatMap(({ concurrency }) => concurrencyOf(concurrency));
    });
  }

  /** Makes the slots of the limits that an identity has now. Of others, those stay that open holds have. */
  replaceOfIdentity(identityId: string, limits: SlotOwner["limits"]): Promise<void> {
    return this.#replace(identityId, async () => limits);
  }

  async #replace(ownerId: string, readLimits: () => Promise<SlotOwner["limits"]>): Promise<void> {
    const { db, dialect } = this.sql;
    // Locked before the limits are read: keys of one pool can change at the same time. In the order of ids, so that two
    // transactions cannot deadlock.
    const query = db
      .selectFrom("balances")
      .select(["pool_id", "held", "slots_name"])
      .where("slots_of", "=", ownerId)
      .where("workspace_id", "=", this.workspaceId)
      .orderBy("pool_id");
    const found = await dialect.locks.locking(query, "update").execute();
    const names = new Set((await readLimits()).map(({ name }) => name));
    const unused = found.filter(({ held, slots_name }) => !held && !names.has(slots_name ?? ""));
    if (unused.length > 0) {
      const ids = unused.map(({ pool_id }) => pool_id);
      await db.deleteFrom("balances").where(dialect.values.isOneOf("pool_id", ids)).execute();
    }
    await this.insertAll([{ id: ownerId, limits: [...names].map((name) => ({ name })) }]);
  }
}

/** Deletes the slots of identities that are about to be deleted for good. */
export async function deleteSlotsOf({ db, dialect }: Sql, ownerIds: readonly string[]): Promise<void> {
  await db.deleteFrom("balances").where(dialect.values.isOneOf("slots_of", ownerIds)).execute();
}

/** By it the slots of an owner are found. */
export const slotsIndex: LateIndex = {
  name: "balances_slots",
  on: "balances (slots_of) where slots_of is not null",
};

/** What holds for all slots. */
export const slotRules: StoreRules = {
  "slots that no open hold has are left": `select count(*) as count from balances
    where slots_of is not null and remaining + coalesce(held, 0) <> ${SLOTS}`,
  "every limit of concurrency has its slots": ({ dialect: { json } }) => raw`
    select count(*) as count from (
      select keys.workspace_id, keys.pool_id as owner_id, ${json.member(raw.ref("entry.value"), "name")} as name
      from keys, ${json.elements(raw.ref("keys.concurrency"), "entry")} where keys.concurrency is not null
      union all
      select identities.workspace_id, identities.id, ${json.member(raw.ref("entry.value"), "name")}
      from identities, ${json.elements(raw.ref("identities.concurrency"), "entry")}
      where identities.concurrency is not null
    ) as limits where not exists (
      select 1 from balances where balances.slots_of = limits.owner_id and balances.slots_name = limits.name
      and balances.workspace_id = limits.workspace_id)`,
};
