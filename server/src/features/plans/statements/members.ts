import { sql as raw } from "kysely";
import type { PlanOwner } from "../../../platform/store/schema.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";

/** The most keys, and the most identities, that a preview examines: some tens of milliseconds. */
export const MEMBERS_EXAMINED_MAX = 20_000;

/** How many keys or identities have a plan, and how many of them have a limit of their own, by its name. */
export interface Members {
  readonly count: number;
  /** Whether these are all. */
  readonly isComplete: boolean;
  readonly withOwnLimit: ReadonlyMap<string, number>;
}

/** Counts the keys and identities of one workspace's plans, deleted ones excepted. */
export class PlanMembers extends WorkspaceRows {
  /** @param names the limits to look for. */
  async count(planId: string, owner: PlanOwner, names: readonly string[]): Promise<Members> {
    const { db, dialect } = this.sql;
    const [column, members] =
      owner === "key"
        ? (["key_id", this.#keys(planId)] as const)
        : (["identity_id", this.#identities(planId)] as const);
    const counted = await db
      .selectFrom(members.as("members"))
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow();
    const count = Number(counted.count);
    const more = await this.#assignments(planId, owner).offset(MEMBERS_EXAMINED_MAX).limit(1).executeTakeFirst();
    const owning =
      names.length === 0 || count === 0
        ? []
        : await db
            .selectFrom(members.as("members"))
            .innerJoin("ratelimits", `ratelimits.${column}`, "members.id")
            .select("ratelimits.name")
            .select(({ fn }) => fn.countAll<number>().as("count"))
            .where(dialect.values.isOneOf("ratelimits.name", names))
            .groupBy("ratelimits.name")
            .execute();
    return {
      count: Math.min(count, MEMBERS_EXAMINED_MAX),
      isComplete: more === undefined && count <= MEMBERS_EXAMINED_MAX,
      withOwnLimit: new Map(owning.map((row) => [row.name, Number(row.count)])),
    };
  }

  /** How many keys with a plan have credits of their own. */
  async withOwnCredits(planId: string): Promise<number> {
    const { count } = await this.sql.db
      .selectFrom(this.#keys(planId).as("members"))
      .innerJoin("keys", "keys.id", "members.id")
      .innerJoin("balances", "balances.pool_id", "keys.pool_id")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("balances.plan_id", "is", null)
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** How many identities with a plan have a budget of their own. */
  async withOwnBudget(planId: string): Promise<number> {
    const { count } = await this.sql.db
      .selectFrom(this.#identities(planId).as("members"))
      .innerJoin("identities", "identities.id", "members.id")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("identities.budget_id", "is not", null)
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** How many keys or identities with a plan have a limit of concurrency of this name. */
  async withOwnConcurrency(planId: string, owner: PlanOwner, name: string): Promise<number> {
    const { db, dialect } = this.sql;
    const named = dialect.contains(raw.ref<string>("owners.concurrency"), `"name":${JSON.stringify(name)}`);
    const members =
      owner === "key"
        ? db.selectFrom(this.#keys(planId).as("members")).innerJoin("keys as owners", "owners.id", "members.id")
        : db
            .selectFrom(this.#identities(planId).as("members"))
            .innerJoin("identities as owners", "owners.id", "members.id");
    const { rows } = await raw<{ count: number }>`select count(*) as count from (
      ${members.select("owners.id").where(named)}) as named`.execute(db);
    return Number(rows[0]?.count ?? 0);
  }

  #keys(planId: string) {
    return this.#assigned(planId, "key")
      .innerJoin("keys", "keys.pool_id", "assigned.owner_id")
      .innerJoin("apis", "apis.id", "keys.api_id")
      .select("keys.id as id")
      .where("keys.deleted_at", "is", null)
      .where("apis.deleted_at", "is", null)
      .limit(MEMBERS_EXAMINED_MAX + 1);
  }

  #identities(planId: string) {
    return this.#assigned(planId, "identity")
      .innerJoin("identities", "identities.id", "assigned.owner_id")
      .select("identities.id as id")
      .where("identities.deleted_at", "is", null)
      .limit(MEMBERS_EXAMINED_MAX + 1);
  }

  #assigned(planId: string, owner: PlanOwner) {
    const assigned = this.#assignments(planId, owner).limit(MEMBERS_EXAMINED_MAX);
    return this.sql.db.selectFrom(assigned.as("assigned"));
  }

  #assignments(planId: string, owner: PlanOwner) {
    return this.sql.db
      .selectFrom("plan_assignments")
      .select(raw.ref<string>("owner_id").as("owner_id"))
      .where("plan_id", "=", planId)
      .where("owner", "=", owner)
      .where(raw<boolean>`workspace_id || '' = ${this.workspaceId}`)
      .orderBy("owner_id");
  }
}
