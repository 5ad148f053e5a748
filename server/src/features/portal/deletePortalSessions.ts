import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleApi, exampleIdentity } from "../../platform/vocabulary/examples.ts";
import { ApiId, Identity, text } from "../../platform/vocabulary/schema.ts";
import { ApiWriter } from "../apis/statements.ts";
import { IdentityWriter } from "../identities/statements.ts";
import { PortalSessionWriter } from "./statements.ts";

export const deletePortalSessions = mutation("portal.deletePortalSessions", {
  summary: "End sessions of the portal",
  description:
    "Ends all sessions of an API, those of one identity, or one session: on its node at once, on others within a second. " +
    "A session that has ended already is no error.",
  narrowsAccess: true,
  permissions: ["apis.{apiId}.delete_portal_session"],
  input: z.strictObject({
    apiId: ApiId,
    identity: Identity.optional().describe("Only sessions of this identity: its id, or your external id."),
    sessionId: text(1, 255).optional().describe("Only this session."),
  }),
  output: z.strictObject({ deleted: z.int().describe("Number of sessions that this call ended.") }),
  problems: ["api_not_found"],
  examples: [
    {
      summary: "The sessions of one identity",
      input: { apiId: exampleApi.apiId, identity: exampleIdentity.externalId },
      output: { deleted: 0 },
    },
    { summary: "An API that does not exist", input: { apiId: "api_03yhWPSEYjF9lWCM" }, problem: "api_not_found" },
  ],
}).handle(async ({ apiId, identity, sessionId }, { store, principal, invalidate, audit, fail }) => {
  principal.authorize(`apis.${apiId}.delete_portal_session`);
  if (!(await store.of(ApiWriter).find(apiId))) return fail("api_not_found");
  // An identity that does not exist has no sessions.
  const identityId = identity && ((await store.of(IdentityWriter).find(identity))?.id ?? "");
  const deleted = await store.of(PortalSessionWriter).delete({ apiId, identityId, sessionId });
  if (sessionId === undefined) invalidate.portalSessionsOf(identityId || apiId);
  else invalidate.session(sessionId);
  const targets = [apiId, ...(identityId ? [identityId] : []), ...(deleted > 0 && sessionId ? [sessionId] : [])];
  audit(targets, { deleted }, []);
  return { deleted };
});
