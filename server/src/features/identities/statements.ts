import { sql, type Updateable } from "kysely";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { DirectoryPlanUse } from "../../../../engine/src/directory/stored.ts";
import { newId, type Random } from "../../../../engine/src/random/random.ts";
import { deletedRows } from "../../platform/store/deleted-rows.ts";
import { insertRows } from "../../platform/store/insert-rows.ts";
import { parsed } from "../../platform/store/json.ts";
import { type PageOptions, searched } from "../../platform/store/page.ts";
import type { RetentionTask } from "../../platform/store/retention.ts";
import type { IdentityRow } from "../../platform/store/schema.ts";
import { folded } from "../../platform/store/search.ts";
import type { Sql } from "../../platform/store/store.ts";
import { WorkspaceRows } from "../../platform/store/workspace-rows.ts";
import { deleteSlotsOf } from "../credits/statements/slots.ts";
import type { StoredRatelimit } from "../keys/statements/stored-key.ts";
import { deleteAssignmentsOf, planIdOf, planOf } from "../plans/statements/plans.ts";

/** An identity with the limits that its keys share. */
export interface StoredIdentityRow extends IdentityRow {
  ratelimits: StoredRatelimit[];
  plan: DirectoryPlanUse | null;
}

type LiveIdentities = ReturnType<typeof selectLiveIdentities>;

/** The most identities of a budget that a page is sorted from. */
const OF_BUDGET_SORTED_MAX = 100_000;

/** A page of a list of identities. */
export interface IdentityPage extends PageOptions {
  /** Only identities with this budget. */
  readonly budgetId?: string | undefined;
  /** Only identities with the plan of this name or id. */
  readonly plan?: string | undefined;
  readonly byExternalId: boolean;
  readonly order: "asc" | "desc";
}

/** The identities of one workspace that are not deleted. */
export class IdentityReader extends WorkspaceRows {
  /** By id, else by external id. */
  async find(identity: string): Promise<StoredIdentityRow | undefined> {
    const row =
      (await this.#select().where("id", "=", identity).executeTakeFirst()) ??
      (await this.#select().where("external_id", "=", identity).executeTakeFirst());
    return row && asStoredIdentity(row);
  }

  /** The external ids of these identities. */
  names(identityIds: readonly string[]): Promise<Pick<IdentityRow, "id" | "external_id">[]> {
    return this.sql.db
      .selectFrom("identities")
      .select(["id", "external_id"])
      .where("workspace_id", "=", this.workspaceId)
      .where("deleted_at", "is", null)
      .where(this.sql.dialect.values.isOneOf("id", identityIds))
      .execute();
  }

  /** A page of identities, searched by external id and id, in order of creation or of external ids. */
  async page({ budgetId, plan, byExternalId, order, from, limit, search }: IdentityPage): Promise<StoredIdentityRow[]> {
    const first = byExternalId ? sql.ref("external_id") : sql.ref("created_at");
    const ofBudget = budgetId === undefined ? this.#select() : await this.#withBudget(budgetId);
    const rowsOf = plan === undefined ? ofBudget : await this.#withPlan(ofBudget, plan);
    const matching = searched(this.sql, rowsOf, search, [folded(sql.ref<string>("external_id"))]);
    const start = from && (byExternalId ? (from.sorted?.text ?? "") : from.at);
    const page =
      from === undefined
        ? matching
        : matching.where(sql<boolean>`(${first}, id) ${sql.raw(order === "asc" ? ">=" : "<=")} (${start}, ${from.id})`);
    const rows = await page.orderBy(first, order).orderBy("id", order).limit(limit).execute();
    return rows.map(asStoredIdentity);
  }

  /** The identities with a budget: by the index of budgets if they are few, else in the order of the list. */
  async #withBudget(budgetId: string) {
    const more = this.sql.db
      .selectFrom("identities")
      .select("budget_id")
      .where("budget_id", "=", budgetId)
      .offset(OF_BUDGET_SORTED_MAX)
      .limit(1);
    if (await more.executeTakeFirst()) return this.#select().where(sql<string>`budget_id || ''`, "=", budgetId);
    // An expression, so that the index on budgets leads to them, not the one of the order.
    return selectLiveIdentities(this.sql)
      .where("budget_id", "=", budgetId)
      .where(sql<string>`workspace_id || ''`, "=", this.workspaceId);
  }

  /** Those identities with a plan: the few that have it, or else each that is in the list. */
  async #withPlan(identities: LiveIdentities, plan: string): Promise<LiveIdentities> {
    const assigned = this.sql.db
      .selectFrom("plan_assignments")
      .select("owner_id")
      .where("plan_id", "=", planIdOf(this.sql, this.workspaceId, plan))
      .where("owner", "=", "identity");
    const more = await assigned.orderBy("owner_id").offset(OF_BUDGET_SORTED_MAX).limit(1).executeTakeFirst();
    if (more === undefined) return identities.where("id", "in", assigned);
    return identities.where(({ exists }) => exists(assigned.whereRef("owner_id", "=", sql.ref("identities.id"))));
  }

  #select() {
    return selectLiveIdentities(this.sql).where("workspace_id", "=", this.workspaceId);
  }
}

/** The identities of every workspace that are not deleted. */
function selectLiveIdentities(connection: Sql) {
  return connection.db
    .selectFrom("identities")
    .selectAll("identities")
    .select(({ selectFrom }) =>
      connection.dialect.json
        .array(
          selectFrom("ratelimits")
            .select(["ratelimits.id", "ratelimits.name", "ratelimits.limit", "ratelimits.duration"])
            .select(["ratelimits.mode", "ratelimits.auto_apply", "ratelimits.shadow"])
            .whereRef("ratelimits.identity_id", "=", "identities.id")
            .orderBy("ratelimits.name"),
        )
        .as("ratelimits"),
    )
    .select(planOf(connection, "identities.id").as("plan"))
    .where("deleted_at", "is", null);
}

function asStoredIdentity(row: StoredIdentityRow): StoredIdentityRow {
  return { ...row, ratelimits: parsed(row.ratelimits), plan: parsed(row.plan) };
}

export class IdentityWriter extends IdentityReader {
  static readonly writes = true;

  /** The id of the identity with this external id, which is created if missing; safe under concurrency. */
  async ensure(externalId: string, random: Random, at: Instant): Promise<string> {
    const inserted = await this.insert({ externalId, meta: null }, random, at);
    if (inserted !== undefined) {
      this.#addCreated(inserted, externalId);
      return inserted;
    }
    const { id } = await this.sql.db
      .selectFrom("identities")
      .select("id")
      .where("workspace_id", "=", this.workspaceId)
      .where("external_id", "=", externalId)
      .where("deleted_at", "is", null)
      .executeTakeFirstOrThrow();
    return id;
  }

  /** Does the same for several external ids; returns ids by external id. */
  async ensureAll(externalIds: readonly string[], random: Random, at: Instant): Promise<Map<string, string>> {
    if (externalIds.length === 0) return new Map();
    // Sorted, so that transactions with the same external ids cannot deadlock.
    const sorted = [...new Set(externalIds)].sort();
    const rows = sorted.map((externalId) => ({ id: newId(random, "id"), external_id: externalId, created_at: at }));
    const types = { id: "text", external_id: "text", created_at: "bigint" } as const;
    const inserted = await insertRows(this.sql, "identities", types, rows, { workspace_id: this.workspaceId })
      .onConflict((conflict) =>
        conflict.columns(["workspace_id", "external_id"]).where("deleted_at", "is", null).doNothing(),
      )
      .returning(["id", "external_id"])
      .execute();
    for (const { id, external_id } of inserted) this.#addCreated(id, external_id);
    const found = await this.sql.db
      .selectFrom("identities")
      .select(["id", "external_id"])
      .where("workspace_id", "=", this.workspaceId)
      .where("external_id", "in", this.sql.dialect.values.list(sorted))
      .where("deleted_at", "is", null)
      .execute();
    return new Map(found.map(({ id, external_id }) => [external_id, id]));
  }

  #addCreated(identityId: string, externalId: string): void {
    this.events.push({ type: "identity.created", objectId: identityId, data: { identityId, externalId } });
  }

  /** Inserts an identity and returns its id; undefined if the external id exists. */
  async insert(
    {
      externalId,
      meta,
      budgetId = null,
      concurrency = null,
    }: { externalId: string; meta: string | null; budgetId?: string | null; concurrency?: string | null },
    random: Random,
    at: Instant,
  ): Promise<string | undefined> {
    this.metadataBytes += meta === null ? 0 : Buffer.byteLength(meta);
    const inserted = await this.sql.db
      .insertInto("identities")
      .values({
        id: newId(random, "id"),
        workspace_id: this.workspaceId,
        external_id: externalId,
        meta,
        budget_id: budgetId,
        concurrency,
        created_at: at,
      })
      .onConflict((conflict) =>
        conflict.columns(["workspace_id", "external_id"]).where("deleted_at", "is", null).doNothing(),
      )
      .returning("id")
      .executeTakeFirst();
    return inserted?.id;
  }

  /** Finds an identity by id, else by external id, and locks it until the transaction ends. */
  async findForUpdate(identity: string): Promise<StoredIdentityRow | undefined> {
    const found = await this.find(identity);
    if (!found || !(await this.lockRow("identities", found.id))) return found;
    // Another transaction may have changed or deleted it before the lock was granted.
    return this.find(found.id);
  }

  /** Excludes other holders of this lock until the transaction ends. Rows that refer to the identity can be inserted. */
  async lock(identityId: string): Promise<void> {
    await this.lockRow("identities", identityId, "no key update");
  }

  async update(identityId: string, values: Updateable<IdentityRow>): Promise<void> {
    if (values.meta != null) {
      const former = await this.metadataLength("identities", identityId);
      this.metadataBytes += Math.max(0, Buffer.byteLength(values.meta) - former);
    }
    await this.sql.db
      .updateTable("identities")
      .set(values)
      .where("id", "=", identityId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }
}

/** Deletes identities without keys and sessions. */
export const identityRetention: RetentionTask = {
  ...deletedRows("identities", {
    references:
      "select 1 from keys where keys.identity_id = identities.id " +
      "union all select 1 from portal_sessions where identity_id = identities.id",
    beforeDelete: async (connection, ids) => {
      await deleteSlotsOf(connection, ids);
      await deleteAssignmentsOf(connection, ids);
    },
  }),
  isCostly: true,
};
