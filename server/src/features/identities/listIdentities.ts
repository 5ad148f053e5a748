import { z } from "zod";
import { identityRecord } from "../../../../engine/src/directory/records.ts";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleIdentity, exampleVerification } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { search } from "../../platform/vocabulary/schema.ts";
import { IdentityOutput } from "../keys/record.ts";
import { IdentityReader } from "./statements.ts";

const LIST = "identities.listIdentities";

export const listIdentities = pagedQuery("identities.listIdentities", {
  summary: "List identities",
  description: "Ordered by creation time. The root key must be allowed to read every identity on the page.",
  permissions: ["identities.{identityId}.read_identity"],
  input: z.strictObject({ ...pageInput(LIST, 100), search: search("ids and external ids").optional() }),
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
}).handle(async ({ limit, cursor, search: part = "" }, { store, principal }) => {
  const identities = store.of(IdentityReader);
  const rows = await identities.page({ search: part.trim(), from: placeOf(LIST, cursor), limit: limit + 1 });
  const page = pageOf(LIST, rows, limit, identityRecord);
  // The error names no id, so that it does not reveal an identity that the caller may not read.
  const readable = page.items.every(({ id }) => principal.may(`identities.${id}.read_identity`));
  if (!readable) principal.authorize("identities.*.read_identity");
  return page;
});
