import { type Instant, instantAt } from "../clock/clock.ts";
import { type AddressList, type AllowedAddresses, addressList, addressListBytes } from "../rules/address.ts";
import { hashVersions } from "../rules/imported-keys.ts";
import { compilePermissions, type Permissions } from "../rules/permissions.ts";
import type { Generations } from "./generations.ts";
import { parsedMembers } from "./parsed-members.ts";
import { CacheEntry, type LoadedRecord } from "./record-cache.ts";
import {
  identityRecord,
  type KeyBudget,
  type KeyConcurrency,
  type KeyLimit,
  type KeyRecord,
  keyConcurrency,
  keyLimit,
  members,
} from "./records.ts";
import type { DeletedKey, DirectoryKey } from "./stored.ts";

/** What many keys have in common. There is one object for all of them. */
interface KeyTraits {
  readonly isDeleted: boolean;
  readonly workspaceId: string;
  readonly workspaceEnabled: boolean;
  readonly apiId: string;
  readonly verifyRequirement: string;
  readonly enabled: boolean;
  readonly allowedIps: AllowedAddresses | null;
  readonly hasOwnAccess: boolean;
  readonly hasOwnDerivation: boolean;
  readonly permissions: Permissions;
  readonly hasBalance: boolean;
  readonly isUnused: boolean;
  /** The traits of such keys once they are used. */
  readonly used: KeyTraits | null;
  readonly isTokenPending: boolean;
  readonly planId: string | null;
  /** JSON members of an answer: those after `keyId`, and the last ones, each with a comma before it. */
  readonly firstMembers: string;
  readonly lastMembers: string;
  /** Generation slots of the API and the workspace. */
  readonly slots: readonly number[];
}

/** What most keys do not have. */
interface KeyExtras {
  readonly expiresAt: Instant | null;
  readonly identity: KeyRecord["identity"];
  readonly limits: readonly KeyLimit[];
  readonly budgets: readonly KeyBudget[];
  readonly concurrency: readonly KeyConcurrency[];
  /** JSON members of an answer between those of the traits, each with a comma before it: `meta`; `identity`, or nothing. */
  readonly metaMember: string;
  readonly identityMember: string;
  /** `identityMember` for a caller without a root key; the same string where nothing is left out. */
  readonly anonymousIdentityMember: string;
}

const NO_BUDGETS: readonly KeyBudget[] = [];
const NO_CONCURRENCY: readonly KeyConcurrency[] = [];

const NO_EXTRAS: KeyExtras = {
  expiresAt: null,
  identity: null,
  limits: [],
  budgets: NO_BUDGETS,
  concurrency: NO_CONCURRENCY,
  metaMember: ',"meta":{}',
  identityMember: "",
  anonymousIdentityMember: "",
};

/** Estimated memory in bytes. The test compares the estimates with the heap. */
const KEY_BYTES = 220;
const EXTRAS_BYTES = 200;
const LIMIT_BYTES = 420;
const CONCURRENCY_BYTES = 300;
/** A list of budgets, and each of them. */
const BUDGETS_BYTES = 100;
const BUDGET_BYTES = 40;
/** The generation slots of the budgets of a key. */
const SLOTS_BYTES = 50;
const TRAITS_BYTES = 700;
/** A permission is in a text, in the set, and in a string of its own. */
const PERMISSION_BYTES = 150;

/** Distinct values that are kept to find them again. Keys that each have values of their own gain nothing by more. */
const SHARED_MAX = 1_000;

/**
 * A key in its cache: record and entry are one object, and what many keys have in common is shared, because there are
 * millions of them. The members of its answers are put together when they are needed.
 */
class CachedKey extends CacheEntry<KeyRecord> implements KeyRecord {
  readonly keyId: string;
  readonly poolId: string;
  readonly bytes: number;
  #traits: KeyTraits;
  readonly #extras: KeyExtras;
  /** JSON; null if it has none. */
  readonly #name: string | null;
  #hashSlot = 0;
  #keySlot = 0;
  #poolSlot = 0;
  #otherSlots: readonly number[] | null = null;

  constructor(
    { id, pool_id, name }: Pick<DirectoryKey, "id" | "pool_id" | "name">,
    traits: KeyTraits,
    extras: KeyExtras,
    bytes: number,
  ) {
    super();
    this.keyId = id;
    this.poolId = pool_id;
    this.bytes = bytes;
    this.#traits = traits;
    this.#extras = extras;
    this.#name = name === null ? null : JSON.stringify(name);
  }

  /** @param slots of the hash, the key, its API and workspace, its pool, and further ones. */
  override setSlots(slots: readonly number[]): void {
    const [hash = 0, key = 0, , , pool = key] = slots;
    this.#hashSlot = hash;
    this.#keySlot = key;
    this.#poolSlot = pool;
    this.#otherSlots = slots.length > 5 ? slots.slice(5) : null;
  }

  override areSlotsUnchanged(generations: Generations, generation: number): boolean {
    return (
      generations.areUnchanged(this.#traits.slots, generation) &&
      generations.isUnchanged(this.#hashSlot, generation) &&
      generations.isUnchanged(this.#keySlot, generation) &&
      generations.isUnchanged(this.#poolSlot, generation) &&
      (this.#otherSlots === null || generations.areUnchanged(this.#otherSlots, generation))
    );
  }

  get record(): KeyRecord {
    return this;
  }

  get isDeleted(): boolean {
    return this.#traits.isDeleted;
  }

  get workspaceId(): string {
    return this.#traits.workspaceId;
  }

  get workspaceEnabled(): boolean {
    return this.#traits.workspaceEnabled;
  }

  get apiId(): string {
    return this.#traits.apiId;
  }

  get verifyRequirement(): string {
    return this.#traits.verifyRequirement;
  }

  get enabled(): boolean {
    return this.#traits.enabled;
  }

  get allowedIps(): AllowedAddresses | null {
    return this.#traits.allowedIps;
  }

  get hasOwnAccess(): boolean {
    return this.#traits.hasOwnAccess;
  }

  get hasOwnDerivation(): boolean {
    return this.#traits.hasOwnDerivation;
  }

  get permissions(): Permissions {
    return this.#traits.permissions;
  }

  get hasBalance(): boolean {
    return this.#traits.hasBalance;
  }

  get isUnused(): boolean {
    return this.#traits.isUnused;
  }

  markUsed(): () => void {
    const traits = this.#traits;
    this.#traits = traits.used ?? traits;
    return () => {
      this.#traits = traits;
    };
  }

  get isTokenPending(): boolean {
    return this.#traits.isTokenPending;
  }

  get expiresAt(): Instant | null {
    return this.#extras.expiresAt;
  }

  get identity(): KeyRecord["identity"] {
    return this.#extras.identity;
  }

  get limits(): readonly KeyLimit[] {
    return this.#extras.limits;
  }

  get budgets(): readonly KeyBudget[] {
    return this.#extras.budgets;
  }

  get concurrency(): readonly KeyConcurrency[] {
    return this.#extras.concurrency;
  }

  get planId(): string | null {
    return this.#traits.planId;
  }

  get members(): string {
    return this.membersOf(this, this.#traits.lastMembers);
  }

  get anonymousMembers(): string {
    return this.membersOf(this, null);
  }

  get grantMembers(): string {
    return this.#traits.lastMembers;
  }

  memberValues(seesAll: boolean): object {
    const { expiresAt, metaMember, identityMember, anonymousIdentityMember } = this.#extras;
    const { apiId, enabled, lastMembers } = this.#traits;
    const values: Record<string, unknown> = { keyId: this.keyId, apiId, enabled, meta: {} };
    if (metaMember !== NO_EXTRAS.metaMember) Object.assign(values, parsedMembers(metaMember));
    if (expiresAt !== null) values.expires = expiresAt;
    const identity = seesAll ? identityMember : anonymousIdentityMember;
    if (identity !== "") Object.assign(values, parsedMembers(identity));
    if (!seesAll) return values;
    if (this.#name !== null) values.name = JSON.parse(this.#name);
    return lastMembers === "" ? values : Object.assign(values, parsedMembers(lastMembers));
  }

  membersOf({ keyId, expiresAt }: Pick<KeyRecord, "keyId" | "expiresAt">, grantMembers: string | null): string {
    const { metaMember, identityMember, anonymousIdentityMember } = this.#extras;
    const expires = expiresAt === null ? "" : `,"expires":${expiresAt}`;
    const first = `"keyId":"${keyId}"${this.#traits.firstMembers}${metaMember}${expires}`;
    if (grantMembers === null) return first + anonymousIdentityMember;
    const name = this.#name === null ? "" : `,"name":${this.#name}`;
    return `${first}${identityMember}${name}${grantMembers}`;
  }

  get top(): KeyRecord {
    return this;
  }

  get derivation(): null {
    return null;
  }
}

/** Objects that many keys have in common, by what they are made of. */
class Shared<T> {
  readonly #known = new Map<string, T>();

  /** The object that was made of the same values, or a new one, with the length of its name if it is new. */
  of(values: object, make: () => T): [shared: T, nameBytes: number] {
    const name = JSON.stringify(Object.values(values));
    const known = this.#known.get(name);
    if (known !== undefined) return [known, 0];
    if (this.#known.size >= SHARED_MAX) this.#known.clear();
    const made = make();
    this.#known.set(name, made);
    return [made, textBytes(name)];
  }
}

/** Makes the records of keys. Those of one table share what they have in common. */
export class KeyRecords {
  readonly #generations: Generations;
  readonly #traits = new Shared<KeyTraits>();
  readonly #budgets = new Shared<readonly KeyBudget[]>();
  readonly #addressLists = new Shared<AddressList | null>();

  constructor(generations: Generations) {
    this.#generations = generations;
  }

  of(key: DirectoryKey): LoadedRecord<KeyRecord> {
    const { id, api_id, workspace_id, pool_id, identity, meta } = key;
    const [budgets, bytesOfBudgets] = this.#budgetsOf(key);
    const extras = extrasOf(key, budgets);
    const shared = sharedPart(key);
    const [allowedIps, bytesOfAddresses] = this.#allowedIpsOf(key);
    const [traits, bytesOfTraits] = this.#shareTraits(shared, () => this.#traitsOf(shared, allowedIps));
    const bytes =
      bytesOfTraits +
      bytesOfAddresses +
      (bytesOfTraits > 0 ? PERMISSION_BYTES * key.permissions.length : 0) +
      bytesOfBudgets +
      KEY_BYTES +
      textBytes(key.hash, workspace_id, id, pool_id, key.name ?? "") +
      (extras === NO_EXTRAS
        ? 0
        : EXTRAS_BYTES +
          textBytes(
            meta === null ? "" : extras.metaMember,
            extras.identityMember,
            extras.anonymousIdentityMember === extras.identityMember ? "" : extras.anonymousIdentityMember,
            identity?.id ?? "",
            identity?.external_id ?? "",
          ) +
          LIMIT_BYTES * extras.limits.length +
          CONCURRENCY_BYTES * extras.concurrency.length);
    return {
      record: new CachedKey(key, traits, extras, bytes),
      tags: [
        id,
        api_id,
        workspace_id,
        pool_id,
        ...(identity ? [identity.id] : []),
        ...budgets.map(({ budgetId }) => budgetId),
      ],
      bytes,
    };
  }

  /** The record of a deleted key. It looks missing. */
  ofDeleted({ id, hash, workspace_id, api_id, identity_id }: DeletedKey): LoadedRecord<KeyRecord> {
    const [traits, bytesOfTraits] = this.#shareTraits([workspace_id, api_id], () => ({
      isDeleted: true,
      workspaceId: workspace_id,
      workspaceEnabled: false,
      apiId: api_id,
      verifyRequirement: verifyRequirement(api_id),
      enabled: false,
      allowedIps: null,
      hasOwnAccess: false,
      hasOwnDerivation: false,
      permissions: compilePermissions([]),
      hasBalance: false,
      isUnused: false,
      used: null,
      isTokenPending: false,
      planId: null,
      firstMembers: "",
      lastMembers: "",
      slots: this.#slotsOf(api_id, workspace_id),
    }));
    const extras =
      identity_id === null
        ? NO_EXTRAS
        : { ...NO_EXTRAS, identity: { id: identity_id, externalId: "", planId: null, hasBudget: false } };
    const bytes = bytesOfTraits + KEY_BYTES + EXTRAS_BYTES + textBytes(hash, workspace_id, id);
    return {
      record: new CachedKey({ id, pool_id: "", name: null }, traits, extras, bytes),
      tags: [id, api_id, workspace_id],
      bytes,
    };
  }

  /** The traits of these values, with their memory if they are new. */
  #shareTraits(values: object, make: () => KeyTraits): [traits: KeyTraits, bytes: number] {
    const [traits, nameBytes] = this.#traits.of(values, make);
    return [traits, nameBytes === 0 ? 0 : TRAITS_BYTES + 2 * nameBytes];
  }

  /** The budgets of a key, with their memory: what the key adds to it, and what they take themselves if they are new. */
  #budgetsOf({ budgets }: DirectoryKey): [budgets: readonly KeyBudget[], bytes: number] {
    if (budgets.length === 0) return [NO_BUDGETS, 0];
    const values = budgets.flatMap(({ id, name, unit }) => [id, name, unit]);
    const [shared, nameBytes] = this.#budgets.of(values, () =>
      budgets.map(({ id, name, unit }) => ({ budgetId: id, name, unit })),
    );
    const bytes = nameBytes === 0 ? 0 : BUDGETS_BYTES + BUDGET_BYTES * budgets.length + nameBytes;
    return [shared, SLOTS_BYTES + 8 * budgets.length + bytes];
  }

  /** The addresses that may use a key, with the memory of lists that are new. */
  #allowedIpsOf({ api_allowed_ips, allowed_ips }: DirectoryKey): [allowed: AllowedAddresses | null, bytes: number] {
    if (api_allowed_ips === null && allowed_ips === null) return [null, 0];
    let bytes = 0;
    const listOf = (cidrs: string | null) => {
      if (cidrs === null) return null;
      const [list, nameBytes] = this.#addressLists.of([cidrs], () => addressList(JSON.parse(cidrs)));
      if (nameBytes > 0) bytes += nameBytes + addressListBytes(list);
      return list;
    };
    return [{ ofApi: listOf(api_allowed_ips), ofKey: listOf(allowed_ips) }, bytes];
  }

  #traitsOf(key: SharedPart, allowedIps: AllowedAddresses | null): KeyTraits {
    const { api_id, workspace_id, enabled, roles, permissions, isUnused } = key;
    return {
      isDeleted: false,
      workspaceId: workspace_id,
      workspaceEnabled: key.workspace_enabled === 1,
      apiId: api_id,
      verifyRequirement: verifyRequirement(api_id),
      enabled: enabled === 1,
      allowedIps,
      hasOwnAccess: key.api_own_key_access === 1,
      hasOwnDerivation: key.api_own_key_derivation === 1,
      permissions: compilePermissions(permissions),
      hasBalance: key.hasBalance,
      isUnused,
      used: isUnused ? this.#traitsOf({ ...key, isUnused: false }, allowedIps) : null,
      isTokenPending: key.hash_version === hashVersions["prefixed-api-key"],
      planId: key.plan?.id ?? null,
      firstMembers: `,${members({ apiId: api_id, enabled: enabled === 1 })}`,
      lastMembers:
        (roles.length > 0 ? `,${members({ roles })}` : "") +
        (permissions.length > 0 ? `,${members({ permissions })}` : "") +
        (key.plan ? `,${members({ plan: key.plan.name })}` : ""),
      slots: this.#slotsOf(api_id, workspace_id),
    };
  }

  #slotsOf(apiId: string, workspaceId: string): readonly number[] {
    return [this.#generations.slot(apiId), this.#generations.slot(workspaceId)];
  }
}

/** The part of a key that its traits are made of. Keys share traits if it is equal, so traits must not depend on more. */
function sharedPart(key: DirectoryKey) {
  return {
    workspace_id: key.workspace_id,
    workspace_enabled: key.workspace_enabled,
    api_id: key.api_id,
    enabled: key.enabled,
    api_allowed_ips: key.api_allowed_ips,
    allowed_ips: key.allowed_ips,
    api_own_key_access: key.api_own_key_access,
    api_own_key_derivation: key.api_own_key_derivation,
    hasBalance: key.balance !== null && key.balance.plan_id === null,
    isUnused: key.is_unused === 1,
    hash_version: key.hash_version,
    roles: key.roles,
    permissions: key.permissions,
    plan: key.plan && { id: key.plan.id, name: key.plan.name },
  };
}

type SharedPart = ReturnType<typeof sharedPart>;

function extrasOf(key: DirectoryKey, budgets: readonly KeyBudget[]): KeyExtras {
  const { meta, expires_at, identity, ratelimits, pool_id, concurrency } = key;
  const isUnlimited = ratelimits.length === 0 && budgets.length === 0 && concurrency === null;
  if (meta === null && expires_at === null && identity === null && isUnlimited) return NO_EXTRAS;
  return {
    expiresAt: expires_at === null ? null : instantAt(expires_at),
    budgets,
    identity: identity && {
      id: identity.id,
      externalId: identity.external_id,
      planId: identity.plan?.id ?? null,
      hasBudget: identity.budget_id !== null,
    },
    limits: [
      ...ratelimits.map((limit) => keyLimit(limit, "key", pool_id)),
      ...(identity === null ? [] : identity.ratelimits.map((limit) => keyLimit(limit, "identity", identity.id))),
    ],
    concurrency:
      concurrency === null && (identity?.concurrency ?? null) === null
        ? NO_CONCURRENCY
        : [
            ...keyConcurrency(concurrency, "key", pool_id),
            ...(identity ? keyConcurrency(identity.concurrency, "identity", identity.id) : []),
          ],
    metaMember: meta === null ? NO_EXTRAS.metaMember : `,${members({ meta: JSON.parse(meta) })}`,
    ...identityMembers(identity),
  };
}

function identityMembers(
  identity: DirectoryKey["identity"],
): Pick<KeyExtras, "identityMember" | "anonymousIdentityMember"> {
  if (identity === null) return { identityMember: "", anonymousIdentityMember: "" };
  const textOf = (shown: object) => `,${members({ identity: shown })}`;
  const record = identityRecord(identity);
  const identityMember = textOf(record);
  if (!("concurrency" in record || "plan" in record))
    return { identityMember, anonymousIdentityMember: identityMember };
  // Only holds take slots, and a caller without a root key can neither make a hold nor learn of one. What a customer has bought is
  // not the business of his callers.
  const { concurrency: _, plan: __, ...shown } = record;
  return { identityMember, anonymousIdentityMember: textOf(shown) };
}

/** The root-key permission that is required to verify keys of an API. */
function verifyRequirement(apiId: string): string {
  return `apis.${apiId}.verify_key`;
}

/** Memory of texts: 24 bytes each, and one or two bytes per character. */
function textBytes(...texts: string[]): number {
  let bytes = 0;
  for (const text of texts) if (text !== "") bytes += 24 + (LATIN1.test(text) ? 1 : 2) * text.length;
  return bytes;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: all characters that take one byte.
const LATIN1 = /^[\x00-\xff]*$/;
