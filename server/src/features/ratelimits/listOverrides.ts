import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleNamespace, exampleOverride } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { Namespace } from "./fields.ts";
import { OverrideOutput, toOverrideOutput } from "./record.ts";
import { NamespaceReader } from "./statements/namespaces.ts";
import { OverrideReader } from "./statements/overrides.ts";

const LIST = "ratelimits.listOverrides";

export const listOverrides = pagedQuery("ratelimits.listOverrides", {
  aliases: ["ratelimit.listOverrides"],
  listName: "overrides",
  summary: "List the overrides of a rate limit namespace",
  description: "Ordered by creation time.",
  permissions: ["ratelimits.{namespaceId}.read_override"],
  input: z.strictObject({ namespace: Namespace, ...pageInput(LIST, 50) }),
  output: z.strictObject({
    overrides: z.array(OverrideOutput),
    cursor: z.string().optional().describe("The same as `pagination.cursor`."),
  }),
  problems: ["namespace_not_found"],
  examples: [
    {
      summary: "The first page",
      input: { namespace: exampleNamespace.name },
      output: { overrides: [exampleOverride] },
    },
    { summary: "A namespace that does not exist", input: { namespace: "letters" }, problem: "namespace_not_found" },
  ],
}).handle(async ({ namespace: nameOrId, limit, cursor }, { store, principal, fail }) => {
  const namespace = await store.of(NamespaceReader).find(nameOrId);
  if (!namespace) return fail("namespace_not_found");
  principal.authorize(`ratelimits.${namespace.id}.read_override`);
  const rows = await store.of(OverrideReader).page(namespace.id, { from: placeOf(LIST, cursor), limit: limit + 1 });
  return pageOf(LIST, rows, limit, (row) => toOverrideOutput(namespace.name, row));
});
