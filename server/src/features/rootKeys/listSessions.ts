import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleRootKey } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageOf, placeOf } from "../../platform/vocabulary/paging.ts";
import { RootKeyId } from "../../platform/vocabulary/schema.ts";
import { SessionReader, sessionEnd } from "../dashboard/statements.ts";

const LIST = "rootKeys.listSessions";

const SessionOutput = z
  .strictObject({
    sessionId: z.string(),
    rootKeyId: z.string(),
    address: z.string().describe("The address that signed in."),
    userAgent: z.string().describe("The browser that signed in, as it names itself."),
    createdAt: z.int().describe("Unix time in milliseconds."),
    lastUsedAt: z.int().describe("Time of a recent call, within about a minute."),
    expiresAt: z.int().describe("When the session ends if it is not used again."),
  })
  .meta({ id: "Session", description: "A session of the dashboard, which stands for a root key." });

export const listSessions = pagedQuery("rootKeys.listSessions", {
  summary: "List the sessions of the dashboard",
  description:
    "Ordered by creation time. A session has the permissions of its root key, and ends when the root key is deleted, " +
    "disabled or expires. The calling root key must be allowed to read every root key on the page.",
  permissions: ["rootKeys.{rootKeyId}.read_root_key"],
  input: z.strictObject({ ...pageInput(LIST, 100), rootKeyId: RootKeyId.optional() }),
  output: z.array(SessionOutput),
  problems: [],
  examples: [
    {
      summary: "A root key that nobody has signed in with",
      input: { rootKeyId: exampleRootKey.rootKeyId },
      output: [],
    },
  ],
}).handle(async ({ limit, cursor, rootKeyId }, { store, principal, now }) => {
  const sessions = store.of(SessionReader);
  const rows = await sessions.page({ rootKeyId, now }, { from: placeOf(LIST, cursor), limit: limit + 1 });
  const page = pageOf(LIST, rows, limit, (row) => ({
    sessionId: row.id,
    rootKeyId: row.root_key_id,
    address: row.address,
    userAgent: row.user_agent,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: sessionEnd(row),
  }));
  // The error names no id, so that it does not reveal a root key that the caller may not read.
  const readable = [rootKeyId ?? "*", ...page.items.map((item) => item.rootKeyId)].every((id) =>
    principal.may(`rootKeys.${id}.read_root_key`),
  );
  if (!readable) principal.authorize("rootKeys.*.read_root_key");
  return page;
});
