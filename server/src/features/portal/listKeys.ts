import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { pageInput, pageUntil, placeOf } from "../../platform/vocabulary/paging.ts";
import { KeyReader } from "../keys/statements/keys.ts";
import { callerWith, isOwn } from "./caller.ts";
import { PORTAL } from "./portal-caller.ts";
import { OwnKeyOutput, toOwnKey } from "./record.ts";

const LIST = "portal.listKeys";

export const listKeys = pagedQuery("portal.listKeys", {
  audience: PORTAL,
  summary: "List the owner's keys, the newest first",
  description: "",
  permissions: ["apis.{apiId}.read_key"],
  input: z.strictObject(pageInput(LIST, 50)),
  output: z.array(OwnKeyOutput),
  problems: [],
  examples: [],
}).handle(async ({ limit, cursor }, { store, principal, now }) => {
  const caller = callerWith("list", principal);
  const { apiId, externalId } = caller;
  const place = { order: "desc", from: placeOf(LIST, cursor), limit } as const;
  const { keys, next } = await store.of(KeyReader).page({ apiId, filter: { externalId }, now }, place);
  return pageUntil(
    LIST,
    keys.filter((key) => isOwn(key, caller)).map((key) => toOwnKey(key, now)),
    next,
  );
});
