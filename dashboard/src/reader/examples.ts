import type { DeclaredCommand } from "../../../cli/src/declared.ts";
import { exampleCommand } from "../../../cli/src/example-command.ts";
import type { OperationName } from "../api/client.ts";
import type { Schema } from "../api/schema.ts";
import { type Snippets, snippetsOf } from "../api/snippets.ts";

/** What the page of an operation knows of it, for its form. */
export interface OperationData {
  readonly command: Pick<DeclaredCommand, "operation" | "words" | "flags" | "deletes">;
  readonly schema: Schema;
  /** The body of its first example. */
  readonly input: unknown;
}

/** The languages of the examples: those of the clients, and the command line. */
export type ExampleLanguage = keyof Snippets | "CLI";

/** The names by which the languages are highlighted, in the order in which they are shown. */
export const highlightLanguages: Readonly<Record<ExampleLanguage, string>> = {
  curl: "bash",
  CLI: "bash",
  TypeScript: "typescript",
  Python: "python",
  Go: "go",
};

/** A call with this body in every language. */
export function examplesOf(
  command: OperationData["command"],
  input: unknown,
  url: string,
): Readonly<Record<ExampleLanguage, string>> {
  const { curl, ...snippets } = snippetsOf(command.operation as OperationName, input as object, url);
  return { curl, CLI: exampleCommand(command, input), ...snippets };
}
