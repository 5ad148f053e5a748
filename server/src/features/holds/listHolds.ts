import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleHold, exampleKey } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageUntil, placeOf } from "../../platform/vocabulary/paging.ts";
import { KeyId } from "../../platform/vocabulary/schema.ts";
import { HoldOutput, HoldStateField, toHoldOutput } from "./record.ts";
import { HoldReader } from "./statements.ts";

const LIST = "holds.listHolds";

/** Holds that one page reads to find those of a key or a state. */
const SCANNED_MAX = 2_000;

export const listHolds = pagedQuery("holds.listHolds", {
  summary: "List holds",
  description:
    "Ordered by creation time. The root key must be allowed to read the keys of every hold on the page. With `keyId` or " +
    `\`state\`, a page is what matches among up to ${SCANNED_MAX} holds: it can have fewer entries than \`limit\`, or none, ` +
    "and yet not be the last one.",
  permissions: ["apis.{apiId}.read_key"],
  input: z.strictObject({
    ...pageInput(LIST, 100),
    keyId: KeyId.optional().describe("Only holds of this key."),
    state: HoldStateField.optional().describe("Only holds in this state."),
  }),
  output: z.array(HoldOutput),
  problems: [],
  examples: [
    { summary: "The first page", input: {}, output: [exampleHold] },
    { summary: "The open holds of a key", input: { keyId: exampleKey.keyId, state: "open" }, output: [exampleHold] },
  ],
}).handle(async ({ limit, cursor, keyId, state }, { store, principal }) => {
  const scanned = keyId === undefined && state === undefined ? limit : SCANNED_MAX;
  const rows = await store.of(HoldReader).scan({ from: placeOf(LIST, cursor), limit: scanned + 1 });
  const found = rows
    .slice(0, scanned)
    .filter((row) => (keyId ?? row.key_id) === row.key_id && (state ?? row.state) === row.state);
  const holds = found.slice(0, limit);
  // The error names no id, so that it does not reveal a hold that the caller may not read.
  const readable = holds.every(({ api_id }) => principal.may(`apis.${api_id}.read_key`));
  if (!readable) principal.authorize("apis.*.read_key");
  // The next page begins with the first hold that matches and is not on this one, or with the first that was not looked at.
  const next = found[limit] ?? rows[scanned];
  return pageUntil(LIST, holds.map(toHoldOutput), next && { at: next.created_at, id: next.id });
});
