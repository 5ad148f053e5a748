import type { Instant } from "../../../../engine/src/clock/clock.ts";
import {
  ADMINISTRATOR,
  compileGrants,
  type Grants,
  grantedIds,
  meets,
  meetsForSome,
} from "../../../../engine/src/rules/grants.ts";
import { Problem } from "./problems.ts";

/** The members of a root key that decide whether it may make calls. */
interface RootKeyState {
  readonly workspaceEnabled: boolean;
  readonly enabled: boolean;
  readonly expiresAt: number | null;
  readonly workspaceId?: string;
}

/** @throws {Problem} unless the root key may make calls. */
export function requireUsable<R extends RootKeyState>(rootKey: R | null, now: number): asserts rootKey is R {
  if (rootKey === null) throw new Problem("authentication_failed");
  const { workspaceId, workspaceEnabled, enabled, expiresAt } = rootKey;
  const about = { workspaceId };
  if (!workspaceEnabled) throw new Problem("workspace_disabled", undefined, about);
  if (!enabled) throw new Problem("root_key_disabled", undefined, about);
  if (expiresAt !== null && now >= expiresAt) throw new Problem("root_key_expired", undefined, about);
}

/** A session that makes calls for a root key, with all of its permissions or some. A kind may have further members. */
export interface CallerSession {
  /** The kind of session, which says how a transaction reads it. */
  readonly kind: string;
  readonly id: string;
  /** It calls only the operations with this audience. Absent: all operations without one. */
  readonly audience?: string;
}

/** An authenticated root key with its grants in its workspace. */
export class Principal {
  readonly rootKeyId: string;
  readonly workspaceId: string;
  /** The session that makes the call; undefined: the caller sent the root key. */
  readonly session: CallerSession | undefined;
  /** Limit of the workspace, in calls per minute; null: no limit. */
  readonly requestsPerMinute: number | null;
  /** When the authenticator last recorded a use. */
  usedAt = 0;
  readonly #grants: Grants;
  readonly #grantList: readonly string[];
  readonly #renewal: Renewal | undefined;

  constructor(plain: PlainPrincipal, requestsPerMinute: number | null = null, renewal?: Renewal) {
    this.rootKeyId = plain.rootKeyId;
    this.workspaceId = plain.workspaceId;
    this.session = plain.session;
    this.requestsPerMinute = requestsPerMinute;
    this.#grantList = plain.grants;
    this.#grants = compileGrants(plain.grants);
    this.#renewal = renewal;
  }

  /** That of the root key, if the caller sent it. */
  get rootKeyHash(): string | undefined {
    return this.#renewal?.rootKeyHash;
  }

  /** Whether the cached record of the root key or of the session is unchanged and not expired. */
  isCurrent(now: Instant): boolean {
    return this.#renewal === undefined || this.#renewal.isCurrent(now);
  }

  /**
   * The principal of the same root key or session now.
   *
   * @throws {Problem} or rejects with one if the root key may no longer make calls, or the session has ended.
   */
  renew(now: Instant): Principal | Promise<Principal> {
    return this.#renewal === undefined ? this : this.#renewal.renew(now);
  }

  /** The principal as it is now: this one while it is current, otherwise as `renew`. */
  atPresent(now: Instant): Principal | Promise<Principal> {
    return this.isCurrent(now) ? this : this.renew(now);
  }

  /**
   * The caller after a wait: this one, unless what it may has changed. Its record is read again for other reasons too, such as a
   * change of the workspace, and then what was decided for it stays right.
   *
   * @throws {Problem} or rejects with one if the root key may no longer make calls, or the session has ended.
   */
  async renewIfChanged(now: Instant): Promise<Principal> {
    const renewed = await this.atPresent(now);
    const [before, after] = [this.#grantList, renewed.#grantList];
    const isSame = before.length === after.length && before.every((grant, i) => grant === after[i]);
    return isSame ? this : renewed;
  }

  /** Whether the requirement, such as `apis.api_1.read_key` or `apis.*.create_api`, is met. */
  may(requirement: string): boolean {
    return meets(this.#grants, requirement);
  }

  /** Whether the action of the requirement is allowed on at least one resource. */
  maySome(requirement: string): boolean {
    return meetsForSome(this.#grants, requirement);
  }

  /** The ids of a resource type for which the action is granted; undefined: all of them. */
  grantedIds(resource: string, action: string): string[] | undefined {
    return grantedIds(this.#grants, resource, action);
  }

  /** @throws {Problem} `insufficient_permissions`, with the missing permission. */
  authorize(requirement: string): void {
    if (!this.may(requirement)) throw new Problem("insufficient_permissions", missingDetail(requirement));
  }

  /**
   * Rejects a principal without any grant for an operation, before the body of the call is read. `requirements` are the
   * permissions that the operation declares.
   *
   * @throws {Problem} `insufficient_permissions`.
   */
  authorizeSome(requirements: readonly string[]): void {
    if (requirements.length === 0 || requirements.some((one) => this.maySome(one))) return;
    throw new Problem("insufficient_permissions", `Missing one of these permissions: '${requirements.join("' or '")}'`);
  }

  /**
   * Requires every grant in the list. A caller cannot create or change a root key with more grants than its own.
   *
   * @throws {Problem} `insufficient_permissions`, with the first missing one.
   */
  authorizeGrants(grants: readonly string[]): void {
    for (const grant of grants) this.authorize(grant);
  }

  /** A copy for another thread. */
  plain(): PlainPrincipal {
    const { rootKeyId, workspaceId, session } = this;
    return {
      rootKeyId,
      workspaceId,
      grants: this.#grantList,
      ...(session !== undefined && { session }),
    };
  }
}

/** A principal that records the requirements it met, so that a replay can check them again. */
export class RecordingPrincipal extends Principal {
  readonly #met = new Set<string>();

  get met(): readonly string[] {
    return [...this.#met];
  }

  override may(requirement: string): boolean {
    const isMet = super.may(requirement);
    if (isMet) this.#met.add(requirement);
    return isMet;
  }
}

/** A caller by two root keys: it may do what both may, as long as both are valid. Calls are counted for the first. */
export class JointPrincipal extends Principal {
  readonly first: Principal;
  readonly second: Principal;

  constructor(first: Principal, second: Principal) {
    super(first.plain(), first.requestsPerMinute);
    this.first = first;
    this.second = second;
  }

  override isCurrent(now: Instant): boolean {
    return this.first.isCurrent(now) && this.second.isCurrent(now);
  }

  override async renew(now: Instant): Promise<Principal> {
    return new JointPrincipal(await this.first.renew(now), await this.second.renew(now));
  }

  override async renewIfChanged(now: Instant): Promise<Principal> {
    const [first, second] = [await this.first.renewIfChanged(now), await this.second.renewIfChanged(now)];
    return first === this.first && second === this.second ? this : new JointPrincipal(first, second);
  }

  override may(requirement: string): boolean {
    return this.first.may(requirement) && this.second.may(requirement);
  }

  override maySome(requirement: string): boolean {
    return this.first.maySome(requirement) && this.second.maySome(requirement);
  }
}

/** Looks up the principal again, for calls that waited. */
export interface Renewal {
  /** Absent: the caller sent the token of a session. */
  readonly rootKeyHash?: string;
  isCurrent(now: Instant): boolean;
  renew(now: Instant): Principal | Promise<Principal>;
}

export interface PlainPrincipal {
  rootKeyId: string;
  workspaceId: string;
  grants: readonly string[];
  session?: CallerSession;
}

function missingDetail(requirement: string): string {
  const [resource, id, action] = requirement.split(".");
  return id === "*" || requirement === ADMINISTRATOR
    ? `Missing permission: '${requirement}'`
    : `Missing one of these permissions: '${resource}.*.${action}' or '${requirement}'`;
}
