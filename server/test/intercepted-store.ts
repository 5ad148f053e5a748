import { setImmediate } from "node:timers/promises";
import type { Claim, Procedures, Store, WriteHealth } from "../src/platform/store/store.ts";
import type { AppProcedures } from "../src/service/procedures.ts";

/** Runs in place of each call of the store: `proceed` makes the call, and the service gets the returned value. */
export type Interception = (name: string, proceed: () => Promise<unknown>) => Promise<unknown>;

/** The claim of a service that nothing contests. */
export const grantedClaim: Claim = {
  settle: async () => {},
  mayCount: true,
  trouble: undefined,
  isMember: true,
  join: async () => {},
  release: async () => {},
};

/** A store whose calls a test can delay, replace or fail. */
export class InterceptedStore<P extends Procedures = AppProcedures> implements Store<P> {
  readonly isEmbedded;
  readonly monthlyTables;
  /** Undefined: all calls proceed. */
  interception: Interception | undefined;
  writesInFlight = 0;
  /** Calls that the database has not answered. */
  callsUnderWay = 0;
  readonly #inner: Store<P>;
  /** Resolves when no call is under way. */
  #idle: PromiseWithResolvers<void> | undefined;

  constructor(inner: Store<P>) {
    this.#inner = inner;
    this.isEmbedded = inner.isEmbedded;
    this.monthlyTables = inner.monthlyTables;
  }

  readonly read: Store<P>["read"] = (name, argument) =>
    this.#pass(name, () => this.#inner.read(name, argument)) as never;

  readonly transact: Store<P>["transact"] = (name, ...rest) => {
    this.writesInFlight++;
    return this.#pass(name, () => this.#inner.transact(name, ...rest)).finally(() => this.writesInFlight--) as never;
  };

  /**
   * Holds the next call of a procedure back: `reached` resolves when it is made, and it proceeds after `release()`. All others
   * proceed. Replaces an interception.
   */
  holdNext(procedure: string): { readonly reached: Promise<void>; release(): void } {
    const held = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    this.interception = async (name, proceed) => {
      if (name !== procedure) return proceed();
      this.interception = undefined;
      held.resolve();
      await gate.promise;
      return proceed();
    };
    return { reached: held.promise, release: gate.resolve };
  }

  /** Tests with two services on one database test the changes between them, not claims. */
  async claim(): Promise<Claim> {
    return grantedClaim;
  }

  get writes(): WriteHealth | undefined {
    return this.#inner.writes;
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

  /** Resolves when all calls of the database have ended and their callers have continued. */
  async settled(): Promise<void> {
    let quiet = 0;
    while (this.callsUnderWay > 0 || quiet < 2) {
      if (this.callsUnderWay > 0) {
        quiet = 0;
        this.#idle ??= Promise.withResolvers();
        await this.#idle.promise;
      }
      await setImmediate();
      quiet++;
    }
  }

  #pass(name: string, ask: () => Promise<unknown>): Promise<unknown> {
    const proceed = async () => {
      this.callsUnderWay++;
      try {
        return await ask();
      } finally {
        if (--this.callsUnderWay === 0) {
          this.#idle?.resolve();
          this.#idle = undefined;
        }
      }
    };
    return this.interception ? this.interception(name, proceed) : proceed();
  }
}
