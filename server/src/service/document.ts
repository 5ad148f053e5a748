import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../../engine/src/clock/clock.ts";
import { type DocumentOptions, documentSteps } from "../platform/rpc/document.ts";
import { exampleShift, shiftExample } from "../platform/vocabulary/examples.ts";
import { namespaces, operations } from "./operations.ts";

/**
 * The OpenAPI document that the service publishes, as JSON text. Its examples happen in the last two hours, so that a
 * reader can send them as they are: counts per minute are deleted after some days. The text changes once an hour.
 */
export function publishedDocument(options: Pick<DocumentOptions, "version" | "publicUrl">, clock: Pick<Clock, "now">) {
  const version = () => exampleShift(clock.now());
  return {
    /** Changes with the text. */
    version,
    /** The present text. Making it takes CPU time, which is spread over many iterations of the event loop. */
    async text(): Promise<string> {
      const shift = version();
      const shifted = operations.map((operation) => ({
        ...operation,
        declaration: { ...operation.declaration, examples: shiftExample(operation.declaration.examples, shift) },
      }));
      const steps = documentSteps({ ...options, operations: shifted, namespaces });
      for (;;) {
        const { done, value } = steps.next();
        if (done) return JSON.stringify(value);
        await setImmediate();
      }
    },
  };
}
