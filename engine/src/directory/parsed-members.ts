/**
 * Values of members that many answers have, such as the permissions of keys: parsed once. The parser takes as long as the rest of a
 * verification.
 */

/** Texts whose values are kept. */
const TEXTS_MAX = 500;
/** Characters. Longer texts are parsed for each answer, so that what is kept has a few megabytes at most. */
const LENGTH_MAX = 1_024;

const known = new Map<string, object>();

/** The values of JSON members that each have a comma before them, as an object of the caller's own. */
export function parsedMembers(text: string): object {
  const kept = known.get(text);
  if (kept) return copyOf(kept) as object;
  const parsed = JSON.parse(`{${text.slice(1)}}`) as object;
  if (text.length > LENGTH_MAX) return parsed;
  if (known.size >= TEXTS_MAX) known.clear();
  known.set(text, parsed);
  return copyOf(parsed) as object;
}

function copyOf(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyOf);
  const copy: Record<string, unknown> = { ...value };
  // A member `__proto__` of the JSON is one of the object itself here too, so this sets no prototype.
  for (const name in copy) copy[name] = copyOf(copy[name]);
  return copy;
}
