import { sql as raw } from "kysely";
import { type Instant, instantAt } from "../../../../../engine/src/clock/clock.ts";
import type { DirectoryLimit, DirectoryPlan, DirectoryPlanUse } from "../../../../../engine/src/directory/stored.ts";
import {
  type CreditsVersion,
  type PlanBudget,
  type PlanCredits,
  withPlanVersions,
} from "../../../../../engine/src/rules/plan-credits.ts";
import { type StoredBalance, withDueRefill } from "../../../../../engine/src/rules/refill.ts";
import { type ConcurrencyLimit, concurrencyOf } from "../../../../../engine/src/rules/slots.ts";
import { insertRows } from "../../../platform/store/insert-rows.ts";
import type { StoreRules } from "../../../platform/store/inspection.ts";
import { parsed } from "../../../platform/store/json.ts";
import { demandStep } from "../../../platform/store/migrate.ts";
import { type PageOptions, searchPage } from "../../../platform/store/page.ts";
import type { PlanOwner, PlanRow } from "../../../platform/store/schema.ts";
import { fold } from "../../../platform/store/search.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";

/** A plan with what it gives. */
export interface StoredPlan extends Omit<PlanRow, "ratelimits" | "credits" | "budget" | "concurrency"> {
  credits: PlanCredits | null;
  budget: PlanBudget | null;
  concurrency: ConcurrencyLimit[];
  /** In the order of their names. */
  ratelimits: DirectoryLimit[];
  /** Slugs in order, without those of its roles. */
  permissions: string[];
  /** Role names in order. */
  roles: string[];
}

/** The most assignments that a search for a user of a plan reads. */
const ASSIGNMENTS_SEARCHED_MAX = 10_000;

/** The plans of one workspace. */
export class PlanReader extends WorkspaceRows {
  /** By id, else by name. */
  async find(plan: string): Promise<StoredPlan | undefined> {
    const row = await this.#select().where(refersTo(plan)).executeTakeFirst();
    return row && asStoredPlan(row);
  }

  /** A page of plans, searched by name and id. */
  async page(page: PageOptions): Promise<StoredPlan[]> {
    const rows = await searchPage(this.sql, this.#select(), page).execute();
    return rows.map(asStoredPlan);
  }

  /**
   * What uses a plan; undefined: nothing. Of assignments it reads a bounded number: if they are more, those of deleted keys
   * and identities count too.
   */
  async user(planId: string): Promise<"keys" | "identities" | undefined> {
    const { db } = this.sql;
    const assigned = (owner: PlanOwner) =>
      db
        .selectFrom("plan_assignments")
        .select("owner_id")
        .where("plan_id", "=", planId)
        .where("owner", "=", owner)
        .orderBy("owner_id");
    const searched = (owner: PlanOwner) =>
      db.selectFrom(assigned(owner).limit(ASSIGNMENTS_SEARCHED_MAX).as("assigned"));
    const key = searched("key")
      .innerJoin("keys", "keys.pool_id", "assigned.owner_id")
      .innerJoin("apis", "apis.id", "keys.api_id")
      .select("keys.id")
      .where("keys.deleted_at", "is", null)
      .where("apis.deleted_at", "is", null);
    if (await key.limit(1).executeTakeFirst()) return "keys";
    const identity = searched("identity")
      .innerJoin("identities", "identities.id", "assigned.owner_id")
      .select("identities.id")
      .where("identities.deleted_at", "is", null);
    if (await identity.limit(1).executeTakeFirst()) return "identities";
    for (const [owner, users] of [
      ["key", "keys"],
      ["identity", "identities"],
    ] as const) {
      if (await assigned(owner).offset(ASSIGNMENTS_SEARCHED_MAX).limit(1).executeTakeFirst()) return users;
    }
    return undefined;
  }

  /** Whether keys or identities have the plan, deleted ones included. */
  async hasOwners(planId: string, owner: PlanOwner): Promise<boolean> {
    const assigned = this.sql.db
      .selectFrom("plan_assignments")
      .select("owner_id")
      .where("plan_id", "=", planId)
      .where("owner", "=", owner);
    return (await assigned.limit(1).executeTakeFirst()) !== undefined;
  }

  /** Whether the plan has, or has given, a budget whose unit is another one. */
  async hasBudgetInOtherUnit({ id, budget }: Pick<StoredPlan, "id" | "budget">, next: PlanBudget): Promise<boolean> {
    if (budget !== null && budget.unit !== next.unit) return true;
    const given = this.sql.db
      .selectFrom("balances")
      .innerJoin("plan_budgets", "plan_budgets.id", "balances.pool_id")
      .select("plan_budgets.unit")
      .where("balances.plan_id", "=", id)
      .limit(1);
    const one = await given.executeTakeFirst();
    return one !== undefined && one.unit !== (next.unit ?? null);
  }

  #select() {
    const { db, dialect } = this.sql;
    return db
      .selectFrom("plans")
      .selectAll("plans")
      .select((query) => [
        dialect.json
          .array(
            query
              .selectFrom("plans_roles")
              .innerJoin("roles", "roles.id", "plans_roles.role_id")
              .select("roles.name")
              .whereRef("plans_roles.plan_id", "=", "plans.id")
              .orderBy("roles.name"),
          )
          .as("roles"),
        dialect.json
          .array(
            query
              .selectFrom("plans_permissions")
              .innerJoin("permissions", "permissions.id", "plans_permissions.permission_id")
              .select("permissions.slug")
              .whereRef("plans_permissions.plan_id", "=", "plans.id")
              .orderBy("permissions.slug"),
          )
          .as("permissions"),
      ])
      .where("plans.workspace_id", "=", this.workspaceId);
  }
}

/** Ids begin with `plan_`, and names do not. */
function refersTo(plan: string) {
  return raw<boolean>`${raw.ref(plan.startsWith("plan_") ? "plans.id" : "plans.name")} = ${plan}`;
}

/** The plan of the pool or the identity of a row, as one JSON column: null if it has none. */
export function planOf({ db, dialect }: Sql, owner: "keys.pool_id" | "identities.id") {
  return dialect.json.object(
    db
      .selectFrom("plan_assignments")
      .innerJoin("plans", "plans.id", "plan_assignments.plan_id")
      .select(["plans.id", "plans.name", "plans.credits", "plans.budget"])
      .where("plan_assignments.owner_id", "=", raw.ref<string>(owner)),
  );
}

/** The id of the plan that a caller refers to, as a subquery. */
export function planIdOf({ db }: Pick<Sql, "db">, workspaceId: string, plan: string) {
  return db.selectFrom("plans").select("plans.id").where("plans.workspace_id", "=", workspaceId).where(refersTo(plan));
}

type SelectedPlan = PlanRow & { roles: { name: string }[]; permissions: { slug: string }[] };

function asStoredPlan(row: SelectedPlan): StoredPlan {
  return {
    ...row,
    ratelimits: JSON.parse(row.ratelimits),
    credits: row.credits === null ? null : JSON.parse(row.credits),
    budget: row.budget === null ? null : JSON.parse(row.budget),
    concurrency: concurrencyOf(row.concurrency),
    roles: parsed(row.roles).map(({ name }) => name),
    permissions: parsed(row.permissions).map(({ slug }) => slug),
  };
}

/** What an update of a plan sets. */
export interface PlanValues {
  meta?: string | null;
  ratelimits?: readonly DirectoryLimit[];
  credits?: PlanCredits | null;
  budget?: PlanBudget | null;
  concurrency?: readonly ConcurrencyLimit[];
}

/** A plan that a pool of keys or an identity gets. */
export interface PlanOfOwner {
  readonly owner: PlanOwner;
  readonly ownerId: string;
  readonly planId: string;
}

export class PlanWriter extends PlanReader {
  static readonly writes = true;

  /** Whether plans can be stored: programs of earlier releases would not apply them. */
  accepts(): Promise<boolean> {
    return demandStep(this.sql, "049-plan-credits");
  }

  /** The same of plans with budgets, which programs of earlier releases would not charge. */
  acceptsBudgets(): Promise<boolean> {
    return demandStep(this.sql, "050-plan-budgets");
  }

  /** Inserts a plan; returns whether no other one has its name. */
  async insert(
    plan: Pick<StoredPlan, "id" | "name" | "meta" | "ratelimits" | "credits" | "budget" | "concurrency" | "created_at">,
  ): Promise<boolean> {
    this.metadataBytes +=
      (plan.meta === null ? 0 : Buffer.byteLength(plan.meta)) + limitsColumn(plan.ratelimits).length;
    const given = plan.credits ?? plan.budget;
    const inserted = await this.sql.db
      .insertInto("plans")
      .values({
        ...plan,
        ratelimits: limitsColumn(plan.ratelimits),
        concurrency: concurrencyColumn(plan.concurrency),
        credits: jsonColumn(plan.credits),
        budget: jsonColumn(plan.budget),
        credits_version: given === null ? null : 1,
        name_folded: fold(plan.name),
        workspace_id: this.workspaceId,
        version: 1,
      })
      .onConflict((conflict) => conflict.columns(["workspace_id", "name"]).doNothing())
      .returning("id")
      .executeTakeFirst();
    if (inserted && given) await this.#addVersion(plan.id, 1, given, instantAt(plan.created_at));
    return inserted !== undefined;
  }

  /** Finds a plan and locks it until the transaction ends, also against new assignments. */
  async findForUpdate(plan: string): Promise<StoredPlan | undefined> {
    const found = await this.find(plan);
    if (!found || !(await this.lockRow("plans", found.id))) return found;
    // Another transaction may have changed or deleted it before the lock was granted.
    return this.find(found.id);
  }

  /** Finds plans that get keys or identities, and keeps them from being changed or deleted until the transaction ends. */
  async keep(plans: readonly string[]): Promise<ReadonlyMap<string, DirectoryPlanUse>> {
    const kept = new Map<string, DirectoryPlanUse>();
    // In one order, so that two transactions cannot deadlock.
    for (const plan of [...new Set(plans)].sort()) {
      const query = planIdOf(this.sql, this.workspaceId, plan).select(["plans.name", "plans.credits", "plans.budget"]);
      const row = await this.sql.dialect.locks.locking(query, "key share").executeTakeFirst();
      if (row) kept.set(plan, row);
    }
    return kept;
  }

  /** Writes the new values of a locked plan, with the next version. */
  async update(
    { id, version, credits_version }: Pick<StoredPlan, "id" | "version" | "credits_version">,
    { meta, ratelimits, credits, budget, concurrency }: PlanValues,
    at: Instant,
  ): Promise<void> {
    if (meta != null) {
      const former = await this.metadataLength("plans", id);
      this.metadataBytes += Math.max(0, Buffer.byteLength(meta) - former);
    }
    const isGivenAnew = credits !== undefined || budget !== undefined;
    await this.sql.db
      .updateTable("plans")
      .set({
        ...(meta !== undefined && { meta }),
        ...(ratelimits !== undefined && { ratelimits: limitsColumn(ratelimits) }),
        ...(concurrency !== undefined && { concurrency: concurrencyColumn(concurrency) }),
        ...(credits !== undefined && { credits: jsonColumn(credits) }),
        ...(budget !== undefined && { budget: jsonColumn(budget) }),
        ...(isGivenAnew && { credits_version: (credits_version ?? 0) + 1 }),
        version: version + 1,
        updated_at: at,
      })
      .where("id", "=", id)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
    if (isGivenAnew) await this.#addVersion(id, (credits_version ?? 0) + 1, credits ?? budget ?? null, at);
  }

  /** Adds a version of the credits or of the budget. */
  async #addVersion(planId: string, version: number, credits: PlanCredits | null, since: Instant): Promise<void> {
    await this.sql.db
      .insertInto("plan_credits")
      .values({ plan_id: planId, workspace_id: this.workspaceId, version, since, credits: jsonColumn(credits) })
      .execute();
  }

  /** How many versions of the credits of a plan are stored. Removes those that all its balances have, except the newest. */
  async countVersions({ id: planId, credits_version }: Pick<StoredPlan, "id" | "credits_version">): Promise<number> {
    const { db } = this.sql;
    const first = await db
      .selectFrom("balances")
      .select("plan_version")
      .where("plan_id", "=", planId)
      .orderBy("plan_version")
      .limit(1)
      .executeTakeFirst();
    await db
      .deleteFrom("plan_credits")
      .where("plan_id", "=", planId)
      .where("workspace_id", "=", this.workspaceId)
      .where("version", "<", credits_version ?? 0)
      .$if(first !== undefined, (query) => query.where("version", "<=", first?.plan_version ?? 0))
      .execute();
    const { count } = await db
      .selectFrom("plan_credits")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("plan_id", "=", planId)
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** Replaces the permissions of a plan. */
  async setPermissions(planId: string, permissionIds: readonly string[]): Promise<void> {
    const { db } = this.sql;
    await db.deleteFrom("plans_permissions").where("plan_id", "=", planId).execute();
    if (permissionIds.length === 0) return;
    const rows = [...new Set(permissionIds)].map((permission_id) => ({ plan_id: planId, permission_id }));
    const types = { plan_id: "text", permission_id: "text" } as const;
    await insertRows(this.sql, "plans_permissions", types, rows, { workspace_id: this.workspaceId }).execute();
  }

  /** Replaces the roles of a plan. */
  async setRoles(planId: string, roleIds: readonly string[]): Promise<void> {
    const { db } = this.sql;
    await db.deleteFrom("plans_roles").where("plan_id", "=", planId).execute();
    if (roleIds.length === 0) return;
    const rows = [...new Set(roleIds)].map((role_id) => ({ plan_id: planId, role_id }));
    const types = { plan_id: "text", role_id: "text" } as const;
    await insertRows(this.sql, "plans_roles", types, rows, { workspace_id: this.workspaceId }).execute();
  }

  /** Gives plans to new pools of keys and new identities in one statement. */
  async assignAll(owners: readonly PlanOfOwner[]): Promise<void> {
    if (owners.length === 0) return;
    const rows = owners.map(({ owner, ownerId, planId }) => ({ owner, owner_id: ownerId, plan_id: planId }));
    // In the order of ids, so that two transactions cannot deadlock.
    rows.sort((a, b) => (a.owner_id < b.owner_id ? -1 : 1));
    const types = { owner_id: "text", owner: "text", plan_id: "text" } as const;
    await insertRows(this.sql, "plan_assignments", types, rows, { workspace_id: this.workspaceId })
      .onConflict((conflict) =>
        conflict.column("owner_id").doUpdateSet((update) => ({ plan_id: update.ref("excluded.plan_id") })),
      )
      .execute();
  }

  /** Gives a plan to a pool of keys or to an identity; null: takes it away. */
  async assign(owner: PlanOwner, ownerId: string, planId: string | null): Promise<void> {
    if (planId !== null) return this.assignAll([{ owner, ownerId, planId }]);
    await this.sql.db
      .deleteFrom("plan_assignments")
      .where("owner_id", "=", ownerId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }

  /** Locks the assignment of a pool until the transaction ends, so that nothing else gives it the credits of its plan. */
  async lockAssignment(ownerId: string): Promise<void> {
    const query = this.sql.db
      .selectFrom("plan_assignments")
      .select("owner_id")
      .where("owner_id", "=", ownerId)
      .where("workspace_id", "=", this.workspaceId);
    await this.sql.dialect.locks.locking(query, "update").execute();
  }

  /** The same, and the plan that the pool has then; null: none. */
  async lockPlanId(ownerId: string): Promise<string | null> {
    await this.lockAssignment(ownerId);
    const row = await this.sql.db
      .selectFrom("plan_assignments")
      .select("plan_id")
      .where("owner_id", "=", ownerId)
      .where("workspace_id", "=", this.workspaceId)
      .executeTakeFirst();
    return row?.plan_id ?? null;
  }

  /** Deletes a plan that nothing uses. Deleted keys and identities may still refer to it. */
  async delete(planId: string): Promise<void> {
    await this.sql.db
      .deleteFrom("plans")
      .where("id", "=", planId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }

  /** The assignment of the pool of a key that was deleted; null: none. `exists`: whether its plan does, which is kept then. */
  async keepOfPool(poolId: string): Promise<{ planId: string; exists: boolean } | null> {
    const assigned = await this.sql.db
      .selectFrom("plan_assignments")
      .select("plan_id")
      .where("owner_id", "=", poolId)
      .where("workspace_id", "=", this.workspaceId)
      .executeTakeFirst();
    if (!assigned) return null;
    return { planId: assigned.plan_id, exists: (await this.keep([assigned.plan_id])).size > 0 };
  }
}

/** The database value of limits of a plan, in the order of their names. */
function limitsColumn(limits: readonly DirectoryLimit[]): string {
  const rows = limits.map(({ id, name, limit, duration, mode, auto_apply, shadow }) => ({
    id,
    name,
    limit,
    duration,
    mode,
    auto_apply,
    shadow,
  }));
  return JSON.stringify(rows.sort((a, b) => (a.name < b.name ? -1 : 1)));
}

/** The credits of plans in the order of their versions, by the id of the plan. */
export type PlanVersions = ReadonlyMap<string, { name: string; versions: CreditsVersion[] }>;

/** The versions of credits that balances may lack. No query without ids. */
export async function findCreditsVersions({ db, dialect }: Sql, planIds: readonly string[]): Promise<PlanVersions> {
  const found = new Map<string, { name: string; versions: CreditsVersion[] }>();
  if (planIds.length === 0) return found;
  const rows = await db
    .selectFrom("plan_credits")
    .innerJoin("plans", "plans.id", "plan_credits.plan_id")
    .select([
      "plan_credits.plan_id",
      "plan_credits.version",
      "plan_credits.since",
      "plan_credits.credits",
      "plans.name",
    ])
    .where(dialect.values.isOneOf("plan_credits.plan_id", [...new Set(planIds)]))
    .orderBy("plan_credits.version")
    .execute();
  for (const { plan_id, name, version, since, credits } of rows) {
    const plan = found.get(plan_id) ?? { name, versions: [] };
    found.set(plan_id, plan);
    plan.versions.push({ version, since: instantAt(since), credits: credits === null ? null : JSON.parse(credits) });
  }
  return found;
}

/** Plans of any workspace with what they give; the directory loads its records with this. */
export async function findPlans({ db, dialect }: Sql, ids: readonly string[]): Promise<DirectoryPlan[]> {
  const rows = await db
    .selectFrom("plans")
    .select(["plans.id", "plans.workspace_id", "plans.name", "plans.version", "plans.ratelimits"])
    .select(["plans.concurrency", "plans.credits", "plans.budget"])
    .select((query) => [
      dialect.json
        .array(
          query
            .selectFrom("plans_roles")
            .innerJoin("roles", "roles.id", "plans_roles.role_id")
            .select("roles.name")
            .whereRef("plans_roles.plan_id", "=", "plans.id")
            .orderBy("roles.name"),
        )
        .as("roles"),
      dialect.json
        .array(
          query
            .selectFrom("permissions")
            .select("permissions.slug")
            .where("permissions.id", "in", (inner) =>
              inner
                .selectFrom("plans_permissions")
                .select("plans_permissions.permission_id")
                .whereRef("plans_permissions.plan_id", "=", "plans.id")
                .union(
                  inner
                    .selectFrom("plans_roles")
                    .innerJoin("roles_permissions", "roles_permissions.role_id", "plans_roles.role_id")
                    .select("roles_permissions.permission_id")
                    .whereRef("plans_roles.plan_id", "=", "plans.id"),
                ),
            )
            .orderBy("permissions.slug"),
        )
        .as("permissions"),
    ])
    .where(dialect.values.isOneOf("plans.id", ids))
    .execute();
  return rows.map(({ ratelimits, roles, permissions, ...plan }) => ({
    ...plan,
    ratelimits: JSON.parse(ratelimits),
    roles: parsed(roles).map(({ name }) => name),
    permissions: parsed(permissions).map(({ slug }) => slug),
  }));
}

/** A balance as it is now: with the changes of its plan, if a plan gave it, and with due refills. */
export function currentBalance<B extends StoredBalance & { plan_id: string | null; plan_version: number | null }>(
  balance: B,
  versions: PlanVersions,
  now: Instant,
  onRefill?: (before: B, after: B, at: Instant) => void,
): B {
  const { plan_id, plan_version } = balance;
  if (plan_id === null) return withDueRefill(balance, now);
  const newer = (versions.get(plan_id)?.versions ?? []).filter(({ version }) => version > (plan_version ?? 0));
  return withPlanVersions(balance, newer, now, onRefill);
}

/** Balances as they are now. No query if no plan gave one of them. */
export async function currentBalances<
  B extends StoredBalance & { plan_id: string | null; plan_version: number | null },
>(sql: Sql, balances: readonly B[], now: Instant): Promise<B[]> {
  const versions = await findCreditsVersions(
    sql,
    balances.flatMap(({ plan_id }) => plan_id ?? []),
  );
  return balances.map((balance) => currentBalance(balance, versions, now));
}

/** The database value of limits of concurrency, in the order of their names. */
function concurrencyColumn(limits: readonly ConcurrencyLimit[]): string | null {
  if (limits.length === 0) return null;
  return JSON.stringify(limits.map(({ name, limit }) => ({ name, limit })).sort((a, b) => (a.name < b.name ? -1 : 1)));
}

function jsonColumn(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

/** Deletes the assignments of pools without keys and of identities that are about to be deleted for good. */
export async function deleteAssignmentsOf({ db, dialect }: Sql, ownerIds: readonly string[]): Promise<void> {
  await db
    .deleteFrom("plan_assignments")
    .where(dialect.values.isOneOf("owner_id", ownerIds))
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom("keys").select("keys.id").whereRef("keys.pool_id", "=", "plan_assignments.owner_id"))),
    )
    .execute();
  await db
    .deleteFrom("plan_grants")
    .where(dialect.values.isOneOf("pool_id", ownerIds))
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom("keys").select("keys.id").whereRef("keys.pool_id", "=", "plan_grants.pool_id"))),
    )
    .execute();
}

/** What holds for all plans. */
export const planRules: StoreRules = {
  "every plan is given to a key or an identity of its workspace": `select count(*) as count from plan_assignments as given
    where not exists (select 1 from keys where keys.pool_id = given.owner_id and keys.workspace_id = given.workspace_id)
    and not exists (select 1 from identities where identities.id = given.owner_id
      and identities.workspace_id = given.workspace_id)`,
  "the plan of every key exists": `select count(*) as count from keys
    join plan_assignments as given on given.owner_id = keys.pool_id
    where deleted_at is null and exists (select 1 from apis where apis.id = keys.api_id and apis.deleted_at is null)
    and not exists (select 1 from plans where plans.id = given.plan_id and plans.workspace_id = given.workspace_id)`,
  "the plan of every identity exists": `select count(*) as count from identities
    join plan_assignments as given on given.owner_id = identities.id where deleted_at is null
    and not exists (select 1 from plans where plans.id = given.plan_id and plans.workspace_id = given.workspace_id)`,
};
