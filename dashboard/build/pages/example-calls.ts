import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { declaredCommand } from "../../../cli/src/declared.ts";
import { EXAMPLE_URL } from "../../src/reader/example-url.ts";
import { examplesOf } from "../../src/reader/examples.ts";
import type { OpenApi } from "./reference.ts";

/** The path of a file of the repository. */
export const repository = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

/** Every example of every operation, in every language. For tests. */
export function exampleCalls() {
  const document: OpenApi = JSON.parse(readFileSync(repository("api/openapi.json"), "utf8"));
  return Object.values(document.paths).flatMap(({ post: { operationId: name, requestBody } }) =>
    Object.values(requestBody.content["application/json"].examples).map(({ value }) => ({
      name,
      value,
      examples: examplesOf(declaredCommand(name), value, EXAMPLE_URL),
    })),
  );
}
