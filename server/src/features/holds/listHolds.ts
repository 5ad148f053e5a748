import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleHold, exampleKey } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageUntil, placeOf } from "../../platform/vocabulary/paging.ts";
import { Identity, KeyId } from "../../platform/vocabulary/schema.ts";
import { BudgetId } from "../budgets/record.ts";
import { IdentityReader } from "../identities/statements.ts";
import { HoldOutput, HoldStateField, type ListedHold, ownerOfHold, type ShownHold, toHoldOutput } from "./record.ts";
import { HoldReader } from "./statements.ts";

const LIST = "holds.listHolds";

/** Holds that one page reads to find those that match. */
const SCANNED_MAX = 2_000;

export const listHolds = pagedQuery("holds.listHolds", {
  summary: "List holds",
  description:
    "Ordered by creation time. The root key must be allowed to read the keys of every hold on the page. With a filter, a " +
    `page is what matches among up to ${SCANNED_MAX} holds: it can have fewer entries than \`limit\`, or none, and yet ` +
    "not be the last one.",
  permissions: ["apis.{apiId}.read_key"],
  input: z.strictObject({
    ...pageInput(LIST, 100),
    keyId: KeyId.optional().describe("Only holds of this key."),
    budgetId: BudgetId.optional().describe("Only holds that took credits from this budget."),
    identity: Identity.optional().describe(
      "Only holds whose key had this identity when they were made: its id, or your external id.",
    ),
    state: HoldStateField.optional().describe("Only holds in this state."),
    order: z.enum(["asc", "desc"]).default("asc").describe("`asc`: the oldest first. `desc`: the newest first."),
  }),
  output: z.array(HoldOutput),
  problems: [],
  examples: [
    { summary: "The first page", input: {}, output: [exampleHold] },
    { summary: "The open holds of a key", input: { keyId: exampleKey.keyId, state: "open" }, output: [exampleHold] },
    { summary: "The newest first", input: { order: "desc" }, output: [exampleHold] },
  ],
}).handle(async ({ limit, cursor, keyId, budgetId, identity, state, order }, { store, principal }) => {
  // Open holds keep the id of an identity that was deleted.
  const identityId = identity && ((await store.of(IdentityReader).find(identity))?.id ?? identity);
  const isByOwner = budgetId !== undefined || identityId !== undefined;
  const scanned = isByOwner || keyId !== undefined || state !== undefined ? SCANNED_MAX : limit;
  const page = { order, from: placeOf(LIST, cursor), limit: scanned + 1 };
  const reader = store.of(HoldReader);
  const rows: readonly (ShownHold | ListedHold)[] = await (isByOwner ? reader.scanOwned(page) : reader.scan(page));
  const found = rows
    .slice(0, scanned)
    .filter((row) => (keyId ?? row.key_id) === row.key_id && (state ?? row.state) === row.state)
    .filter((row) => !("balances" in row) || isOf(row, { budgetId, identityId }));
  const holds = found.slice(0, limit);
  // The error names no id, so that it does not reveal a hold that the caller may not read.
  const readable = holds.every(({ api_id }) => principal.may(`apis.${api_id}.read_key`));
  if (!readable) principal.authorize("apis.*.read_key");
  // The next page begins with the first hold that matches and is not on this one, or with the first that was not looked at.
  const next = found[limit] ?? rows[scanned];
  return pageUntil(LIST, holds.map(toHoldOutput), next && { at: next.created_at, id: next.id });
});

/** Whether a hold takes credits from a budget and is one of an identity. Undefined: any. */
function isOf(hold: ListedHold, of: { budgetId: string | undefined; identityId: string | undefined }): boolean {
  const { balances, identityId } = ownerOfHold(hold);
  if (of.budgetId !== undefined && !balances.includes(of.budgetId)) return false;
  return of.identityId === undefined || of.identityId === identityId;
}
