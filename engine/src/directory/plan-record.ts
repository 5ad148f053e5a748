import { compilePermissions, type Permissions } from "../rules/permissions.ts";
import { type PlanBudget, type PlanCredits, planBudgetId, unitPartOf } from "../rules/plan-credits.ts";
import type { LoadedRecord } from "./record-cache.ts";
import {
  type KeyBudget,
  type KeyConcurrency,
  type KeyLimit,
  keyConcurrency,
  keyLimit,
  limitCounter,
  members,
} from "./records.ts";
import type { DirectoryPlan } from "./stored.ts";

/** A limit of a plan without what depends on its owner. */
type PlanLimit = Omit<KeyLimit, "counter">;

/** Who can have a plan. */
export type PlanOwner = Exclude<KeyLimit["owner"], "derived">;

/** What a key is granted in all: its permissions, and the members of its answers about them. */
interface Grants {
  readonly permissions: Permissions;
  /** As JSON, with a comma before them: `roles`, `permissions`, `plan`. */
  readonly members: string;
}

/**
 * A plan as verification needs it. All its keys share this record, so a change of the plan outdates one record, however many
 * keys have the plan.
 */
export class PlanRecord {
  readonly planId: string;
  readonly name: string;
  /** Increases with each change. */
  readonly version: number;
  /** The credits of its keys; null: it has none. */
  readonly credits: PlanCredits | null;
  /** The budget of each identity with the plan; null: it has none. */
  readonly budget: PlanBudget | null;
  /** Its permissions, those of its roles included. */
  readonly permissions: ReadonlySet<string>;
  readonly #plan: DirectoryPlan;
  readonly #unitPart: string;
  readonly #limits: Readonly<Record<PlanOwner, readonly PlanLimit[]>>;
  /** What keys are granted that have the same permissions of their own. */
  readonly #grants = new Map<Permissions, Grants>();
  #grantsBytes = 0;

  constructor(plan: DirectoryPlan) {
    this.#plan = plan;
    this.planId = plan.id;
    this.name = plan.name;
    this.version = plan.version;
    this.credits = plan.credits === null ? null : JSON.parse(plan.credits);
    this.budget = plan.budget === null ? null : JSON.parse(plan.budget);
    this.#unitPart = this.budget === null ? "" : unitPartOf(this.budget);
    this.permissions = new Set(plan.permissions);
    const limitsOf = (owner: PlanOwner) =>
      plan.ratelimits.map((limit): PlanLimit => {
        const { counter: _, ...others } = keyLimit(limit, owner, "");
        return others;
      });
    this.#limits = { key: limitsOf("key"), identity: limitsOf("identity") };
  }

  /** The limits of the owner: its own ones, and those of the plan whose names they do not have. */
  limitsOf(owner: PlanOwner, ownerId: string, own: readonly KeyLimit[]): KeyLimit[] {
    const ofOwner = own.filter((limit) => limit.owner === owner);
    const all = [...ofOwner];
    for (const limit of this.#limits[owner]) {
      if (ofOwner.some(({ name }) => name === limit.name)) continue;
      const { name, duration, mode, shadow, applies } = limit;
      // The counter is that of a limit of its own: a limit that moves into the plan, or out of it, keeps its count.
      const counter = limitCounter(owner, ownerId, name);
      all.push({
        name,
        limit: limit.limit,
        duration,
        mode,
        owner,
        shadow,
        applies,
        counter,
        members: limit.members,
        plan: this.name,
      });
    }
    return all;
  }

  /** The budget that it gives to an identity; undefined: it gives none. */
  budgetOf(identityId: string): KeyBudget | undefined {
    if (this.budget === null) return undefined;
    const { name, budget } = this;
    return { budgetId: planBudgetId(identityId, this.#unitPart), name, unit: budget.unit ?? null, plan: name };
  }

  /** The same of concurrency. */
  concurrencyOf(owner: PlanOwner, ownerId: string, own: readonly KeyConcurrency[]): KeyConcurrency[] {
    const ofOwner = own.filter((limit) => limit.owner === owner);
    if (this.#plan.concurrency === null) return ofOwner;
    const others = keyConcurrency(this.#plan.concurrency, owner, ownerId)
      .filter(({ name }) => !ofOwner.some((limit) => limit.name === name))
      .map((limit) => ({ ...limit, plan: this.name }));
    return [...ofOwner, ...others];
  }

  /**
   * The permissions of a key with those of the plan.
   *
   * @param grantMembers the members of answers about the key's own permissions.
   */
  grantsWith(own: Permissions, grantMembers: string): Grants {
    let grants = this.#grants.get(own);
    if (grants === undefined) {
      const { permissions, roles } = this.#plan;
      const known = JSON.parse(`{${grantMembers.slice(1)}}`) as { roles?: string[]; plan?: string };
      const slugs = sortedUnion(own.slugs, permissions);
      const names = sortedUnion(known.roles ?? [], roles);
      const shown = {
        ...(names.length > 0 && { roles: names }),
        ...(slugs.length > 0 && { permissions: slugs }),
        plan: this.name,
      };
      grants = {
        permissions: permissions.length === 0 ? own : compilePermissions(slugs),
        members: `,${members(shown)}`,
      };
      this.#remember(own, grants, GRANT_BYTES * slugs.length + grants.members.length);
    }
    return grants;
  }

  #remember(own: Permissions, grants: Grants, bytes: number): void {
    if (this.#grantsBytes + bytes > GRANTS_BYTES_MAX) {
      this.#grants.clear();
      this.#grantsBytes = 0;
    }
    if (bytes > GRANTS_BYTES_MAX) return;
    this.#grants.set(own, grants);
    this.#grantsBytes += bytes;
  }
}

function sortedUnion(one: Iterable<string>, other: Iterable<string>): string[] {
  return [...new Set([...one, ...other])].sort();
}

/** Estimated memory of a permission of a key and a plan together. */
const GRANT_BYTES = 100;
/** The most memory for such unions of one plan. What exceeds it is made again for each call. */
const GRANTS_BYTES_MAX = 32 * 1024;
/** Estimated memory of a plan, and of each permission and limit. */
const PLAN_BYTES = 2_000 + GRANTS_BYTES_MAX;
const PERMISSION_BYTES = 600;
const LIMIT_BYTES = 1_000;

export function planRecord(plan: DirectoryPlan): LoadedRecord<PlanRecord> {
  const { workspace_id, ratelimits, permissions, roles, concurrency } = plan;
  return {
    record: new PlanRecord(plan),
    // A change of a role outdates everything of its workspace.
    tags: [workspace_id],
    bytes:
      PLAN_BYTES +
      PERMISSION_BYTES * (permissions.length + roles.length) +
      LIMIT_BYTES * ratelimits.length +
      2 * (concurrency?.length ?? 0),
  };
}
