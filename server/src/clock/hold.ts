/** Keeps the process alive until the returned function is called: timers of a clock do not. */
export function holdProcess(): () => void {
  const timer = setInterval(() => {}, 2 ** 30);
  return () => clearInterval(timer);
}
