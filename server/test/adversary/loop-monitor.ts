/**
 * Loaded into a service under test (`node --import`). On SIGUSR2 it writes one line of JSON to standard error with its
 * measurements since the last signal, and starts again.
 *
 * `stallCpuMs` is the CPU time of the main thread between two turns of its event loop. It measures the work of the
 * service alone; wall time would include other processes on the core.
 */
import { isMainThread } from "node:worker_threads";

const INTERVAL_MS = 2;

if (isMainThread) {
  let stallCpuMs = 0;
  let stallMs = 0;
  let rssPeak = 0;
  let cpu = process.threadCpuUsage();
  let at = performance.now();
  const sample = () => {
    const used = process.threadCpuUsage(cpu);
    stallCpuMs = Math.max(stallCpuMs, (used.user + used.system) / 1_000);
    cpu = process.threadCpuUsage();
    const now = performance.now();
    stallMs = Math.max(stallMs, now - at - INTERVAL_MS);
    at = now;
    rssPeak = Math.max(rssPeak, process.memoryUsage.rss());
  };
  setInterval(sample, INTERVAL_MS).unref();
  process.on("SIGUSR2", () => {
    sample();
    process.stderr.write(`${JSON.stringify({ loop: { stallCpuMs, stallMs, rssPeak } })}\n`);
    stallCpuMs = 0;
    stallMs = 0;
    rssPeak = 0;
  });
}
