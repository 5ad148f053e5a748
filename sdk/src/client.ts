import { type LatchkeyOptions, methodsOf } from "./call.ts";
import { type Held, type HeldInput, type HeldOptions, type OpenHold, withHold } from "./hold.ts";
import { Operations } from "./operations.ts";
import { checkNames, type Names } from "./option-names.ts";

export const CLIENT_NAMES: Names<LatchkeyOptions> = {
  url: true,
  rootKey: true,
  timeout: true,
  retries: true,
  retryCharges: true,
  retryWaitMax: true,
  circuitBreaker: true,
  answerBytesMax: true,
  onRequest: true,
  onResponse: true,
  fetch: true,
};

/**
 * Calls the operations of a service.
 *
 * ```ts
 * const latchkey = new Latchkey({ url: "http://127.0.0.1:3000", rootKey });
 * const { data } = await latchkey.keys.verifyKey({ key });
 * ```
 */
export class Latchkey extends Operations {
  /**
   * Without options, the address and the root key are read from the environment: `LATCHKEY_URL` and `LATCHKEY_ROOT_KEY`.
   *
   * @throws {TypeError} without an address, with a value that cannot be used, or with an option that does not exist. It names the option.
   */
  constructor(options: LatchkeyOptions = {}) {
    checkNames(options, CLIENT_NAMES);
    super(methodsOf(options));
  }

  /**
   * Verifies a key with a hold, does work, and settles the hold with what the work did cost: what `options.settle` returns,
   * or else what the work reported, or else the cost that was held. The hold is extended while the work lasts.
   *
   * If the work throws, what it reported is charged, and the hold is released if it reported nothing; the promise is
   * rejected with the same error. A settlement that fails is tried again with the same amounts for about half a minute.
   *
   * ```ts
   * const held = await latchkey.withHold({ key, credits: { cost: 1200 } }, async (hold) => {
   *   const answer = await model(question);
   *   hold.report({ credits: answer.tokens });
   *   return answer;
   * });
   * if (!held.valid) console.log("rejected:", held.verified.code);
   * ```
   *
   * @throws {TypeError} for a time that cannot be used, or an option that does not exist. It names the option.
   * @throws {LatchkeyError} as `keys.verifyKey`. The work was not done.
   */
  withHold<Result>(
    input: HeldInput,
    work: (hold: OpenHold) => Result | Promise<Result>,
    options: HeldOptions<Result> = {},
  ): Promise<Held<Result>> {
    return withHold(this.keys.verifyKey, this.holds, input, work, options);
  }
}
