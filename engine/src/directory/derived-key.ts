import { type Instant, instantAt } from "../clock/clock.ts";
import { type AddressList, type AllowedAddresses, addressList, addressListBytes } from "../rules/address.ts";
import { compilePermissions, intersection, type Permissions } from "../rules/permissions.ts";
import { PlannedKey } from "./planned-key.ts";
import type { LoadedRecord } from "./record-cache.ts";
import {
  type Derivation,
  type KeyBudget,
  type KeyConcurrency,
  type KeyLimit,
  type KeyRecord,
  keyLimit,
  members,
  valuesOf,
} from "./records.ts";
import type { DerivedLevel, DirectoryDerivedKey, DirectoryLimit } from "./stored.ts";

/** The most derived keys above one another. */
export const LEVELS_MAX = 3;

/** Estimated memory in bytes: of a derived key, of each of its levels, and of what a level can have. */
const DERIVED_BYTES = 1_200;
const LEVEL_BYTES = 300;
const PERMISSION_BYTES = 250;
const LIMIT_BYTES = 500;

/** A limit of a derived key, as its column has it. */
export type DerivedLimit = Omit<DirectoryLimit, "auto_apply">;

/**
 * A derived key as verification needs it: what it narrows down, and the id of the key at the top. It has nothing of that key,
 * so a change of that key outdates no derived key, however many there are.
 */
export class DerivedKeyRecord {
  readonly keyId: string;
  readonly topId: string;
  readonly derivation: Derivation;
  readonly isEnded: boolean;
  /** The earliest expiry of its levels. */
  readonly expiresAt: Instant;
  readonly limits: readonly KeyLimit[];
  readonly allowedIps: readonly AddressList[];
  /** `derived` as a JSON member, with a comma before it. */
  readonly member: string;
  readonly #permissions: readonly Permissions[];
  /** What it may of the permissions of its parent that were compared last. */
  #common: { readonly of: Permissions; readonly permissions: Permissions } | undefined;
  #grants: { readonly of: string; readonly permissions: Permissions; readonly members: string } | undefined;
  /** The key that it was last found to be. */
  #narrowed: NarrowedKey | undefined;

  constructor({ top_id, levels, level }: DirectoryDerivedKey) {
    const [own] = levels;
    if (own === undefined) throw new Error("A derived key has at least one level");
    this.keyId = own.id;
    this.topId = top_id;
    this.isEnded = levels.length < level || levels.some(({ deleted_at }) => deleted_at !== null);
    this.expiresAt = instantAt(Math.min(...levels.map(({ expires_at }) => expires_at)));
    this.limits = levels.flatMap(limitsOf);
    this.allowedIps = levels.flatMap(({ allowed_ips }) => {
      const list = addressList(parsed(allowed_ips) ?? []);
      return list === null ? [] : [list];
    });
    this.#permissions = levels.flatMap(({ permissions }) =>
      permissions === null ? [] : [compilePermissions(JSON.parse(permissions))],
    );
    const meta: object = own.meta === null ? {} : JSON.parse(own.meta);
    this.member = `,${members({ derived: { parentKeyId: own.parent_id, meta } })}`;
    this.derivation = {
      ids: levels.map(({ id }) => id),
      balanceIds: levels.flatMap(({ id, credits_max }) => (credits_max === null ? [] : [id])),
      levels,
    };
  }

  /** The key that it is, while the key at the top is this one. */
  narrow(top: KeyRecord): KeyRecord {
    // A key with plans is joined with them for one call.
    if (top instanceof PlannedKey) return new NarrowedKey(this, top);
    if (this.#narrowed?.top !== top) this.#narrowed = new NarrowedKey(this, top);
    return this.#narrowed;
  }

  /** What it may of these permissions of the key at the top. */
  permissionsWithin(of: Permissions): Permissions {
    if (this.#permissions.length === 0) return of;
    if (this.#common?.of !== of) this.#common = { of, permissions: this.#permissions.reduce(intersection, of) };
    return this.#common.permissions;
  }

  /** The members of answers about what it is granted: those of the key at the top, with its own permissions and without roles. */
  grantMembersWithin(of: string, all: Permissions): string {
    const permissions = this.permissionsWithin(all);
    if (this.#grants?.of !== of || this.#grants.permissions !== permissions) {
      const { roles: _, permissions: __, ...others } = JSON.parse(`{${of.slice(1)}}`) as Record<string, unknown>;
      const slugs = [...permissions.slugs];
      const shown = { ...(slugs.length > 0 && { permissions: slugs }), ...others };
      const text = Object.keys(shown).length === 0 ? "" : `,${members(shown)}`;
      this.#grants = { of, permissions, members: text };
    }
    return this.#grants.members;
  }
}

function limitsOf({ id, ratelimits }: DerivedLevel): KeyLimit[] {
  return (parsed<DerivedLimit[]>(ratelimits) ?? []).map((limit) =>
    keyLimit({ ...limit, auto_apply: 1 }, "derived", id),
  );
}

function parsed<T = string[]>(json: string | null): T | null {
  return json === null ? null : JSON.parse(json);
}

/** A derived key: what the key at the top has at this moment, less what its levels take away. */
class NarrowedKey implements KeyRecord {
  readonly top: KeyRecord;
  readonly expiresAt: Instant;
  readonly allowedIps: AllowedAddresses | null;
  readonly limits: readonly KeyLimit[];
  readonly #derived: DerivedKeyRecord;

  constructor(derived: DerivedKeyRecord, top: KeyRecord) {
    this.top = top;
    this.#derived = derived;
    const { expiresAt } = top;
    this.expiresAt = expiresAt !== null && expiresAt < derived.expiresAt ? expiresAt : derived.expiresAt;
    this.limits = derived.limits.length === 0 ? top.limits : [...top.limits, ...derived.limits];
    const ofDerived = derived.allowedIps;
    this.allowedIps =
      ofDerived.length === 0 ? top.allowedIps : { ...(top.allowedIps ?? { ofApi: null, ofKey: null }), ofDerived };
  }

  get keyId(): string {
    return this.#derived.keyId;
  }

  get derivation(): Derivation {
    return this.#derived.derivation;
  }

  get isDeleted(): boolean {
    return this.#derived.isEnded || this.top.isDeleted;
  }

  get permissions(): Permissions {
    return this.#derived.permissionsWithin(this.top.permissions);
  }

  get workspaceId(): string {
    return this.top.workspaceId;
  }

  get workspaceEnabled(): boolean {
    return this.top.workspaceEnabled;
  }

  get apiId(): string {
    return this.top.apiId;
  }

  get verifyRequirement(): string {
    return this.top.verifyRequirement;
  }

  get poolId(): string {
    return this.top.poolId;
  }

  get planId(): string | null {
    return this.top.planId;
  }

  get enabled(): boolean {
    return this.top.enabled;
  }

  get hasOwnAccess(): boolean {
    return this.top.hasOwnAccess;
  }

  get hasOwnDerivation(): boolean {
    return this.top.hasOwnDerivation;
  }

  get hasBalance(): boolean {
    return this.top.hasBalance;
  }

  get budgets(): readonly KeyBudget[] {
    return this.top.budgets;
  }

  get identity(): KeyRecord["identity"] {
    return this.top.identity;
  }

  get concurrency(): readonly KeyConcurrency[] {
    return this.top.concurrency;
  }

  /** What the first use of an imported key reveals is the string of that key. */
  get isUnused(): boolean {
    return false;
  }

  markUsed(): () => void {
    return () => {};
  }

  get isTokenPending(): boolean {
    return false;
  }

  get members(): string {
    return this.membersOf(this, this.grantMembers);
  }

  get anonymousMembers(): string {
    return this.membersOf(this, null);
  }

  get grantMembers(): string {
    return this.#derived.grantMembersWithin(this.top.grantMembers, this.top.permissions);
  }

  memberValues(seesAll: boolean): object {
    return valuesOf(this, seesAll);
  }

  membersOf(other: Pick<KeyRecord, "keyId" | "expiresAt">, grantMembers: string | null): string {
    return this.top.membersOf(other, grantMembers) + this.#derived.member;
  }
}

export function derivedKeyRecord(derived: DirectoryDerivedKey): LoadedRecord<DerivedKeyRecord> {
  const record = new DerivedKeyRecord(derived);
  let bytes = DERIVED_BYTES;
  for (const level of derived.levels) {
    const { permissions, allowed_ips, ratelimits, meta } = level;
    bytes += LEVEL_BYTES + 4 * (meta?.length ?? 0) + 2 * (ratelimits?.length ?? 0) + 4 * (permissions?.length ?? 0);
    bytes += PERMISSION_BYTES * (parsed(permissions)?.length ?? 0) + 2 * (allowed_ips?.length ?? 0);
  }
  bytes += LIMIT_BYTES * record.limits.length;
  for (const list of record.allowedIps) bytes += addressListBytes(list);
  return { record, tags: record.derivation.ids, bytes };
}
