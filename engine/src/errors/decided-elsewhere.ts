/**
 * This thread, or this process, cannot decide a call alone. At most the request limit of the workspace has been charged,
 * and nothing was counted.
 *
 * `charge`: home may charge the key by its hash, together with others. `call`: the call must be passed on as it is.
 */
export class DecidedElsewhere extends Error {
  readonly by: "charge" | "call";

  constructor(by: "charge" | "call") {
    super("Another thread or process decides this call");
    this.name = "DecidedElsewhere";
    this.by = by;
  }
}

/** One error each, because many calls end with one, and a stack trace is expensive. */
const [byCharge, byCall] = [new DecidedElsewhere("charge"), new DecidedElsewhere("call")];

export function decideByCharge(): never {
  throw byCharge;
}

export function decideByCall(): never {
  throw byCall;
}
