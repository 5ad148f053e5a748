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
  if (kept) return copyOf(kept);
  const parsed = JSON.parse(`{${text.slice(1)}}`) as object;
  if (text.length > LENGTH_MAX) return parsed;
  if (known.size >= TEXTS_MAX) known.clear();
  known.set(text, parsed);
  return copyOf(parsed);
}

function copyOf<Value extends object>(value: Value): Value {
  if (Array.isArray(value)) return value.map(copied) as unknown as Value;
  const copy = { ...value } as Record<string, unknown>;
  for (const name in copy) {
    const member = copy[name];
    // A member `__proto__` of the JSON is one of the object itself here too, so this sets no prototype.
    if (typeof member === "object") copy[name] = copied(member);
  }
  return copy as Value;
}

function copied(value: unknown): unknown {
  return typeof value === "object" && value !== null ? copyOf(value) : value;
}
