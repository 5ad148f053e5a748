import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleApi } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { search } from "../../platform/vocabulary/schema.ts";
import { ApiOutput, toApiOutput } from "./record.ts";
import { ApiReader } from "./statements.ts";

const LIST = "apis.listApis";

export const listApis = pagedQuery("apis.listApis", {
  summary: "List APIs",
  description: "Ordered by creation time.",
  permissions: ["apis.*.read_api"],
  input: z.strictObject({ ...pageInput(LIST, 100), search: search("names and ids").optional() }),
  output: z.array(ApiOutput),
  problems: [],
  examples: [
    { summary: "The first page", input: {}, output: [{ id: exampleApi.apiId, ...exampleApi }] },
    { summary: "Search", input: { search: "DOC" }, output: [{ id: exampleApi.apiId, ...exampleApi }] },
  ],
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal }) => {
  principal.authorize("apis.*.read_api");
  const rows = await store.of(ApiReader).page({ search: part.trim(), from: placeOf(LIST, cursor), limit: limit + 1 });
  return pageOf(LIST, rows, limit, toApiOutput);
});
