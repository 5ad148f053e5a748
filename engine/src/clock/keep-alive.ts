/** Keeps the process alive until the returned function is called. The timers of a `Clock` do not keep it alive. */
export function keepProcessAlive(): () => void {
  const timer = setInterval(() => {}, 2 ** 30);
  return () => clearInterval(timer);
}
