import { type LatchkeyOptions, methodsOf } from "./call.ts";
import { Operations } from "./operations.ts";

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
   * @throws {TypeError} without an address, or with a value that cannot be used. It names the option.
   */
  constructor(options: LatchkeyOptions = {}) {
    super(methodsOf(options));
  }
}
