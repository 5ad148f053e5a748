import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { KeyId } from "../../platform/vocabulary/schema.ts";
import { DerivedKeyReader } from "../keys/statements/derived-keys.ts";
import { KeyReader } from "../keys/statements/keys.ts";
import { callerWith, isOwn } from "./caller.ts";
import { PORTAL } from "./portal-caller.ts";
import { OwnDerivedKeyOutput, toOwnDerivedKey } from "./record.ts";

const LIST = "portal.listDerivedKeys";

export const listDerivedKeys = pagedQuery("portal.listDerivedKeys", {
  audience: PORTAL,
  summary: "List what was derived of a key of the owner, on all levels, as long as it lives",
  description: "",
  permissions: ["apis.{apiId}.read_key"],
  input: z.strictObject({ keyId: KeyId, ...pageInput(LIST, 50) }),
  output: z.array(OwnDerivedKeyOutput),
  problems: ["key_not_found"],
  examples: [],
}).handle(async ({ keyId, limit, cursor }, { store, principal, now, fail }) => {
  const caller = callerWith("list", principal);
  const key = await store.of(KeyReader).find(keyId);
  if (!key || !isOwn(key, caller)) return fail("key_not_found");
  const place = { from: placeOf(LIST, cursor), limit: limit + 1, now };
  const rows = await store.of(DerivedKeyReader).page({ topId: keyId, ancestorId: keyId }, place);
  return pageOf(LIST, rows, limit, toOwnDerivedKey);
});
