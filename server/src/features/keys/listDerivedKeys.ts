import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleDerivedKey, exampleKey } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { KeyId } from "../../platform/vocabulary/schema.ts";
import { DerivedKeyOutput, toDerivedKeyOutput } from "./derived-record.ts";
import { DerivedKeyReader } from "./statements/derived-keys.ts";
import { KeyReader } from "./statements/keys.ts";

const LIST = "keys.listDerivedKeys";

export const listDerivedKeys = pagedQuery(LIST, {
  summary: "List derived keys",
  description:
    "The keys that were derived from a key, directly or not, ordered by creation time. Those that have expired or were ended " +
    "are not in the list. With the id of a derived key: those that were derived from it.",
  permissions: ["apis.{apiId}.read_key"],
  input: z.strictObject({ keyId: KeyId, ...pageInput(LIST, 100) }),
  output: z.array(DerivedKeyOutput),
  problems: ["key_not_found"],
  examples: [
    { summary: "The first page", input: { keyId: exampleKey.keyId }, output: [exampleDerivedKey] },
    { summary: "A key that does not exist", input: { keyId: "key_IXIyFsB89IXl4uYc" }, problem: "key_not_found" },
  ],
}).handle(async ({ keyId, limit, cursor }, { store, principal, now, fail }) => {
  const derived = store.of(DerivedKeyReader);
  const topId = (await derived.find(keyId))?.top_id ?? keyId;
  const top = await store.of(KeyReader).find(topId);
  if (!top) return fail("key_not_found");
  principal.authorize(`apis.${top.api_id}.read_key`);
  const place = { from: placeOf(LIST, cursor), limit: limit + 1, now };
  return pageOf(LIST, await derived.page({ topId, ancestorId: keyId }, place), limit, toDerivedKeyOutput);
});
