import { createHook } from "node:async_hooks";

// V8 forgets the hidden class of the entries of `process.nextTick` at a full garbage collection that finds none of them
// queued, and each one made after that costs seven times as much, for as long as the process lives. A service that has
// been idle once would pay a tenth of every verification for it (Node 24). One entry that is kept keeps the class.
let entry: object | undefined;
const hook = createHook({
  init(_id, type, _trigger, resource) {
    if (type === "TickObject") entry = resource;
  },
});
hook.enable();
process.nextTick(() => {});
hook.disable();

/** The entry that is kept; undefined where Node queues otherwise, and then nothing is gained or lost. */
export const keptTick = entry;
