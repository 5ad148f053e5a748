/** The longest external id. */
const LENGTH_MAX = 255;
/** What every operation accepts as an external id. */
const EXTERNAL_ID = /^[A-Za-z0-9_.-]+$/;
/** What a written form begins with. */
const MARK = "enc--";
const WRITTEN = /^enc--(?:[A-Za-z0-9.-]|_[0-9A-F]{2})+$/;

/** An owner of the other system, as the service can have it as an external id. */
export interface Owner {
  readonly externalId: string;
  /** The owner there, if it is written in another form. */
  readonly original?: string;
}

/**
 * Writes an owner as an external id that every operation accepts. One that is none is written as `enc--` and its bytes in
 * UTF-8, of which all but letters, digits, `.` and `-` become `_` and two hexadecimal digits. `docs/moving.md` documents it.
 *
 * The form is reversible, so two owners never have the same one; an owner that looks like a written form is rejected.
 */
export function writeOwner(original: string): Owner | { readonly rejected: string } {
  if (EXTERNAL_ID.test(original)) {
    return WRITTEN.test(original) ? { rejected: LOOKS_WRITTEN } : { externalId: original };
  }
  // What no database stores is left to the schema of the operation, which rejects it.
  if (original === "" || original.includes("\0") || !original.isWellFormed()) return { externalId: original };
  const externalId = MARK + original.replaceAll(/[^A-Za-z0-9.-]+/gu, escapeBytes);
  return externalId.length > LENGTH_MAX ? { rejected: TOO_LONG } : { externalId, original };
}

const LOOKS_WRITTEN = `has an owner that begins with ${MARK}, as this import writes owners with other characters: rename it`;
const TOO_LONG = `has an owner that is longer than ${LENGTH_MAX} characters in the form in which external ids are written here`;

/** What the report says about a row whose owner is written in another form. */
export const OWNER_NOTE =
  `has characters that no external id can have: it is written as ${MARK}… here, and meta.externalId of the identity is the ` +
  "original";

function escapeBytes(characters: string): string {
  return [...Buffer.from(characters)].map((byte) => `_${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}
