/** What is known without waiting, without promises: a request that waits for nothing passes in the turn in which it came. */

/** A value, or a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>;

const AT_ONCE = Symbol.for("@latchkey/sdk at once");

/** Whether it is a promise, or something else that `await` would wait for. */
export function isPending<Value>(value: Awaitable<Value>): value is Promise<Value> {
  return value instanceof Promise || typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

/** As `then` of the engine, and for the promises of other libraries too, which the functions in options may return. */
export function then<Value, Next>(value: Awaitable<Value>, next: (value: Value) => Awaitable<Next>): Awaitable<Next> {
  return isPending(value) ? Promise.resolve(value).then(next) : next(value);
}

/** What `run` returns, or `failed` if it throws or rejects. */
export function attempt<Value>(
  run: () => Awaitable<Value>,
  failed: (error: unknown) => Awaitable<Value>,
): Awaitable<Value> {
  try {
    const value = run();
    return isPending(value) ? Promise.resolve(value).catch(failed) : value;
  } catch (error) {
    return failed(error);
  }
}

/** A method with a promise always, of a function without one when it need not wait. `atOnce` finds the function again. */
export function promising<Input, Own, Output>(
  call: (input: Input, own?: Own) => Awaitable<Output>,
): (input: Input, own?: Own) => Promise<Output> {
  return Object.assign(async (input: Input, own?: Own) => call(input, own), { [AT_ONCE]: call });
}

/** The function of `promising`; of another method, itself. */
export function atOnce<Input, Output>(method: (input: Input) => Promise<Output>): (input: Input) => Awaitable<Output> {
  return (method as { [AT_ONCE]?: typeof method })[AT_ONCE] ?? method;
}
