import { createHook } from "node:async_hooks";

// A full garbage collection that finds no entry of `process.nextTick` in the queue drops the hidden class of these
// entries (V8, Node 24). From then on each new entry costs seven times as much, which adds a tenth to every verification
// until the process ends. One referenced entry prevents that.
let entry: object | undefined;
const hook = createHook({
  init(_id, type, _trigger, resource) {
    if (type === "TickObject") entry = resource;
  },
});
hook.enable();
process.nextTick(() => {});
hook.disable();

/** The referenced entry; undefined if a version of Node queues differently, which does no harm. */
export const referencedTick = entry;
