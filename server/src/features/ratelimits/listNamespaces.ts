import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleNamespace } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { search } from "../../platform/vocabulary/schema.ts";
import { NamespaceReader } from "./statements/namespaces.ts";

const LIST = "ratelimits.listNamespaces";

export const listNamespaces = pagedQuery("ratelimits.listNamespaces", {
  aliases: ["ratelimit.listNamespaces"],
  summary: "List rate limit namespaces",
  description: "Ordered by creation time.",
  permissions: ["ratelimits.*.read_namespace"],
  input: z.strictObject({ ...pageInput(LIST, 100), search: search("names and ids").optional() }),
  output: z.array(
    z.strictObject({
      id: z.string(),
      name: z.string(),
      createdAt: z.int().describe("Time of its first use, Unix time in milliseconds."),
    }),
  ),
  problems: [],
  examples: [
    { summary: "The first page", input: {}, output: [exampleNamespace] },
    { summary: "Search by name", input: { search: "MAIL" }, output: [exampleNamespace] },
  ],
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal }) => {
  principal.authorize("ratelimits.*.read_namespace");
  const namespaces = store.of(NamespaceReader);
  const rows = await namespaces.page({ search: part.trim(), from: placeOf(LIST, cursor), limit: limit + 1 });
  return pageOf(LIST, rows, limit, ({ id, name, created_at }) => ({ id, name, createdAt: created_at }));
});
