import printed from "./commands.json" with { type: "json" };

/** How the text of a flag becomes a member of the request body. */
export type FlagKind =
  /** The text itself. */
  | "text"
  /** A whole number. */
  | "integer"
  /** Unix time in milliseconds; also a date, or a time from now such as `+30d`. */
  | "time"
  /** Milliseconds; also a duration such as `60s`. */
  | "duration"
  | "boolean"
  /** Any JSON value. */
  | "json"
  /** An object of any members, as JSON or as `name=value`. The flag can be repeated. */
  | "members"
  /** A list of texts or of whole numbers. The flag can be repeated. */
  | "list"
  /** A list of objects, each as JSON or as `name=value,name=value`. The flag can be repeated. */
  | "entries";

/** One member of a request body, as a flag. */
export interface Flag {
  /** The path of the member in the body, such as `credits.remaining`; empty for a body that is a list. */
  readonly path: string;
  /** The name of the flag without dashes, such as `credits.refill.refill-day`. */
  readonly name: string;
  readonly kind: FlagKind;
  readonly help: string;
  /** The values that the member, or each item of the list, can have. */
  readonly values?: readonly string[];
  readonly nullable?: true;
  readonly required?: true;
  /** The members of the entries that are times or durations. */
  readonly members?: Readonly<Record<string, "time" | "duration">>;
  /** Whether the items of the list are whole numbers. */
  readonly integers?: true;
  /** Whether a comma separates the items of the list: no item of it can contain one. */
  readonly commas?: true;
}

/** One operation as a command. */
export interface DeclaredCommand {
  /** The operation, such as `keys.createKey`. */
  readonly operation: string;
  /** The words of the command, such as `keys create-key`. */
  readonly words: readonly [string, string];
  /** The words of its short form, such as `keys create`. */
  readonly short?: readonly [string, string];
  /** Whether it deletes something. */
  readonly deletes?: true;
  readonly summary: string;
  readonly description: string;
  /** Whether a call can be repeated without a second effect. `idempotent`: if it has an Idempotency-Key. */
  readonly repeatable: "always" | "idempotent" | "never";
  /** Whether a service can allow calls without a root key. */
  readonly withoutRootKey?: true;
  /** Whether it is a list in pages. */
  readonly paged?: true;
  /** The member of `data` with the list. Absent: `data` is the list. */
  readonly listName?: string;
  /** Whether the result is a list. */
  readonly list?: true;
  /** The members of the result, or of its entries if it is a list. */
  readonly members: readonly string[];
  readonly flags: readonly Flag[];
  /** The body of the first example. */
  readonly example: unknown;
}

/** A group of commands: the operations of one namespace. */
export interface DeclaredGroup {
  readonly word: string;
  readonly description: string;
  readonly commands: readonly DeclaredCommand[];
}

/** Every operation as a command. `npm run generate` writes it from the declarations. */
export const declaredGroups = printed as unknown as readonly DeclaredGroup[];

export const declaredCommands = declaredGroups.flatMap(({ commands }) => commands);

/** The command of an operation. */
export function declaredCommand(operation: string): DeclaredCommand {
  return declaredCommands.find((command) => command.operation === operation)!;
}
