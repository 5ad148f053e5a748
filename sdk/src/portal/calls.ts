/** What the session may do, and how its page looks. */
export interface PortalSession {
  readonly actions: readonly string[];
  readonly keys: {
    readonly max: number;
    readonly prefixes: readonly string[] | null;
    /** Milliseconds. */
    readonly expiresInMax: number | null;
    readonly roles: readonly string[];
  };
  readonly page: {
    readonly name: string | null;
    readonly logoUrl: string | null;
    readonly color: string | null;
    readonly language: string | null;
    readonly returnUrl: string | null;
  };
  /** Milliseconds. */
  readonly expiresIn: number;
}

/** A key of the owner. Times are Unix times in milliseconds. */
export interface OwnKey {
  readonly keyId: string;
  readonly start: string;
  readonly enabled: boolean;
  readonly createdAt: number;
  readonly lastUsedAt?: number;
  readonly name?: string;
  readonly expires?: number;
  readonly leakedAt?: number;
  readonly roles?: readonly string[];
  readonly credits?: {
    readonly remaining: number;
    readonly refill?: {
      readonly interval: "hourly" | "daily" | "weekly" | "monthly" | "yearly";
      readonly amount: number;
    };
  };
  readonly ratelimits?: readonly { readonly name: string; readonly limit: number; readonly duration: number }[];
  /** What its credits and budgets have left together; absent: unlimited, or not shown. */
  readonly left?: { readonly remaining: number; readonly unit?: string };
  /** How many living keys were derived of it; absent: none. */
  readonly derivedKeys?: number;
}

/** A key that was derived of one of the owner. Times are Unix times in milliseconds. */
export interface OwnDerivedKey {
  readonly keyId: string;
  readonly start: string;
  readonly createdAt: number;
  readonly expires: number;
  readonly credits?: { readonly remaining: number };
  readonly ratelimits?: NonNullable<OwnKey["ratelimits"]>;
}

export interface Usage {
  readonly total: number;
  readonly valid: number;
  readonly series: readonly { readonly time: number; readonly total: number; readonly valid: number }[];
}

export interface NewKey {
  readonly keyId: string;
  readonly key: string;
}

/** Why a call failed: its status, the type of the problem and what it says, or 0 if there was no answer. */
export class CallError extends Error {
  readonly status: number;
  /** Such as `application/maximum_reached`; empty if the service did not answer. */
  readonly type: string;

  constructor(status: number, message: string, type = "") {
    super(message);
    this.status = status;
    this.type = type.replace(/^.*\/errors\//, "");
  }
}

/** The body of an answer. */
interface Answer {
  readonly data: unknown;
  readonly pagination?: { readonly cursor?: string };
  readonly error?: { readonly detail: string; readonly type: string };
}

const TIMEOUT_MS = 20_000;

/** Makes the calls of one session. `service` is the address of the service, ending with a slash. */
export class Calls {
  readonly #service: string;
  readonly #token: string;

  constructor(service: string, token: string) {
    this.#service = service;
    this.#token = token;
  }

  getSession(): Promise<PortalSession> {
    return this.#data("getSession");
  }

  async listKeys(cursor?: string): Promise<{ keys: OwnKey[]; cursor: string | undefined }> {
    const body = await this.#call("listKeys", { limit: 20, ...(cursor !== undefined && { cursor }) });
    return { keys: body.data as OwnKey[], cursor: body.pagination?.cursor };
  }

  async listDerivedKeys(
    keyId: string,
    cursor?: string,
  ): Promise<{ keys: OwnDerivedKey[]; cursor: string | undefined }> {
    const body = await this.#call("listDerivedKeys", { keyId, limit: 20, ...(cursor !== undefined && { cursor }) });
    return { keys: body.data as OwnDerivedKey[], cursor: body.pagination?.cursor };
  }

  createKey(input: { name?: string; prefix?: string; expiresIn?: number; roles?: string[] }): Promise<NewKey> {
    return this.#data("createKey", input);
  }

  rerollKey(keyId: string, expiration: number): Promise<NewKey> {
    return this.#data("rerollKey", { keyId, expiration });
  }

  renameKey(keyId: string, name: string | null): Promise<void> {
    return this.#data("renameKey", { keyId, name });
  }

  /** Deletes a key, or ends a derived one. */
  deleteKey(keyId: string): Promise<void> {
    return this.#data("deleteKey", { keyId });
  }

  getUsage(keyId: string): Promise<Usage> {
    return this.#data("getUsage", { keyId, days: 30 });
  }

  /** That of all keys together. */
  getTotalUsage(): Promise<Usage> {
    return this.#data("getTotalUsage", { days: 30 });
  }

  async #data<Data>(name: string, input: object = {}): Promise<Data> {
    return (await this.#call(name, input)).data as Data;
  }

  async #call(name: string, input: object): Promise<Answer> {
    let response: Response;
    try {
      response = await fetch(`${this.#service}portal/api/${name}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${this.#token}`, "Content-Type": "application/json" },
        body: JSON.stringify(input),
        credentials: "omit",
        referrerPolicy: "no-referrer",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
    } catch {
      throw new CallError(0, "The service does not answer");
    }
    const body = (await response.json().catch(() => ({}))) as Partial<Answer>;
    if (response.ok && body.data !== undefined) return body as Answer;
    throw new CallError(response.status, body.error?.detail ?? response.statusText, body.error?.type);
  }
}
