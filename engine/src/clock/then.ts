/** `next` of a value: at once, or after the promise of it. Calls that wait for nothing make no promise. */
export function then<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}
