import { z } from "zod";
import { IdentityReader } from "../../src/features/identities/statements.ts";
import { analysis, LIBRARY } from "./services.ts";

/** An operation with a second step. */
export const countBooks = analysis("library.countBooks", {
  audience: LIBRARY,
  summary: "Count the books of a reader",
  description: "",
  permissions: ["identities.*.read_identity"],
  input: z.strictObject({ reader: z.string() }),
  output: z.strictObject({ reader: z.string(), books: z.int() }),
  problems: ["identity_not_found"],
  examples: [],
})
  .authorize(async ({ reader }, { store, principal, fail }) => {
    principal.authorize("identities.*.read_identity");
    const identity = await store.of(IdentityReader).find(reader);
    return identity ? { reader, identityId: identity.id } : fail("identity_not_found");
  })
  .answer(async ({ reader, identityId }, { shelf }) => ({ reader, books: await shelf.countBooks(identityId) }));
