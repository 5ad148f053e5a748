/**
 * `npm run generate` prints the files of `api/`, the commands of the command line and the methods of the clients
 * from the declared operations. They are committed, so that a diff shows every change of the API. `test/printed.test.ts` compares them with the code.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { printCommands } from "./generate/commands.ts";
import { printGo } from "./generate/go.ts";
import { printPython } from "./generate/python.ts";
import { printSdk } from "./generate/typescript.ts";
import { version } from "./src/platform/config/version.ts";
import { openApiDocument } from "./src/platform/rpc/document.ts";
import type { Operation } from "./src/platform/rpc/operation.ts";
import { problems } from "./src/platform/rpc/problems.ts";
import { namespaces, operations, replicaOperations } from "./src/service/operations.ts";

/** The folder of the printed files. */
export const folder = fileURLToPath(new URL("../api", import.meta.url));

/** The file with the commands of the operations. */
export const commandsFile = fileURLToPath(new URL("../cli/src/commands.json", import.meta.url));

/** The file with the types and methods of the TypeScript client. */
export const sdkFile = fileURLToPath(new URL("../sdk/src/operations.ts", import.meta.url));

/** The folder of the Python client with the files that are printed. */
export const pythonFolder = fileURLToPath(new URL("../clients/python/src/latchkey", import.meta.url));

/** The file with the types and methods of the Go client. */
export const goFile = fileURLToPath(new URL("../clients/go/operations.go", import.meta.url));

/** The text of each printed file of the folder, by its name. */
export function print(): Record<string, string> {
  return {
    "openapi.json": `${JSON.stringify(openApiDocument({ operations, namespaces, version, publicUrl: "" }), null, 2)}\n`,
    "operations.txt": printOperations(),
    "permissions.md": printPermissions(),
    "problems.md": printProblems(),
  };
}

/** One line for each operation: kind, name, permissions, input → output. */
function printOperations(): string {
  const lines = operations.map(({ kind, name, declaration }) => {
    const { permissions, input, output } = declaration;
    const [inputSchema, outputSchema] = [
      z.toJSONSchema(input, { io: "input" }),
      z.toJSONSchema(output, { io: "output" }),
    ];
    return `${kind.padEnd(8)}  ${name}  [${permissions.join(", ")}]  ${shape(inputSchema)} → ${shape(outputSchema)}`;
  });
  return `${lines.join("\n")}\n`;
}

type Shape = z.core.JSONSchema.BaseSchema;

/** The name of a shared schema, or the property names of an object. */
function shape(schema: Shape): string {
  if (schema.$ref) return schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1);
  if (typeof schema.id === "string") return schema.id;
  if (schema.type === "array") return `${shape(schema.items as Shape)}[]`;
  const required = new Set(schema.required);
  const names = Object.keys(schema.properties ?? {}).map((name) => (required.has(name) ? name : `${name}?`));
  return names.length === 0 ? "{}" : `{ ${names.join(", ")} }`;
}

function printPermissions(): string {
  const code = (text: string) => `\`${text}\``;
  return page(
    "Permissions",
    "The permissions that a root key may need for each operation. Which of them it needs depends on the call. Any segment\n" +
      "of a granted permission may be `*`. The permission `*` alone makes a root key an administrator.",
    ["Operation", "Permissions of the root key"],
    [...operations, ...replicaOperations].map(({ name, declaration }: Operation) => [
      code(name),
      declaration.permissions.map(code).join("<br>"),
    ]),
  );
}

function printProblems(): string {
  return page(
    "Problems",
    "The errors that a call can return. The service has a page about each at `/errors/<type>`.",
    ["Status", "Type", "Title", "Meaning", "Causes", "How to fix it"],
    Object.values(problems).map(({ status, type, title, meaning, causes, remedy }) => [
      String(status),
      `\`${type}\``,
      title,
      meaning,
      causes.join("<br>"),
      remedy.join("<br>"),
    ]),
  );
}

function page(title: string, text: string, head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return `${[`# ${title}`, "", text, "", line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n")}\n`;
}

if (import.meta.main) {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(print())) writeFileSync(join(folder, name), text);
  writeFileSync(commandsFile, printCommands());
  writeFileSync(sdkFile, printSdk());
  for (const [name, text] of Object.entries(printPython())) writeFileSync(join(pythonFolder, name), text);
  writeFileSync(goFile, printGo());
}
