import type { Clock, Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import { applyOwnChange, type CallDirectories } from "../../../../engine/src/directory/directories.ts";
import { rootKeyRecord, type SessionRecord } from "../../../../engine/src/directory/records.ts";
import type { DirectorySession } from "../../../../engine/src/directory/stored.ts";
import type { Limiter } from "../../../../engine/src/limits/limiter.ts";
import { addressNetwork } from "../../../../engine/src/rules/address.ts";
import { isDashboardToken } from "../../../../engine/src/rules/session-token.ts";
import type { Authenticator } from "../../platform/rpc/authenticate.ts";
import type { CallQueues } from "../../platform/rpc/call-queues.ts";
import type { RecordedChange } from "../../platform/rpc/execute.ts";
import { findSession, isCurrentSession, type SessionSource } from "../../platform/rpc/find-session.ts";
import { Principal, requireUsable } from "../../platform/rpc/principal.ts";
import { Problem, problemFrom } from "../../platform/rpc/problems.ts";
import type { Caller, CallerAuthentication } from "../../platform/rpc/server.ts";
import { admit } from "../../platform/rpc/workspace-limit.ts";
import { grantsOf } from "../../platform/store/access/root-key-lookup.ts";
import type { Store } from "../../platform/store/store.ts";
import { DASHBOARD, type SignedIn, type sessionProcedures } from "./procedures.ts";
import { sessionEnd } from "./statements.ts";

/** The precision of the time of the last use. */
const TOUCH_INTERVAL: Milliseconds = 60_000;

/** The token of a link: 32 bytes as base64url. Anything else is rejected without a look-up. */
const LINK = /^[A-Za-z0-9_-]{43}$/;

/** What a caller signs in with. */
export type Credential = { rootKey: string } | { link: string };

/** A caller that signs in. */
export interface SessionCaller {
  address: string;
  userAgent: string;
  /** Whether the request comes from this machine. */
  isLocal: boolean;
}

/** A session as `/dashboard/session` returns it. */
export interface SessionOutput {
  sessionId: string;
  workspace: { id: string; name: string };
  rootKey: { keyId: string; name: string; permissions: string[] };
  createdAt: number;
  expiresAt: number;
}

export interface DashboardSessionsOptions extends SessionSource {
  directories: CallDirectories;
  store: Store<ReturnType<typeof sessionProcedures>>;
  authenticator: Authenticator;
  queues: Pick<CallQueues, "writes">;
  limiter: Limiter;
}

/**
 * Sessions of the dashboard. A session stands for its root key. It ends when it or its root key is deleted, and when the
 * root key is disabled or expires: at once on the node of the change, within a second on others.
 */
export class DashboardSessions implements CallerAuthentication {
  readonly #options: DashboardSessionsOptions;
  readonly #clock: Clock;
  readonly #store: DashboardSessionsOptions["store"];
  readonly #authenticator: Authenticator;

  constructor(options: DashboardSessionsOptions) {
    const { clock, store, authenticator } = options;
    this.#options = options;
    this.#clock = clock;
    this.#store = store;
    this.#authenticator = authenticator;
  }

  /**
   * Creates a session with a new token.
   *
   * @throws {Problem} if the root key or the link is not valid; with `LookupsExhausted` after too many unknown ones.
   */
  async signIn(credential: Credential, caller: SessionCaller): Promise<{ token: string; session: SessionOutput }> {
    const now = this.#clock.now();
    const signedIn =
      "link" in credential
        ? await this.#signInByLink(credential.link, caller, now)
        : await this.#signInByRootKey(credential.rootKey, caller, now);
    if ("problem" in signedIn) throw problemFrom(signedIn.problem);
    const { token, stored, change } = signedIn;
    this.#apply(change);
    this.#authenticator.recordUse(stored.rootKey.id, now);
    return { token, session: sessionOutput(stored) };
  }

  async #signInByLink(link: string, { address, userAgent, isLocal }: SessionCaller, now: Instant): Promise<SignedIn> {
    if (!isLocal) throw new Problem("authentication_failed", LINK_IS_LOCAL);
    if (!LINK.test(link)) throw new Problem("authentication_failed", LINK_INVALID);
    const signedIn = await this.#options.directories.linkLookups.spend(addressNetwork(address), () =>
      this.#store.transact("signInByLink", { address, userAgent, now, linkHash: hashSecret(link) }),
    );
    if (signedIn === null) throw new Problem("authentication_failed", LINK_INVALID);
    return signedIn;
  }

  /** An unknown root key counts as in any other call: against the rate limit of look-ups of root keys. */
  async #signInByRootKey(rootKey: string, { address, userAgent }: SessionCaller, now: Instant): Promise<SignedIn> {
    const credentials = { authorization: `Bearer ${rootKey}` };
    const principal = await this.#authenticator.authenticate(credentials, address, now, this.#clock.monotonic());
    const { rootKeyId } = principal!;
    return this.#write(principal!, () => this.#store.transact("signIn", { address, userAgent, now, rootKeyId }));
  }

  /** The session of a token. @throws {Problem} if it has ended, or its root key may not make calls. */
  async find(token: string, address: string): Promise<SessionOutput> {
    return sessionOutput((await this.#use(token, address)).stored);
  }

  /** The same without using it: a request that waits does not make the session last longer. */
  async look(token: string, address: string): Promise<SessionOutput> {
    return sessionOutput((await this.#require(token, address)).stored);
  }

  /** The principal of the root key of a session. @throws {Problem} as `find` does. */
  async authenticate({ session, address }: Caller): Promise<Principal> {
    const token = session!;
    return this.#principalOf(await this.#use(token, address), token, address);
  }

  #principalOf(session: SessionRecord, token: string, address: string): Principal {
    const { sessions } = this.#options.directories;
    const record = rootKeyRecord(session.stored.rootKey).record!;
    const caller = { ...record, session: { kind: DASHBOARD, id: session.stored.session.id } };
    return new Principal(caller, record.requestsPerMinute, {
      isCurrent: (at) =>
        isCurrentSession(token, session, sessions) &&
        at < Math.min(endOf(session), record.expiresAt ?? Number.POSITIVE_INFINITY),
      // The session is not used again.
      renew: async () => this.#principalOf(await this.#require(token, address), token, address),
    });
  }

  /** Ends a session. A token of none is looked up within the rate limit, and causes no transaction. */
  async signOut(token: string, address: string): Promise<void> {
    const record = await this.#find(token, address);
    if (record === null) return;
    const caller = { workspaceId: record.stored.rootKey.workspace_id, requestsPerMinute: null };
    const change = await this.#write(caller, () =>
      this.#store.transact("signOut", { hash: hashSecret(token), now: this.#clock.now() }),
    );
    this.#apply(change);
  }

  async #use(token: string, address: string): Promise<SessionRecord> {
    const record = await this.#require(token, address);
    await this.#touch(record, this.#clock.now());
    return record;
  }

  /** @throws {Problem} if the session has ended, or its root key may not make calls. */
  async #require(token: string, address: string): Promise<SessionRecord> {
    const record = await this.#find(token, address);
    if (record === null) throw ended();
    requireUsable(rootKeyRecord(record.stored.rootKey).record, this.#clock.now());
    return record;
  }

  async #find(token: string, address: string): Promise<SessionRecord | null> {
    if (!isDashboardToken(token)) return null;
    const record = await findSession(token, address, this.#options.directories.sessions, this.#options);
    return record !== null && this.#clock.now() < endOf(record) ? record : null;
  }

  /** Extends the session. A failed write is ignored: a call repeats it after the session was read again. */
  async #touch(record: SessionRecord, now: Instant): Promise<void> {
    if (now - record.touchedAt < TOUCH_INTERVAL) return;
    record.touchedAt = now;
    const { id, root_key_id } = record.stored.session;
    this.#authenticator.recordUse(root_key_id, now);
    await this.#store.transact("touchSession", { sessionId: id, now }).catch(() => {});
  }

  /**
   * Runs a write as a call of this workspace, within its limits. `requestsPerMinute`: that of the workspace, if the write
   * counts as a request. Rejects with a `Problem` beyond the limits.
   */
  async #write<T>(
    { workspaceId, requestsPerMinute }: { workspaceId: string; requestsPerMinute: number | null },
    work: () => Promise<T>,
  ): Promise<T> {
    const { limiter, queues } = this.#options;
    const admission = requestsPerMinute === null ? undefined : admit({ workspaceId }, requestsPerMinute, limiter);
    const rejection = (await admission)?.rejection;
    if (rejection) throw rejection;
    return queues.writes.run(workspaceId, work);
  }

  /** Invalidates the sessions that a transaction has ended. */
  #apply(change: RecordedChange | null): void {
    if (change !== null) applyOwnChange(this.#options.directories, change);
  }
}

const LINK_IS_LOCAL =
  "The link works only in a browser on the machine of the service, without a proxy. Sign in with a root key instead.";
const LINK_INVALID =
  "The link has expired or was used before. Sign in with a root key, or create a link with `latchkey sign-in-link`.";

function ended(): Problem {
  return new Problem("authentication_failed", "The session has ended. Sign in again.");
}

function endOf({ stored, touchedAt }: SessionRecord): number {
  return sessionEnd({ expires_at: stored.session.expires_at, last_used_at: touchedAt });
}

function sessionOutput({ session, rootKey, workspaceName }: DirectorySession): SessionOutput {
  return {
    sessionId: session.id,
    workspace: { id: rootKey.workspace_id, name: workspaceName },
    rootKey: { keyId: rootKey.id, name: rootKey.name, permissions: grantsOf(rootKey) },
    createdAt: session.created_at,
    expiresAt: sessionEnd(session),
  };
}
