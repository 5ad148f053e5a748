import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleRootKey } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { search } from "../../platform/vocabulary/schema.ts";
import { RootKeyOutput, toRootKeyOutput } from "./record.ts";
import { RootKeyReader } from "./statements.ts";

const LIST = "rootKeys.listRootKeys";

export const listRootKeys = pagedQuery("rootKeys.listRootKeys", {
  summary: "List root keys",
  description:
    "Ordered by creation time. Includes disabled and expired root keys, but not deleted ones. The calling root key " +
    "must be allowed to read every root key on the page.",
  permissions: ["rootKeys.{rootKeyId}.read_root_key"],
  input: z.strictObject({ ...pageInput(LIST, 100), search: search("names and ids").optional() }),
  output: z.array(RootKeyOutput),
  problems: [],
  examples: [{ summary: "Search", input: { search: "SIGN-UP", limit: 10 }, output: [exampleRootKey] }],
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal }) => {
  const rootKeys = store.of(RootKeyReader);
  const rows = await rootKeys.page({ search: part.trim(), from: placeOf(LIST, cursor), limit: limit + 1 });
  const page = pageOf(LIST, rows, limit, toRootKeyOutput);
  // The error names no id, so that it does not reveal a root key that the caller may not read.
  const readable = page.items.every(({ rootKeyId }) => principal.may(`rootKeys.${rootKeyId}.read_root_key`));
  if (!readable) principal.authorize("rootKeys.*.read_root_key");
  return page;
});
