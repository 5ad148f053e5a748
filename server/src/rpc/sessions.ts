import type { Clock, Instant, Milliseconds } from "../clock/clock.ts";
import { hashSecret } from "../crypto/hash.ts";
import { LookupBudget } from "../directory/budget.ts";
import { rootKeyRecord } from "../directory/records.ts";
import { addressNetwork } from "../rules/address.ts";
import { grantsOf } from "../store/administration/root-keys.ts";
import { type StoredSession, sessionEnd } from "../store/administration/sessions.ts";
import type { Store } from "../store/store.ts";
import type { Authenticator } from "./authenticate.ts";
import { Principal, requireUsable } from "./principal.ts";
import { Problem, problemFrom } from "./problems.ts";
import type { SignedIn, sessionProcedures } from "./session-procedures.ts";

/** Sign-ins that fail, per second, divided among the addresses that try. */
const FAILED_PER_SECOND = 5;

/** Look-ups of tokens that do not exist, per second, divided in the same way. */
const UNKNOWN_PER_SECOND = 50;

/** The precision of the time of the last use. */
const TOUCH_INTERVAL: Milliseconds = 60_000;

/** A token: 32 bytes as base64url. Anything else is rejected without a look-up. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

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

export interface SessionsOptions {
  clock: Clock;
  store: Store<ReturnType<typeof sessionProcedures>>;
  authenticator: Authenticator;
  /**
   * Runs a write as a call of this workspace, within its limits. `requestsPerMinute`: that of the workspace, if the write
   * counts as a request. Rejects with a `Problem` beyond the limits.
   */
  write<T>(caller: { workspaceId: string; requestsPerMinute: number | null }, work: () => Promise<T>): Promise<T>;
}

/**
 * Sessions of the dashboard. A session stands for its root key, and every call reads both from the database: a session
 * ends on every node when it or its root key is deleted, and when the root key is disabled or expires.
 */
export class Sessions {
  readonly #clock: Clock;
  readonly #store: SessionsOptions["store"];
  readonly #authenticator: Authenticator;
  readonly #write: SessionsOptions["write"];
  readonly #failures: LookupBudget;
  readonly #unknown: LookupBudget;

  constructor({ clock, store, authenticator, write }: SessionsOptions) {
    this.#clock = clock;
    this.#store = store;
    this.#authenticator = authenticator;
    this.#write = write;
    this.#failures = new LookupBudget(clock, FAILED_PER_SECOND);
    this.#unknown = new LookupBudget(clock, UNKNOWN_PER_SECOND);
  }

  /**
   * Creates a session with a new token.
   *
   * @throws {Problem} if the root key or the link is not valid; with `LookupsExhausted` after too many failed attempts.
   */
  async signIn(credential: Credential, caller: SessionCaller): Promise<{ token: string; session: SessionOutput }> {
    let problem = new Problem("authentication_failed");
    const signedIn = await this.#failures.spend(addressNetwork(caller.address), async () => {
      try {
        return await this.#trySignIn(credential, caller);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        problem = error;
        return null;
      }
    });
    if (signedIn === null) throw problem;
    this.#authenticator.recordUse(signedIn.stored.rootKey.id, this.#clock.now());
    return { token: signedIn.token, session: sessionOutput(signedIn.stored) };
  }

  async #trySignIn(credential: Credential, { address, userAgent, isLocal }: SessionCaller) {
    const now = this.#clock.now();
    const given = { address, userAgent, now };
    let signedIn: SignedIn | null;
    if ("link" in credential) {
      if (!isLocal) throw new Problem("authentication_failed", LINK_IS_LOCAL);
      if (!TOKEN.test(credential.link)) throw new Problem("authentication_failed", LINK_INVALID);
      signedIn = await this.#store.transact("signInByLink", { ...given, linkHash: hashSecret(credential.link) });
      if (signedIn === null) throw new Problem("authentication_failed", LINK_INVALID);
    } else {
      const { rootKey } = credential;
      const principal = await this.#authenticator.authenticate(
        { authorization: `Bearer ${rootKey}` },
        address,
        now,
        this.#clock.monotonic(),
      );
      const { rootKeyId } = principal!;
      signedIn = await this.#write(principal!, () => this.#store.transact("signIn", { ...given, rootKeyId }));
    }
    if ("problem" in signedIn) throw problemFrom(signedIn.problem);
    return signedIn;
  }

  /** The session of a token. @throws {Problem} if it has ended, or its root key may not make calls. */
  async find(token: string, address: string): Promise<SessionOutput> {
    return sessionOutput(await this.#use(token, address));
  }

  /** The principal of the root key of a session. @throws {Problem} as `find` does. */
  async authenticate(token: string, address: string): Promise<Principal> {
    const { session, rootKey } = await this.#use(token, address);
    const record = rootKeyRecord(rootKey).record!;
    return new Principal({ ...record, sessionId: session.id }, record.requestsPerMinute);
  }

  /** Ends a session. A token of none is looked up within the budget, and causes no transaction. */
  async signOut(token: string, address: string): Promise<void> {
    const stored = await this.#find(token, address);
    if (stored === null) return;
    const caller = { workspaceId: stored.rootKey.workspace_id, requestsPerMinute: null };
    await this.#write(caller, () =>
      this.#store.transact("signOut", { hash: hashSecret(token), now: this.#clock.now() }),
    );
  }

  async #use(token: string, address: string): Promise<StoredSession> {
    const now = this.#clock.now();
    const stored = await this.#find(token, address);
    if (stored === null) throw ended();
    requireUsable(rootKeyRecord(stored.rootKey).record, now);
    await this.#touch(stored, now);
    return stored;
  }

  async #find(token: string, address: string): Promise<StoredSession | null> {
    if (!TOKEN.test(token)) return null;
    const lookup = { hash: hashSecret(token), now: this.#clock.now() };
    return this.#unknown.spend(
      addressNetwork(address),
      async () => (await this.#store.read("findSession", lookup)) ?? null,
    );
  }

  /** Extends the session. A failed write is ignored: the next call repeats it. */
  async #touch({ session }: StoredSession, now: Instant): Promise<void> {
    if (now - session.last_used_at < TOUCH_INTERVAL) return;
    this.#authenticator.recordUse(session.root_key_id, now);
    await this.#store.transact("touchSession", { sessionId: session.id, now }).catch(() => {});
  }
}

const LINK_IS_LOCAL =
  "The link works only in a browser on the machine of the service, without a proxy. Sign in with a root key instead.";
const LINK_INVALID =
  "The link has expired or was used before. Sign in with a root key, or create a link with `latchkey sign-in-link`.";

function ended(): Problem {
  return new Problem("authentication_failed", "The session has ended. Sign in again.");
}

function sessionOutput({ session, rootKey, workspaceName }: StoredSession): SessionOutput {
  return {
    sessionId: session.id,
    workspace: { id: rootKey.workspace_id, name: workspaceName },
    rootKey: { keyId: rootKey.id, name: rootKey.name, permissions: grantsOf(rootKey) },
    createdAt: session.created_at,
    expiresAt: sessionEnd(session),
  };
}
