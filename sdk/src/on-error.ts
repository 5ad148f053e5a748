/** What was thrown, as an error. */
export function errorOf(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** The default of `onError`. */
export function print({ message }: Error): void {
  // biome-ignore lint/suspicious/noConsole: without a hook, nobody would learn of the error.
  console.error(message);
}

/** The hook, which throws nothing: what comes after it must happen anyway. */
export function safely(onError: (error: Error) => void): (error: Error) => void {
  return (error) => {
    try {
      onError(error);
    } catch (thrown) {
      print(error);
      print(errorOf(thrown));
    }
  };
}
