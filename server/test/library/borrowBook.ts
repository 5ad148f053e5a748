import { z } from "zod";
import { IdentityWriter } from "../../src/features/identities/statements.ts";
import { admitCall } from "../../src/platform/rpc/workspace-limit.ts";
import { LIBRARY, limitedMutation } from "./services.ts";

/** An operation with a quota. */
export const borrowBook = limitedMutation("library.borrowBook", {
  audience: LIBRARY,
  summary: "Borrow a book",
  description: "",
  permissions: ["identities.*.create_identity"],
  input: z.strictObject({ reader: z.string() }),
  output: z.strictObject({ identityId: z.string() }),
  problems: [],
  examples: [],
})
  .admit(({ session, workspaceId }, { limiter, booksPerMinute }) =>
    admitCall(
      { counter: `library\0${session!.id}`, limit: booksPerMinute, owner: workspaceId },
      "books",
      `A reader can borrow ${booksPerMinute} books per minute.`,
      limiter,
    ),
  )
  .handle(async ({ reader }, { store, principal, random, now, invalidate, audit }) => {
    principal.authorize("identities.*.create_identity");
    const identityId = await store.of(IdentityWriter).ensure(reader, random, now);
    invalidate.nothing("A new identity has no keys.");
    audit([identityId], { borrowed: true }, []);
    return { identityId };
  });
