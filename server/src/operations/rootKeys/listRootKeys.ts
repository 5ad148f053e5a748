import { z } from "zod";
import { pagedQuery } from "../../rpc/operation.ts";
import { exampleRootKey } from "../examples.ts";
import { pageInput, search } from "../schema.ts";
import { RootKeyOutput, rootKeyRecord } from "./record.ts";

export const listRootKeys = pagedQuery("rootKeys.listRootKeys", {
  summary: "List root keys",
  description:
    "In the order of their identifiers. Disabled and expired ones are listed, deleted ones are not. The root key of " +
    "the call must be allowed to read every one on the page.",
  permissions: ["rootKeys.{rootKeyId}.read_root_key"],
  input: z.strictObject({ ...pageInput(100), search: search("names and ids").optional() }),
  output: z.array(RootKeyOutput),
  problems: [],
  examples: [{ summary: "Search", input: { search: "SIGN-UP", limit: 10 }, output: [exampleRootKey] }],
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal }) => {
  const rows = await store.rootKeys.page({ search: part.trim(), cursor, limit: limit + 1 });
  const next = rows[limit];
  const page = rows.slice(0, limit);
  // Without the id of the one that is missing: who may not read it is not told of it.
  const readable = page.every(({ id }) => principal.may(`rootKeys.${id}.read_root_key`));
  if (!readable) principal.authorize("rootKeys.*.read_root_key");
  return { items: page.map(rootKeyRecord), hasMore: next !== undefined, ...(next && { cursor: next.id }) };
});
