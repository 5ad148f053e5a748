/**
 * Makes `instanceof` true for instances of every copy of a class: a program that loads the package as an ES module and as
 * CommonJS has two.
 */
// biome-ignore lint/suspicious/noExplicitAny: any class.
export function shareClass(shared: new (...args: any[]) => object, name: string): void {
  // Not `shared.name`, which minifiers change.
  const brand = Symbol.for(`@latchkey/sdk ${name}`);
  Object.defineProperty(shared.prototype, brand, { value: true });
  Object.defineProperty(shared, Symbol.hasInstance, {
    value(this: unknown, instance: unknown) {
      // A class that extends this one inherits the method.
      if (this !== shared) return Function.prototype[Symbol.hasInstance].call(this, instance);
      return Object(instance) === instance && brand in (instance as object);
    },
  });
}
