import { z } from "zod";

/** Most that an integer may be where the contract names no bound of its own: 2^53 − 1. */
const INTEGER_MAX = Number.MAX_SAFE_INTEGER;
/** Bound on balances, refill amounts and increments. */
export const CREDITS_MAX = 1_000_000_000_000_000;
/** Bound on limits and their costs. */
export const LIMIT_MAX = 1_000_000_000_000;
/** 366 days. */
export const DURATION_MAX = 366 * 24 * 3_600_000;
export const DURATION_MIN = 1_000;
/** 2100-01-01. */
export const EXPIRES_MAX = 4_102_444_800_000;
/** 1973-03-03. Anything from 1 up to here is a time in seconds: 10^11 seconds are the year 5138. */
const EXPIRES_MILLISECONDS_MIN = 100_000_000_000;
export const KEY_META_BYTES_MAX = 64 * 1024;
export const IDENTITY_META_BYTES_MAX = 1024 * 1024;
const META_DEPTH_MAX = 100;

/** Random bytes in a key string where neither the caller nor the API says how many. */
export const BYTE_LENGTH_DEFAULT = 16;

export const RATELIMITS_PER_KEY_MAX = 50;
export const ROLES_PER_KEY_MAX = 100;
export const PERMISSIONS_PER_KEY_MAX = 1_000;

/** An integer from `minimum` to `maximum`. */
export const integer = (minimum: number, maximum = INTEGER_MAX) => z.int().min(minimum).max(maximum);

/** U+0000 in no place. */
const NO_NUL = "^[^\\u0000]*$";

/**
 * Text whose length is counted in code points. Half a surrogate pair and U+0000 are refused: they are
 * no text, and databases do not keep them.
 */
export function text(minimum: number, maximum = Number.POSITIVE_INFINITY, pattern?: { regex: RegExp; says: string }) {
  return z
    .string()
    .check((payload) => {
      const { value, issues } = payload;
      const length = value.length > maximum || value.length < 2 * minimum ? codePoints(value) : value.length;
      const tooLong = length > maximum;
      if (tooLong || length < minimum) {
        issues.push(
          tooLong
            ? { code: "too_big", origin: "string", maximum, inclusive: true, input: value }
            : { code: "too_small", origin: "string", minimum, inclusive: true, input: value },
        );
      } else if (pattern && !pattern.regex.test(value)) {
        issues.push({ code: "invalid_format", format: "regex", input: value, message: pattern.says });
      } else if (!pattern && (!value.isWellFormed() || value.includes("\0"))) {
        issues.push({
          code: "invalid_format",
          format: "text",
          input: value,
          message: "must not contain U+0000 or half of a surrogate pair",
        });
      }
    })
    .meta({
      minLength: minimum,
      ...(Number.isFinite(maximum) && { maxLength: maximum }),
      pattern: pattern ? pattern.regex.source : NO_NUL,
    });
}

function codePoints(value: string): number {
  let count = 0;
  for (const _ of value) count++;
  return count;
}

const ID = { regex: /^[a-zA-Z0-9_]+$/, says: "may hold letters, digits and underscores" };
const SLUG = { regex: /^[a-zA-Z0-9_:\-.*/]+$/, says: "may hold letters, digits and the characters _ : - . * /" };

export const KeyId = text(3, 255, ID).describe("Identifier of a key, as createKey gave it; not the secret.");
export const ApiId = text(3, 255, ID).describe("Identifier of an API, as createApi gave it.");
export const RootKeyId = text(3, 255, ID).describe("Identifier of a root key; not the root key itself.");
export const WorkspaceId = text(3, 255, ID).describe("Identifier of a workspace, as createWorkspace gave it.");
export const ExternalId = text(1, 255, {
  regex: /^[a-zA-Z0-9_.-]+$/,
  says: "may hold letters, digits, underscores, dots and hyphens",
}).describe("Your own identifier of a user or of anything else that may own keys.");
/** Of any length: what is no identity's is just not found. */
export const Identity = text(1).describe("The identity's id, or your external id.");
export const Prefix = text(1, 16, {
  regex: /^[a-zA-Z0-9_.-]+$/,
  says: "may hold letters, digits, underscores, dots and hyphens",
}).describe("What key strings begin with, before an underscore.");
export const ByteLength = integer(16, 255).describe("Random bytes in the key string.");
export const Name = text(1, 255).describe("A label for yourselves; end users never see it.");
export const Expires = integer(0, EXPIRES_MAX)
  .check(({ value, issues }) => {
    if (value > 0 && value < EXPIRES_MILLISECONDS_MIN) {
      issues.push({
        code: "custom",
        input: value,
        message: "is a time in seconds, and has to be one in milliseconds",
        params: { keyword: "not", fix: "Multiply it by 1000." },
      });
    }
  })
  .meta({ not: { type: "integer", minimum: 1, maximum: EXPIRES_MILLISECONDS_MIN - 1 } })
  .describe("Unix time in milliseconds at which the key stops being valid.");
/** A permission's slug; the lengths differ from operation to operation. */
export const slug = (minimum: number, maximum: number) => text(minimum, maximum, SLUG);

/** Any JSON object up to so many bytes as UTF-8. */
export const meta = (bytesMax: number) =>
  z
    .record(z.string(), z.unknown())
    .check(({ value, issues }) => {
      const depth = depthOf(value);
      if (depth > META_DEPTH_MAX) {
        issues.push({
          code: "custom",
          input: value,
          message: `is nested deeper than ${META_DEPTH_MAX} levels`,
          params: { keyword: "maxDepth", fix: `Nest it at most ${META_DEPTH_MAX} levels deep.` },
        });
      } else if (Buffer.byteLength(JSON.stringify(value)) > bytesMax) {
        issues.push({
          code: "custom",
          input: value,
          message: `Metadata is too large: at most ${bytesMax} bytes`,
          params: { keyword: "maxBytes", fix: "Keep large values elsewhere, and a reference to them here." },
        });
      }
    })
    .describe(
      `Any JSON object, up to ${bytesMax / 1024} KiB as text and ${META_DEPTH_MAX} levels deep. Keep secrets out of it.`,
    );

/** Levels of nesting, counted without recursion and no further than it matters. */
function depthOf(value: object): number {
  let level: object[] = [value];
  let depth = 0;
  while (level.length > 0 && depth <= META_DEPTH_MAX) {
    depth++;
    level = level.flatMap((parent) =>
      Object.values(parent).filter((child): child is object => typeof child === "object" && child !== null),
    );
  }
  return depth;
}

/** A limit as it is given. The clients always send `autoApply`, and other members are tolerated. */
export const RatelimitInput = z.object({
  name: text(1, 128).describe("Names the limit at verification."),
  limit: integer(1, LIMIT_MAX).describe("Amount that passes in one window."),
  duration: integer(DURATION_MIN, DURATION_MAX).describe("Length of the window in milliseconds."),
  autoApply: z.boolean().default(false).describe("Whether every verification is charged 1 without naming the limit."),
});

/** Limits of one key or one identity, each name once. */
export const ratelimits = z
  .array(RatelimitInput)
  .max(RATELIMITS_PER_KEY_MAX)
  .check(({ value, issues }) => refuseRepeatedNames(value, issues));

/** One limit, one name. */
export function refuseRepeatedNames(limits: readonly { name: string }[], issues: z.core.$ZodRawIssue[]): void {
  const names = new Set<string>();
  for (const [i, { name }] of limits.entries()) {
    if (names.has(name)) {
      issues.push({
        code: "custom",
        input: limits,
        path: [i, "name"],
        message: `names the limit '${name}' a second time`,
        params: { keyword: "uniqueItems", fix: "Name each limit once." },
      });
    }
    names.add(name);
  }
}

/** A limit as it is shown. */
export const RatelimitOutput = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    limit: z.int(),
    duration: z.int().describe("Length of the window in milliseconds."),
    autoApply: z.boolean(),
  })
  .meta({ id: "Ratelimit", description: "A limit of a key or of an identity." });

/** A search in lists. */
export const search = (fields: string) =>
  text(0, 256).describe(`Only entries whose ${fields} contain this text, whatever its case. Blank: all.`);

export const Empty = z.strictObject({});
