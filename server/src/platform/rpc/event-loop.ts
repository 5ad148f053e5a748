/** Lets other work on the event loop run. */
export function yieldEventLoop(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
