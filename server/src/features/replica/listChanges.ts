import { z } from "zod";
import { keyedTag } from "../../../../engine/src/replica/keyed-tags.ts";
import { integer, text } from "../../platform/vocabulary/schema.ts";
import { metered } from "../services.ts";
import { afterWait } from "./authority.ts";
import { EDGE_BODY_BYTES_MAX, OPEN_PERMISSION, openingCaller, Position } from "./fields.ts";

const WAIT_MAX = 300;

const EdgeInput = z.strictObject({
  id: text(21, 37, { regex: /^edge_[a-zA-Z0-9]{16,32}$/, says: "must be edge_ and 16 to 32 letters and digits" }),
  kind: z.enum(["process", "library"]),
  version: text(1, 32),
  name: text(1, 100).optional(),
  records: integer(0).describe("Records in its memory."),
  reports: integer(0).describe("Reports that wait for delivery."),
  leases: integer(0).optional().describe("Leases of limits that it holds."),
});

export const listChanges = metered("replica.listChanges", {
  summary: "List what changed for an edge",
  description:
    "Lists what an edge must not use any longer, as tags keyed by it. The answer waits for a change. `age` says how old the " +
    "answer's knowledge was when the question arrived.",
  repeatable: true,
  bodyBytesMax: EDGE_BODY_BYTES_MAX,
  permissions: [OPEN_PERMISSION],
  input: z.strictObject({
    tagKey: text(22, 64, { regex: /^[\w-]+$/, says: "must be base64url" }).describe(
      "The key of the tags, of the edge.",
    ),
    position: Position.optional().describe("The position of the last answer. Omitted: the present one."),
    wait: integer(0, WAIT_MAX).default(0).describe("Milliseconds to wait for a change."),
    edge: EdgeInput,
  }),
  output: z.strictObject({
    position: z.string(),
    age: z.int().describe("Milliseconds from this node's last read of the changes to the arrival of the question."),
    isLost: z.boolean().describe("Whether everything must be invalidated."),
    tags: z.array(z.string()),
    hasMore: z.boolean(),
    workspaceId: z.string(),
    allowsAnonymous: z.boolean().describe("Whether callers without a root key are answered in this workspace."),
  }),
  problems: [],
  examples: [],
}).handle(async ({ tagKey, position, wait, edge }, { replicas }, context) => {
  const caller = openingCaller(context);
  const { workspaceId, address, startedAt, clock } = context;
  replicas.edges.note(workspaceId, { ...edge, rootKeyId: caller.rootKeyId, address });
  const { tags, ...answer } = await replicas.stream.follow({ workspaceId, position, wait, arrivedAt: startedAt });
  // A root key that was revoked during the wait gets nothing.
  await afterWait(caller, clock.now());
  const keyed = tags.map((tag) => keyedTag(tagKey, tag));
  const allowsAnonymous = replicas.verifyAuth === "optional" && workspaceId === replicas.defaultWorkspaceId;
  return JSON.stringify({ ...answer, tags: keyed, workspaceId, allowsAnonymous });
});
