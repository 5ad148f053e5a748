import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleIdentity, exampleVerification } from "../../platform/vocabulary/examples.ts";
import { isInOrder, OTHER_ORDER, pageInput, pageUntil, placeOf } from "../../platform/vocabulary/paging.ts";
import { search } from "../../platform/vocabulary/schema.ts";
import { BudgetId } from "../budgets/record.ts";
import { IdentityOutput, toIdentityOutput } from "../keys/record.ts";
import { PlanReference } from "../plans/record.ts";
import { IdentityReader } from "./statements.ts";

const LIST = "identities.listIdentities";

export const listIdentities = pagedQuery("identities.listIdentities", {
  summary: "List identities",
  description:
    "Ordered by creation time, or by `orderBy`. The root key must be allowed to read every identity on the page.",
  permissions: ["identities.{identityId}.read_identity"],
  input: z.strictObject({
    ...pageInput(LIST, 100),
    search: search("ids and external ids").optional(),
    budgetId: BudgetId.optional().describe("Only identities with this budget."),
    plan: PlanReference.optional().describe("Only identities with the plan of this name or id."),
    orderBy: z.enum(["createdAt", "externalId"]).default("createdAt").describe("What the identities are in order by."),
    order: z.enum(["asc", "desc"]).default("asc").describe("`desc`: the newest, or the last external id, first."),
  }),
  output: z.array(IdentityOutput),
  problems: [],
  examples: [
    { summary: "Search", input: { search: "GLOB" }, output: [exampleIdentity] },
    {
      summary: "Search with a page size",
      input: { search: exampleVerification.identity.externalId, limit: 10 },
      output: [exampleVerification.identity],
    },
  ],
}).handle(async ({ limit, cursor, search: part = "", budgetId, plan, orderBy, order }, { store, principal, fail }) => {
  const identities = store.of(IdentityReader);
  const from = placeOf(LIST, cursor);
  const byExternalId = orderBy === "externalId";
  if (!isInOrder(from, orderBy)) return fail("invalid_input", OTHER_ORDER);
  const rows = await identities.page({
    search: part.trim(),
    budgetId,
    plan,
    from,
    limit: limit + 1,
    byExternalId,
    order,
  });
  const next = rows[limit];
  const items = rows.slice(0, limit).map((row) => toIdentityOutput(row));
  // The error names no id, so that it does not reveal an identity that the caller may not read.
  const readable = items.every(({ id }) => principal.may(`identities.${id}.read_identity`));
  if (!readable) principal.authorize("identities.*.read_identity");
  const place = byExternalId
    ? next && { at: 0, id: next.id, sorted: { by: orderBy, text: next.external_id } }
    : next && { at: next.created_at, id: next.id };
  return pageUntil(LIST, items, place);
});
