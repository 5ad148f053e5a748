import { setImmediate } from "node:timers/promises";
import type { AppProcedures } from "../src/service/procedures.ts";
import type { Claim, Procedures, Store } from "../src/store/store.ts";

/** Stands between the service and its database: `proceed` asks the database; what it returns is what the service hears. */
export type Interception = (name: string, proceed: () => Promise<unknown>) => Promise<unknown>;

/** The claim of a service that nobody rivals. */
export const grantedClaim: Claim = {
  settle: async () => {},
  mayCount: true,
  trouble: undefined,
  isMember: true,
  join: async () => {},
  release: async () => {},
};

/** A store that a test can hold up, take away, or break, one call at a time. */
export class InterceptedStore<P extends Procedures = AppProcedures> implements Store<P> {
  readonly dialect;
  /** Undefined: everything goes through. */
  interception: Interception | undefined;
  readonly #inner: Store<P>;
  #underWay = 0;

  constructor(inner: Store<P>) {
    this.#inner = inner;
    this.dialect = inner.dialect;
  }

  readonly read: Store<P>["read"] = (name, argument) =>
    this.#pass(name, () => this.#inner.read(name, argument)) as never;

  readonly transact: Store<P>["transact"] = (name, ...rest) =>
    this.#pass(name, () => this.#inner.transact(name, ...rest)) as never;

  /** Tests that open two services on one database are after what they know of each other, not after their limits. */
  async claim(): Promise<Claim> {
    return grantedClaim;
  }

  get failure(): string | undefined {
    return this.#inner.failure;
  }

  listen(wake: () => void): void {
    this.#inner.listen(wake);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** Resolves when the database has nothing left to answer and whoever waited for it has gone on. */
  async settled(): Promise<void> {
    for (let quiet = 0; quiet < 2; quiet++) {
      if (this.#underWay > 0) quiet = 0;
      await setImmediate();
    }
  }

  #pass(name: string, ask: () => Promise<unknown>): Promise<unknown> {
    const proceed = async () => {
      this.#underWay++;
      try {
        return await ask();
      } finally {
        this.#underWay--;
      }
    };
    return this.interception ? this.interception(name, proceed) : proceed();
  }
}
