/**
 * Loaded by each process of a test run, before its files: gives all properties of fast-check one seed, so that a run of the
 * same commit tries the same examples. `PROPERTY_SEED` is another seed, or `new` for one per property, as fast-check chooses
 * it. What a new seed finds becomes a test with a name.
 */
import { isMainThread } from "node:worker_threads";

const { PROPERTY_SEED: seed = "20261128" } = process.env;
// Threads inherit the flags of their process. They run services, not properties.
if (isMainThread && seed !== "new") {
  if (!/^-?\d{1,9}$/.test(seed)) throw new Error(`PROPERTY_SEED is "${seed}". Set an integer or "new".`);
  const { configureGlobal } = await import("fast-check");
  configureGlobal({ seed: Number(seed) });
}
