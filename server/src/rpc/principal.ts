import type { Instant } from "../clock/clock.ts";
import { ADMINISTRATOR, compileGrants, type Grants, meets, meetsForSome } from "../rules/grants.ts";
import { Problem } from "./problems.ts";

/** A root key as far as it decides whether calls with it are answered. */
interface RootKeyState {
  readonly workspaceEnabled: boolean;
  readonly enabled: boolean;
  readonly expiresAt: number | null;
}

/** @throws {Problem} unless calls with the root key are answered. */
export function requireUsable<R extends RootKeyState>(rootKey: R | null, now: number): asserts rootKey is R {
  if (rootKey === null) throw new Problem("authentication_failed");
  if (!rootKey.workspaceEnabled) throw new Problem("workspace_disabled");
  if (!rootKey.enabled) throw new Problem("root_key_disabled");
  if (rootKey.expiresAt !== null && now >= rootKey.expiresAt) throw new Problem("root_key_expired");
}

/** Who calls: a root key that was recognised, and what it may do in its one workspace. */
export class Principal {
  readonly rootKeyId: string;
  readonly workspaceId: string;
  /** Calls a minute that the workspace may make, where calls are let in; null: any number. */
  readonly requestsPerMinute: number | null;
  readonly #grants: Grants;
  readonly #grantList: readonly string[];
  readonly #renewal: Renewal | undefined;

  constructor(plain: PlainPrincipal, requestsPerMinute: number | null = null, renewal?: Renewal) {
    this.rootKeyId = plain.rootKeyId;
    this.workspaceId = plain.workspaceId;
    this.requestsPerMinute = requestsPerMinute;
    this.#grantList = plain.grants;
    this.#grants = compileGrants(plain.grants);
    this.#renewal = renewal;
  }

  /** Whether its root key would be admitted now, as it was before. Looks only at what is in memory. */
  isCurrent(now: Instant): boolean {
    return this.#renewal === undefined || this.#renewal.isCurrent(now);
  }

  /**
   * The principal that the same root key gives now.
   *
   * @throws {Problem} or rejects with one when it is not admitted any more.
   */
  renew(now: Instant): Principal | Promise<Principal> {
    return this.#renewal === undefined ? this : this.#renewal.renew(now);
  }

  /** Whether the requirement, such as `apis.api_1.read_key` or `apis.*.create_api`, is met. */
  may(requirement: string): boolean {
    return meets(this.#grants, requirement);
  }

  /** @throws {Problem} `insufficient_permissions`, naming what is missing. */
  authorize(requirement: string): void {
    if (!this.may(requirement)) throw new Problem("insufficient_permissions", missingDetail(requirement));
  }

  /**
   * Rejects a principal without any grant for what an operation does, before it is known what the call is about.
   * `requirements` are those that the operation declares.
   *
   * @throws {Problem} `insufficient_permissions`.
   */
  authorizeSome(requirements: readonly string[]): void {
    if (requirements.length === 0 || requirements.some((one) => meetsForSome(this.#grants, one))) return;
    throw new Problem("insufficient_permissions", `Missing one of these permissions: '${requirements.join("' or '")}'`);
  }

  /**
   * Whoever makes a root key, or has power over one, must be allowed everything that it is.
   *
   * @throws {Problem} `insufficient_permissions`, naming the first that is missing.
   */
  authorizeGrants(grants: readonly string[]): void {
    for (const grant of grants) this.authorize(grant);
  }

  /** The same, in a form that can be copied to another thread. */
  plain(): PlainPrincipal {
    return { rootKeyId: this.rootKeyId, workspaceId: this.workspaceId, grants: this.#grantList };
  }
}

/** A principal that records which requirements it met, so that they can be asked again. */
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

/** How a principal is looked up again, for calls that wait. */
export interface Renewal {
  isCurrent(now: Instant): boolean;
  renew(now: Instant): Principal | Promise<Principal>;
}

export interface PlainPrincipal {
  rootKeyId: string;
  workspaceId: string;
  grants: readonly string[];
}

function missingDetail(requirement: string): string {
  const [resource, id, action] = requirement.split(".");
  return id === "*" || requirement === ADMINISTRATOR
    ? `Missing permission: '${requirement}'`
    : `Missing one of these permissions: '${resource}.*.${action}' or '${requirement}'`;
}
