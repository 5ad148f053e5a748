import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleRootKey } from "../../platform/vocabulary/examples.ts";
import { RootKeyId, text } from "../../platform/vocabulary/schema.ts";
import { SessionWriter } from "../dashboard/statements.ts";
import { RootKeyWriter } from "./statements.ts";

export const deleteSessions = mutation("rootKeys.deleteSessions", {
  summary: "End sessions of the dashboard",
  description:
    "Ends all sessions of a root key, or one of them: on its node at once, on others within a second. A session that has " +
    "ended already is no error.",
  permissions: ["rootKeys.{rootKeyId}.update_root_key"],
  input: z.strictObject({
    rootKeyId: RootKeyId,
    sessionId: text(1, 255).optional().describe("Only this session. Omitted: all sessions of the root key."),
  }),
  output: z.strictObject({ deleted: z.int().describe("Number of sessions that this call ended.") }),
  problems: ["root_key_not_found"],
  examples: [
    { summary: "All sessions", input: { rootKeyId: exampleRootKey.rootKeyId }, output: { deleted: 0 } },
    {
      summary: "A root key that does not exist",
      input: { rootKeyId: "rk_Vb4nYk0sUoQ2rTzE" },
      problem: "root_key_not_found",
    },
  ],
}).handle(async ({ rootKeyId, sessionId }, { store, principal, invalidate, audit, fail }) => {
  if (!(await store.of(RootKeyWriter).find(rootKeyId))) return fail("root_key_not_found");
  principal.authorize(`rootKeys.${rootKeyId}.update_root_key`);
  const deleted = await store.of(SessionWriter).delete(rootKeyId, sessionId);
  if (deleted.length === 0) invalidate.nothing("No session has ended.");
  for (const id of deleted) invalidate.session(id);
  audit([rootKeyId, ...deleted], { deleted: deleted.length }, []);
  return { deleted: deleted.length };
});
