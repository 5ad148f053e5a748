import { z } from "zod";
import { isCidr } from "../../../../engine/src/rules/address.ts";
import { RANDOM_BYTES_MAX, RANDOM_BYTES_MIN } from "../../../../engine/src/rules/key-string.ts";
import { CONCURRENCY_MAX } from "../../../../engine/src/rules/slots.ts";
import { DURATION_MAX, LIMIT_MAX } from "../../../../engine/src/rules/window.ts";
import { units } from "../rpc/units.ts";

/** The default maximum of an integer: 2^53 − 1, the largest that a double represents exactly. */
const INTEGER_MAX = Number.MAX_SAFE_INTEGER;
/** Maximum of balances, refill amounts and increments. */
export const CREDITS_MAX = 1_000_000_000_000_000;
/** The shortest window of a limit, in milliseconds. */
export const DURATION_MIN = 1_000;
/** 2100-01-01. */
export const EXPIRES_MAX = 4_102_444_800_000;
/** 1973-03-03. A smaller number above 0 is a time in seconds: 10^11 seconds are the year 5138. */
const EXPIRES_MILLISECONDS_MIN = 100_000_000_000;
/** The most characters of a key string. */
export const KEY_LENGTH_MAX = 512;
export const KEY_META_BYTES_MAX = 64 * 1024;
export const IDENTITY_META_BYTES_MAX = 1024 * 1024;
const META_DEPTH_MAX = 100;

/** The number of random bytes in a key string if neither the call nor the API sets it. */
export const BYTE_LENGTH_DEFAULT = 16;

export const RATELIMITS_PER_KEY_MAX = 50;
export const ROLES_PER_KEY_MAX = 100;
export const PERMISSIONS_PER_KEY_MAX = 1_000;

/** An integer from `minimum` to `maximum`. */
export const integer = (minimum: number, maximum = INTEGER_MAX) => z.int().min(minimum).max(maximum);

/** A time that callers send: Unix time in milliseconds. */
export const time = () => integer(0, EXPIRES_MAX).register(units, { unit: "time" });

/** A length of time that callers send, in milliseconds. */
export const duration = (minimum: number, maximum: number) =>
  integer(minimum, maximum).register(units, { unit: "duration" });

/** Text without U+0000. */
const NO_NUL = "^[^\\u0000]*$";

/** Text whose length is counted in code points. Rejects unpaired surrogates and U+0000, which databases cannot store. */
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
          message: "must not contain U+0000 or an unpaired surrogate",
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

/** Marks a text as a secret: clients do not print it. A string with the format `password` of OpenAPI. */
export const asSecret = (schema: z.ZodString) => schema.meta({ format: "password" });

export const KeyId = text(3, 255, ID).describe("Identifier of a key, as createKey gave it; not the secret.");
export const ApiId = text(3, 255, ID).describe("Identifier of an API, as createApi gave it.");
export const RootKeyId = text(3, 255, ID).describe("Identifier of a root key; not the root key itself.");
export const WorkspaceId = text(3, 255, ID).describe("Identifier of a workspace, as createWorkspace gave it.");
export const ExternalId = text(1, 255, {
  regex: /^[a-zA-Z0-9_.-]+$/,
  says: "may hold letters, digits, underscores, dots and hyphens",
}).describe("Your own identifier of the owner of the key, such as a user id.");
/** Without a maximum length: a text that is too long to be an id matches no identity. */
export const Identity = text(1).describe("The identity's id, or your external id.");
export const OwnKeyDerivation = z
  .boolean()
  .describe(
    "Whether holders of keys may derive keys from them with `keys.deriveOwnKey`, without a root key: short-lived keys that can " +
      "do no more than their own.",
  );

export const OwnKeyAccess = z
  .boolean()
  .describe("Whether holders of its keys may read what is left of them, without a root key: see `keys.getOwnKey`.");

const RESOURCES_MAX = 10;

/** Resource indicators: RFC 8707, section 2. */
export const Resources = z
  .array(
    text(1, 255).refine(isResource, {
      error: "must be an absolute URI without a fragment, such as https://api.example.com",
      params: { keyword: "pattern", fix: "Send the address by which clients know the API." },
    }),
  )
  .min(1)
  .max(RESOURCES_MAX)
  .describe(
    "The absolute URIs for which its keys get access tokens at `/oauth/token`, if the service issues any: each is an audience.",
  );

function isResource(uri: string): boolean {
  return URL.canParse(uri) && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(uri) && !uri.includes("#");
}

export const Prefix = text(1, 16, {
  regex: /^[a-zA-Z0-9_.-]+$/,
  says: "may hold letters, digits, underscores, dots and hyphens",
}).describe("Beginning of the key string; an underscore follows it.");
export const ByteLength = integer(RANDOM_BYTES_MIN, RANDOM_BYTES_MAX).describe("Random bytes in the key string.");
export const Name = text(1, 255).describe("A label for you. End users never see it.");
export const KeyName = text(1, 255).describe("A label. Of your end users, at most the owner of the key sees it.");
export const Expires = time()
  .check(({ value, issues }) => {
    if (value > 0 && value < EXPIRES_MILLISECONDS_MIN) {
      issues.push({
        code: "custom",
        input: value,
        message: "is a time in seconds, must be in milliseconds",
        params: { keyword: "not", fix: `Multiply it by 1000: ${value * 1_000}.` },
      });
    }
  })
  .meta({ not: { type: "integer", minimum: 1, maximum: EXPIRES_MILLISECONDS_MIN - 1 } })
  .describe("Unix time in milliseconds at which the key expires.");
/** Labels for the analytics. */
export const Tags = z.array(text(1, 128)).max(10);
/** The slug of a permission. The bounds of its length depend on the operation. */
export const slug = (minimum: number, maximum: number) => text(minimum, maximum, SLUG);

/** Any JSON object of at most `bytesMax` bytes as UTF-8. */
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
          params: { keyword: "maxBytes", fix: "Store large values elsewhere, and a reference to them here." },
        });
      }
    })
    .describe(
      `Any JSON object, up to ${bytesMax / 1024} KiB as text and ${META_DEPTH_MAX} levels deep. Do not store secrets in it.`,
    );

/** The levels of nesting. Without recursion, and stops counting above the maximum. */
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

/** How a limit counts. */
export const Mode = z
  .enum(["standard", "strict"])
  .describe(
    "How the limit counts. `standard`: a sliding window. `strict`: never more than the limit in any trailing `duration`.",
  );

/** Whether a limit is in shadow mode. */
export const Shadow = z
  .boolean()
  .describe(
    "`true`: the limit is counted and reported, and never denies a call. What it would deny, it does not count. So you see " +
      "what a limit would do before it is in force.",
  );

/** The shadow mode of a limit in an answer, if it is on. */
export const ShadowOutput = z.literal(true).describe("Present if the limit is in shadow mode: it never denies.");

/** The mode of a limit in an answer, if it is not the standard one. */
export const ModeOutput = z.literal("strict").describe("Present if the limit is strict.");

/** The window of a limit in an explanation. */
export const WindowOutput = z
  .strictObject({ startAt: z.int(), endAt: z.int() })
  .describe(
    "The current window, Unix times in milliseconds. Of a strict limit: from its oldest charge until that stops counting.",
  );

/** The reset of a limit that was checked. */
export const Reset = z
  .int()
  .describe(
    "End of the current window, Unix time in milliseconds. Of a strict limit: when its oldest charge stops counting, or " +
      "would if it were made now.",
  );

/** A limit as callers send it. Unknown members are ignored. */
export const RatelimitInput = z.object({
  name: text(1, 128).describe("Name of the limit, for verifications."),
  limit: integer(1, LIMIT_MAX).describe("Maximum cost per window."),
  duration: duration(DURATION_MIN, DURATION_MAX).describe("Length of the window in milliseconds."),
  mode: Mode.default("standard"),
  autoApply: z
    .boolean()
    .default(false)
    .describe("Whether every verification that does not name the limit is charged 1."),
  shadow: Shadow.default(false),
});

/** The limits of one key or one identity. Names must be unique. */
export const ratelimits = z
  .array(RatelimitInput)
  .max(RATELIMITS_PER_KEY_MAX)
  .check(({ value, issues }) => rejectRepeatedNames(value, issues));

/** The limits of concurrency of one key or one identity: a hold takes a slot of each. */
const CONCURRENCY_LIMITS_MAX = 5;

/** The limits of concurrency of one key or one identity. Names must be unique. */
export const concurrency = z
  .array(
    z.strictObject({
      name: text(1, 128).describe("Name of the limit, for answers."),
      limit: integer(1, CONCURRENCY_MAX).describe("How many holds may be open at once."),
    }),
  )
  .max(CONCURRENCY_LIMITS_MAX)
  .check(({ value, issues }) => rejectRepeatedNames(value, issues))
  .describe(
    "How many calls may run at once. Each verification takes a slot of each of these limits with `hold`, until its hold " +
      "ends; without `hold` it gets 400.",
  );

/** Reports every limit whose name occurs earlier in the list. */
export function rejectRepeatedNames(limits: readonly { name: string }[], issues: z.core.$ZodRawIssue[]): void {
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

/** Entries of a list of addresses. */
const ALLOWED_IPS_MAX = 100;
/** The longest spelling of an IPv6 address, with a prefix length. */
const CIDR_LENGTH_MAX = 49;

/** The addresses that may use keys. */
export const AllowedIps = z
  .array(
    text(1, CIDR_LENGTH_MAX)
      .refine(isCidr, {
        error: "must be an address or a CIDR such as 10.0.0.0/8 or 2001:db8::/32",
        params: { keyword: "pattern", fix: "Send an IPv4 or IPv6 address, with or without a prefix length." },
      })
      .meta({ pattern: "^(?:[0-9.]{7,15}|[0-9a-fA-F:.]{2,45})(?:/[0-9]{1,3})?$" }),
  )
  .min(1)
  .max(ALLOWED_IPS_MAX);

/** The same of one key. */
export const KeyAllowedIps = AllowedIps.describe(
  "IPv4 and IPv6 addresses and CIDRs that may use the key. If its API has `allowedIps`, both lists must contain the address. " +
    "Omitted: every address that the API allows.",
);

/** A limit as the API operations return it. */
export const RatelimitOutput = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    limit: z.int(),
    duration: z.int().describe("Length of the window in milliseconds."),
    mode: ModeOutput.optional(),
    autoApply: z.boolean(),
    shadow: ShadowOutput.optional(),
  })
  .meta({ id: "Ratelimit", description: "A limit of a key or of an identity." });

/** A limit of concurrency as the API operations return it. */
export const ConcurrencyOutput = z
  .strictObject({
    name: z.string(),
    limit: z.int(),
    inUse: z
      .int()
      .optional()
      .describe("How many holds are open. `keys.getKey` and `identities.getIdentity` return it."),
  })
  .meta({
    id: "ConcurrencyLimit",
    description: "How many calls of a key, or of the keys of an identity, may run at once.",
  });

/** The search text of a list. */
export const search = (fields: string) =>
  text(0, 256).describe(`Only entries whose ${fields} contain this text, regardless of case. Blank: all.`);

export const Empty = z.strictObject({});
