import type { Instant } from "../clock/clock.ts";
import type { AllowedAddresses } from "../rules/address.ts";
import type { Permissions } from "../rules/permissions.ts";
import type { PlanOwner, PlanRecord } from "./plan-record.ts";
import { type KeyBudget, type KeyConcurrency, type KeyLimit, type KeyRecord, valuesOf } from "./records.ts";

/**
 * A key with what its plans give it, for one call. Nothing of it is stored: the cached key names its plans only, so that a
 * change of a plan outdates no key. The key is an issued one: a derived key narrows the key at the top with its plans.
 */
export class PlannedKey implements KeyRecord {
  readonly #key: KeyRecord;
  /** The plan of the key; null: it has none. */
  readonly plan: PlanRecord | null;
  /** The plan of its identity. */
  readonly planOfIdentity: PlanRecord | null;
  #limits: readonly KeyLimit[] | undefined;
  #concurrency: readonly KeyConcurrency[] | undefined;
  #budgets: readonly KeyBudget[] | undefined;

  constructor(key: KeyRecord, plan: PlanRecord | null, planOfIdentity: PlanRecord | null) {
    this.#key = key;
    this.plan = plan;
    this.planOfIdentity = planOfIdentity;
  }

  get keyId(): string {
    return this.#key.keyId;
  }

  get isDeleted(): boolean {
    return this.#key.isDeleted;
  }

  get workspaceId(): string {
    return this.#key.workspaceId;
  }

  get workspaceEnabled(): boolean {
    return this.#key.workspaceEnabled;
  }

  get apiId(): string {
    return this.#key.apiId;
  }

  get verifyRequirement(): string {
    return this.#key.verifyRequirement;
  }

  get poolId(): string {
    return this.#key.poolId;
  }

  get planId(): string | null {
    return this.#key.planId;
  }

  get enabled(): boolean {
    return this.#key.enabled;
  }

  get expiresAt(): Instant | null {
    return this.#key.expiresAt;
  }

  get allowedIps(): AllowedAddresses | null {
    return this.#key.allowedIps;
  }

  get hasOwnAccess(): boolean {
    return this.#key.hasOwnAccess;
  }

  get hasOwnDerivation(): boolean {
    return this.#key.hasOwnDerivation;
  }

  get hasBalance(): boolean {
    return this.#key.hasBalance || this.isBalanceOfPlan;
  }

  /** Whether its plan gives it a balance. One of its own takes its place. */
  get isBalanceOfPlan(): boolean {
    return !this.#key.hasBalance && this.plan !== null && this.plan.credits !== null;
  }

  get budgets(): readonly KeyBudget[] {
    const { budgetOfPlan } = this;
    this.#budgets ??= budgetOfPlan === undefined ? this.#key.budgets : [...this.#key.budgets, budgetOfPlan];
    return this.#budgets;
  }

  /** The budget that the plan of its identity gives. One of the identity itself takes its place. */
  get budgetOfPlan(): KeyBudget | undefined {
    const { identity } = this.#key;
    return identity === null || identity.hasBudget ? undefined : this.planOfIdentity?.budgetOf(identity.id);
  }

  get identity(): KeyRecord["identity"] {
    return this.#key.identity;
  }

  get isUnused(): boolean {
    return this.#key.isUnused;
  }

  markUsed(): () => void {
    return this.#key.markUsed();
  }

  get isTokenPending(): boolean {
    return this.#key.isTokenPending;
  }

  get permissions(): Permissions {
    return this.plan?.grantsWith(this.#key.permissions, this.#key.grantMembers).permissions ?? this.#key.permissions;
  }

  get grantMembers(): string {
    return this.plan?.grantsWith(this.#key.permissions, this.#key.grantMembers).members ?? this.#key.grantMembers;
  }

  get limits(): readonly KeyLimit[] {
    this.#limits ??= this.#joined(this.#key.limits, (plan, owner, ownerId) =>
      plan.limitsOf(owner, ownerId, this.#key.limits),
    );
    return this.#limits;
  }

  get concurrency(): readonly KeyConcurrency[] {
    this.#concurrency ??= this.#joined(this.#key.concurrency, (plan, owner, ownerId) =>
      plan.concurrencyOf(owner, ownerId, this.#key.concurrency),
    );
    return this.#concurrency;
  }

  get members(): string {
    return this.#key.membersOf(this.#key, this.grantMembers);
  }

  get anonymousMembers(): string {
    return this.#key.anonymousMembers;
  }

  memberValues(seesAll: boolean): object {
    return valuesOf(this, seesAll);
  }

  membersOf(other: Pick<KeyRecord, "keyId" | "expiresAt">, grantMembers: string | null): string {
    return this.#key.membersOf(other, grantMembers);
  }

  get top(): KeyRecord {
    return this;
  }

  get derivation(): null {
    return null;
  }

  /** The limits of the key, and then those of its identity. */
  #joined<Limit extends { readonly owner: KeyLimit["owner"] }>(
    own: readonly Limit[],
    ofPlan: (plan: PlanRecord, owner: PlanOwner, ownerId: string) => Limit[],
  ): readonly Limit[] {
    const { poolId, identity } = this.#key;
    const ofKey = this.plan ? ofPlan(this.plan, "key", poolId) : own.filter(({ owner }) => owner === "key");
    const ofIdentity =
      this.planOfIdentity && identity
        ? ofPlan(this.planOfIdentity, "identity", identity.id)
        : own.filter(({ owner }) => owner === "identity");
    return [...ofKey, ...ofIdentity];
  }
}
