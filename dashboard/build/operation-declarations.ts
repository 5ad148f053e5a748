import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";

const PREFIX = "virtual:operation/";
const DOCUMENT = fileURLToPath(new URL("../../api/openapi.json", import.meta.url));

/**
 * The module `virtual:operation/keys.createKey` has the JSON Schema of the input of `keys.createKey` as its default
 * export. So a form has the fields, texts and bounds that the operation declares, and a page loads those that it needs.
 */
export function operationDeclarations(): Plugin {
  return {
    name: "operation-declarations",
    resolveId: (id) => (id.startsWith(PREFIX) ? `\0${id}` : undefined),
    load(id) {
      if (!id.startsWith(`\0${PREFIX}`)) return undefined;
      const name = id.slice(PREFIX.length + 1);
      this.addWatchFile(DOCUMENT);
      const operation = JSON.parse(readFileSync(DOCUMENT, "utf8")).paths[`/v2/${name}`]?.post;
      if (!operation) throw new Error(`api/openapi.json has no operation ${name}: run "npm run generate".`);
      return `export default ${JSON.stringify(operation.requestBody.content["application/json"].schema)};`;
    },
  };
}
