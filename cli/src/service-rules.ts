import type { InputError, MigrateKeysInput } from "../../sdk/src/index.ts";
import type { Document } from "./declaration/document.ts";

/** What the service checks in its input. Commands check it before the first call, so that a mistake changes nothing. */
export interface ServiceRules {
  /** The document of `latchkey apply`, or its errors. */
  readDocument(value: unknown): { readonly document: Document } | { readonly errors: readonly InputError[] };
  /** The errors for which `keys.migrateKeys` would reject this input; none if it is valid. */
  errorsOfImport(input: MigrateKeysInput): readonly InputError[];
  /** Numbers of keys of a valid input, in its order, that `keys.migrateKeys` imports in one transaction each if they are sent alone. */
  importedTogether(input: MigrateKeysInput): readonly number[];
}
