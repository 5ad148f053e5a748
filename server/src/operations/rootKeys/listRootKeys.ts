import { z } from "zod";
import { pagedQuery } from "../../rpc/operation.ts";
import { exampleRootKey } from "../examples.ts";
import { pageInput, pageOf, placeOf } from "../paging.ts";
import { search } from "../schema.ts";
import { RootKeyOutput, rootKeyRecord } from "./record.ts";

const LIST = "rootKeys.listRootKeys";

export const listRootKeys = pagedQuery("rootKeys.listRootKeys", {
  summary: "List root keys",
  description:
    "In the order of their creation. Disabled and expired ones are listed, deleted ones are not. The root key of " +
    "the call must be allowed to read every one on the page.",
  permissions: ["rootKeys.{rootKeyId}.read_root_key"],
  input: z.strictObject({ ...pageInput(LIST, 100), search: search("names and ids").optional() }),
  output: z.array(RootKeyOutput),
  problems: [],
  examples: [{ summary: "Search", input: { search: "SIGN-UP", limit: 10 }, output: [exampleRootKey] }],
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal }) => {
  const rows = await store.rootKeys.page({ search: part.trim(), from: placeOf(LIST, cursor), limit: limit + 1 });
  // Without the id of the one that is missing: who may not read it is not told of it.
  const readable = rows.slice(0, limit).every(({ id }) => principal.may(`rootKeys.${id}.read_root_key`));
  if (!readable) principal.authorize("rootKeys.*.read_root_key");
  return pageOf(LIST, rows, limit, rootKeyRecord);
});
