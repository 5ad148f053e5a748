import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleApi } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { ApiId, Identity } from "../../platform/vocabulary/schema.ts";
import { ApiReader } from "../apis/statements.ts";
import { IdentityReader } from "../identities/statements.ts";
import { PortalSessionOutput } from "./fields.ts";
import { PortalSessionReader } from "./statements.ts";
import type { PortalTerms } from "./terms.ts";

const LIST = "portal.listPortalSessions";

export const listPortalSessions = pagedQuery("portal.listPortalSessions", {
  summary: "List the sessions of the portal",
  description: "The sessions of an API that have not ended, ordered by creation time.",
  permissions: ["apis.{apiId}.read_portal_session"],
  input: z.strictObject({
    apiId: ApiId,
    identity: Identity.optional().describe("Only sessions of this identity: its id, or your external id."),
    ...pageInput(LIST, 100),
  }),
  output: z.array(PortalSessionOutput),
  problems: ["api_not_found"],
  examples: [
    { summary: "An API without sessions", input: { apiId: exampleApi.apiId }, output: [] },
    { summary: "An API that does not exist", input: { apiId: "api_03yhWPSEYjF9lWCM" }, problem: "api_not_found" },
  ],
}).handle(async ({ apiId, identity, limit, cursor }, { store, principal, now, fail }) => {
  principal.authorize(`apis.${apiId}.read_portal_session`);
  if (!(await store.of(ApiReader).find(apiId))) return fail("api_not_found");
  // An identity that does not exist has no sessions.
  const identityId = identity && ((await store.of(IdentityReader).find(identity))?.id ?? "");
  const place = { from: placeOf(LIST, cursor), limit: limit + 1 };
  const rows = await store.of(PortalSessionReader).page({ apiId, identityId, now }, place);
  return pageOf(LIST, rows, limit, (row) => ({
    sessionId: row.id,
    rootKeyId: row.root_key_id,
    apiId: row.api_id,
    identityId: row.identity_id,
    externalId: row.external_id,
    actions: [...(JSON.parse(row.terms) as PortalTerms).actions],
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }));
});
