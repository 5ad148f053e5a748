import type { Clock, Milliseconds } from "../clock/clock.ts";
import { type DocumentOptions, openApiDocument } from "../rpc/document.ts";
import { exampleShift, shiftExample } from "./examples.ts";
import { namespaces, operations } from "./index.ts";

/**
 * The OpenAPI document that the service publishes, as JSON text. Its examples happen in the last two hours, so that a
 * reader can send them as they are: counts per minute are deleted after some days. The text changes once an hour.
 */
export function publishedDocument(
  options: Pick<DocumentOptions, "version" | "publicUrl">,
  clock: Pick<Clock, "now">,
): () => string {
  let printed: { shift: Milliseconds; text: string } | undefined;
  return () => {
    const shift = exampleShift(clock.now());
    if (printed?.shift !== shift) {
      const shifted = operations.map((operation) => ({
        ...operation,
        declaration: { ...operation.declaration, examples: shiftExample(operation.declaration.examples, shift) },
      }));
      printed = { shift, text: JSON.stringify(openApiDocument({ ...options, operations: shifted, namespaces })) };
    }
    return printed.text;
  };
}
