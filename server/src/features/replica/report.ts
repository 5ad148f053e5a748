import { z } from "zod";
import { verificationCodes } from "../../../../engine/src/verification/request.ts";
import { ApiId, integer, KeyId, RootKeyId, text } from "../../platform/vocabulary/schema.ts";
import type { VerificationCell } from "../analytics/batch.ts";
import { levels } from "../analytics/levels.ts";
import { metered } from "../services.ts";
import { afterWait } from "./authority.ts";
import { EDGE_BODY_BYTES_MAX, OPEN_PERMISSION, openingCaller, openRequirement } from "./fields.ts";

const CELLS_MAX = 2_000;
const USES_MAX = 2_000;
/** How long an edge may keep counts. */
const PAST_MAX = levels.day;
const COUNT_MAX = 1_000_000_000;
/** An hour for each of them would be less. */
const LATENCY_MAX = 2 ** 52;
/** The bounds of the tags of a verification. */
const TAGS_MAX = 10;
const TAG_LENGTH_MAX = 128;
/** The longest list of tags as JSON: ten tags of 128 code points, each of which may be escaped. */
const TAGS_LENGTH_MAX = 16_000;

const TagSet = text(0, TAGS_LENGTH_MAX).check(({ value, issues }) => {
  if (value !== "" && !isTagSet(value)) {
    issues.push({ code: "custom", input: value, message: "must be empty, or a sorted JSON array of distinct tags" });
  }
});

const Cell = z.tuple([
  integer(0).describe("The start of the minute."),
  ApiId.nullable(),
  KeyId.nullable(),
  text(3, 255, { regex: /^[a-zA-Z0-9_]+$/, says: "must be an identifier" })
    .nullable()
    .describe("The identity."),
  TagSet,
  z.enum(verificationCodes),
  integer(1, COUNT_MAX).describe("The number of verifications."),
  integer(0, LATENCY_MAX).describe("The microseconds that they took together."),
]);

export const report = metered("replica.report", {
  summary: "Report what an edge counted",
  description:
    "Adds verifications that an edge decided to the analytics, each report once: a `sequence` that was reported before is " +
    "acknowledged, and not counted again. What cannot be counted is left out.",
  repeatable: true,
  bodyBytesMax: EDGE_BODY_BYTES_MAX,
  permissions: [OPEN_PERMISSION],
  input: z.strictObject({
    recorder: text(1, 64, { regex: /^[\w-]+$/, says: "may hold letters, digits, hyphens and underscores" }),
    sequence: integer(1),
    verifications: z.array(Cell).max(CELLS_MAX),
    uses: z.array(z.strictObject({ keyId: KeyId, at: integer(0) })).max(USES_MAX),
    rootKeyUses: z
      .array(z.strictObject({ rootKeyId: RootKeyId, at: integer(0) }))
      .max(USES_MAX)
      .optional()
      .describe("When root keys of callers were last used at the edge."),
  }),
  output: z.strictObject({
    sequence: z.int(),
    leftOut: z
      .int()
      .describe(
        "Verifications that are not counted: of APIs that the root key does not open, more than a day old, or of keys that the " +
          "workspace does not have.",
      ),
  }),
  problems: [],
  examples: [],
}).handle(async ({ recorder, sequence, verifications, uses, rootKeyUses = [] }, { replicas }, context) => {
  const caller = openingCaller(context);
  const { workspaceId, now, clock, fail } = context;
  for (const [i, [minute, apiId, keyId]] of verifications.entries()) {
    if (minute % levels.minute !== 0) fail("invalid_input", `verifications[${i}] is not of a minute.`);
    if ((apiId === null) !== (keyId === null)) {
      fail("invalid_input", `verifications[${i}] has a key without an API, or an API without a key.`);
    }
  }
  const { reports } = replicas;
  if (reports === null && rootKeyUses.length === 0) return JSON.stringify({ sequence, leftOut: 0 });
  const leftOut = await replicas.reporting.run(workspaceId, async () => {
    const owners = await replicas.findReported({
      workspaceId,
      keyIds: distinct([...verifications.map(([, , keyId]) => keyId), ...uses.map(({ keyId }) => keyId)]),
      identityIds: distinct(verifications.map(([, , , identityId]) => identityId)),
      rootKeyIds: distinct(rootKeyUses.map(({ rootKeyId }) => rootKeyId)),
    });
    const current = await afterWait(caller, clock.now());
    const rootKeys = new Set(owners.rootKeyIds);
    replicas.recordRootKeyUses(
      rootKeyUses.flatMap(({ rootKeyId, at }) =>
        rootKeys.has(rootKeyId) ? [{ rootKeyId, at: Math.min(at, now) }] : [],
      ),
    );
    if (reports === null) return 0;
    const apiOf = new Map(owners.keys.map(({ id, api_id }) => [id, api_id]));
    const identities = new Set(owners.identityIds);
    const present = now - (now % levels.minute);
    const cells: VerificationCell[] = [];
    let omitted = 0;
    for (const [minute, apiId, keyId, identityId, tags, code, count, latencyUs] of verifications) {
      const isOpen = apiId === null || current.may(openRequirement(apiId));
      // Counts have no owner but their subject, which must be of this workspace.
      const isOwn = keyId === null || apiOf.get(keyId) === apiId;
      if (!isOpen || !isOwn || minute < now - PAST_MAX) {
        omitted += count;
        continue;
      }
      const owner = keyId !== null && identityId !== null && identities.has(identityId) ? identityId : null;
      // The clock of an edge may be ahead.
      const time = Math.min(minute, present);
      cells.push([time, workspaceId, apiId, keyId, owner, tags, code, count, 0, latencyUs]);
    }
    const known = uses.flatMap(({ keyId, at }) => {
      const apiId = apiOf.get(keyId);
      const isOpen = apiId !== undefined && current.may(openRequirement(apiId));
      return isOpen ? [{ keyId, at: Math.min(at, now) }] : [];
    });
    await reports.accept({
      workspaceId,
      rootKeyId: caller.rootKeyId,
      recorder,
      sequence,
      verifications: cells,
      uses: known,
    });
    return omitted;
  });
  return JSON.stringify({ sequence, leftOut });
});

/** Whether a text is a tag set as the recorder writes it. */
function isTagSet(value: string): boolean {
  let tags: unknown;
  try {
    tags = JSON.parse(value);
  } catch {
    return false;
  }
  if (!Array.isArray(tags) || tags.length === 0 || tags.length > TAGS_MAX || !tags.every(isTag)) return false;
  return JSON.stringify([...new Set(tags)].sort()) === value;
}

function isTag(tag: unknown): boolean {
  if (typeof tag !== "string" || tag.includes("\0") || !tag.isWellFormed()) return false;
  const { length } = [...tag];
  return length >= 1 && length <= TAG_LENGTH_MAX;
}

function distinct(ids: readonly (string | null)[]): string[] {
  return [...new Set(ids)].filter((id) => id !== null);
}
