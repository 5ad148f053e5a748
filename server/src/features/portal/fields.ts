import { z } from "zod";
import { duration, EXPIRES_MAX, integer, Prefix, text } from "../../platform/vocabulary/schema.ts";
import { portalActions, portalLanguages } from "./terms.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The longest life of a session. */
const SESSION_LIFE_MAX = HOUR;
const SESSION_LIFE_DEFAULT = 15 * MINUTE;
const KEYS_MAX = 1_000;
/** The most keys of an owner, if the session names no maximum. */
export const KEYS_DEFAULT = 10;
/** Choices that a person sees in a form. */
const CHOICES_MAX = 20;
const URL_LENGTH_MAX = 2_048;

/** An absolute address with one of these schemes, without a user name and a password. */
function address(schemes: readonly string[], says: string) {
  return text(8, URL_LENGTH_MAX)
    .refine(
      (value) => {
        if (!/^[\x21-\x7e]*$/.test(value) || !URL.canParse(value)) return false;
        const { protocol, username, password } = new URL(value);
        return schemes.includes(protocol) && username === "" && password === "";
      },
      { error: says, params: { keyword: "pattern", fix: "Send an absolute address in ASCII." } },
    )
    .meta({ pattern: `^(?:${schemes.join("|")})//[\\x21-\\x7e]+$` });
}

export const PortalActions = z
  .array(z.enum(portalActions))
  .min(1)
  .max(portalActions.length)
  .describe(
    "What the holder of the session may do with the keys: `list` them, `create` new ones, `reroll`, `rename` and " +
      "`delete` them, see their `usage`, and see what is `left` of their credits and budgets. The root key needs the " +
      "permission for each action.",
  );

export const SessionLife = duration(MINUTE, SESSION_LIFE_MAX)
  .default(SESSION_LIFE_DEFAULT)
  .describe("When the session ends, in milliseconds from now: at most one hour.");

/** The limits on the keys of a session. */
export const PortalKeys = z
  .strictObject({
    max: integer(1, KEYS_MAX)
      .default(KEYS_DEFAULT)
      .describe("The most keys that the owner can have in the API. Expired keys do not count."),
    prefixes: z
      .array(Prefix)
      .min(1)
      .max(CHOICES_MAX)
      .optional()
      .describe("Prefixes of new keys, the default first. Omitted: only the prefix of the API."),
    expiresInMax: duration(MINUTE, EXPIRES_MAX)
      .optional()
      .describe("The longest life of a new key, in milliseconds. Omitted: a new key needs no expiry."),
    roles: z
      .array(text(1, 100))
      .max(CHOICES_MAX)
      .optional()
      .describe("Names of existing roles that a new key may have. It has all of them by default."),
  })
  .describe("Limits on the keys.");

/** How the page looks. */
export const PortalPageInput = z
  .strictObject({
    name: text(1, 100).optional().describe("Your name, in the title."),
    logoUrl: address(["https:"], "must be an https address")
      .optional()
      .describe("Your logo: an https address that every browser can load. It is shown 32 pixels high."),
    color: text(7, 7, { regex: /^#[0-9a-fA-F]{6}$/, says: "must be a color such as #246bce" })
      .optional()
      .describe(
        "The color of buttons and links, such as `#246bce`. It is made lighter or darker where it could not be read.",
      ),
    language: z
      .enum(portalLanguages)
      .optional()
      .describe(
        "The language of the page. Omitted: the first of the browser's languages that is available, or English.",
      ),
    returnUrl: address(["https:", "http:"], "must be an http or https address")
      .optional()
      .describe("Where the link back leads. Omitted: there is none."),
  })
  .describe("How the page looks.");

/** A session as the API operations return it, without its token. */
export const PortalSessionOutput = z
  .strictObject({
    sessionId: z.string(),
    rootKeyId: z.string().describe("The root key that created it."),
    apiId: z.string(),
    identityId: z.string(),
    externalId: z.string(),
    actions: z.array(z.enum(portalActions)),
    createdAt: z.int().describe("Unix time in milliseconds."),
    expiresAt: z.int().describe("When it ends."),
  })
  .meta({ id: "PortalSession", description: "A session in which an owner of keys manages them." });
