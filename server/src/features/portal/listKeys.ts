import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { pageInput, pageUntil, placeOf } from "../../platform/vocabulary/paging.ts";
import { DerivedKeyReader } from "../keys/statements/derived-keys.ts";
import { KeyReader } from "../keys/statements/keys.ts";
import { callerWith, isOwn, mayAct } from "./caller.ts";
import { type Left, leftOf } from "./left.ts";
import { PORTAL } from "./portal-caller.ts";
import { OwnKeyOutput, toOwnKey } from "./record.ts";

const LIST = "portal.listKeys";

export const listKeys = pagedQuery("portal.listKeys", {
  audience: PORTAL,
  summary: "List the owner's keys, the newest first",
  description: "",
  permissions: ["apis.{apiId}.read_key", "budgets.*.read_budget"],
  input: z.strictObject(pageInput(LIST, 50)),
  output: z.array(OwnKeyOutput),
  problems: [],
  examples: [],
}).handle(async ({ limit, cursor }, { store, principal, now }) => {
  const caller = callerWith("list", principal);
  const { apiId, externalId } = caller;
  const place = { order: "desc", from: placeOf(LIST, cursor), limit } as const;
  const reader = store.of(KeyReader);
  const { keys, next } = await reader.page({ apiId, filter: { externalId }, now }, place);
  const own = keys.filter((key) => isOwn(key, caller));
  const credits = await reader.creditsOf(own, now);
  const left = mayAct("left", caller, principal) ? await leftOf(own, credits, store, now) : new Map<string, Left>();
  const derived = await store.of(DerivedKeyReader).countsOfTops(
    own.map(({ id }) => id),
    now,
  );
  return pageUntil(
    LIST,
    own.map((key) =>
      toOwnKey(key, { credits: credits.get(key.id), left: left.get(key.id), derived: derived.get(key.id) ?? 0 }),
    ),
    next,
  );
});
