import { sha256 } from "../../../../../engine/src/crypto/digest.ts";
import type { DescriptorEntry, DescriptorLimit } from "../../../../../engine/src/rules/descriptor-tree.ts";

/** As long as an identifier of other calls may be. */
const LENGTH_MAX = 512;
/** Characters of a longer one that stay readable. */
const READABLE = 400;

/**
 * The identifier of what a descriptor counts: `key=value`, joined by `&`. Values come from the callers of a gateway, so what
 * separates them is escaped, and no two descriptors have the same one. A value that shares its counter with others is written
 * with the `*` of the tree, which no other value has. A long one ends with its hash.
 */
export function identifierOf(entries: readonly DescriptorEntry[], shared?: DescriptorLimit["shared"]): string {
  const identifier = entries
    .map(({ key, value }, i) => {
      const common = shared?.[i];
      return `${escaped(key)}=${common === undefined ? escaped(value) : `${escaped(common.slice(0, -1))}*`}`;
    })
    .join("&");
  if (identifier.length <= LENGTH_MAX) return identifier;
  return `${identifier.slice(0, READABLE).toWellFormed()}~${sha256(identifier).toString("hex")}`;
}

/** What separates keys and values, `*`, which patterns have, and control characters, which PostgreSQL stores only in part. */
const special = /[%&=*~\p{Cc}]/u;
const everySpecial = /[%&=*~\p{Cc}]/gu;

function escaped(text: string): string {
  return special.test(text) ? text.replace(everySpecial, escapeCharacter) : text;
}

function escapeCharacter(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}
