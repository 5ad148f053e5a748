/** What a key was granted, ready to be asked in a time that does not depend on how much it was granted. */
export interface Permissions {
  /** Whether `*` alone was granted. */
  readonly everything: boolean;
  /** Every granted slug as it is written, wildcards included. */
  readonly slugs: ReadonlySet<string>;
  /** What stands before the `*` of the granted wildcards, separator included: `documents.` for `documents.*`. */
  readonly prefixes: ReadonlySet<string>;
}

/**
 * Prepares granted slugs for being asked. `*` is a wildcard alone, or as the whole last segment after `.`, `:` or `/`;
 * elsewhere it is an ordinary character.
 */
export function compilePermissions(slugs: readonly string[]): Permissions {
  const prefixes = new Set<string>();
  for (const slug of slugs) {
    if (slug.endsWith("*") && isSeparator(slug.charCodeAt(slug.length - 2))) prefixes.add(slug.slice(0, -1));
  }
  const all = new Set(slugs);
  return { everything: all.has("*"), slugs: all, prefixes };
}

/**
 * Tells whether the permissions include `slug`, in which `*` is an ordinary character. `documents.*` includes
 * `documents.read` and `documents.read.own`, not `documents` or `documents.`: a wildcard stands for at least something.
 */
export function holds(permissions: Permissions, slug: string): boolean {
  if (permissions.everything || permissions.slugs.has(slug)) return true;
  if (permissions.prefixes.size === 0) return false;
  for (let end = 1; end < slug.length; end++) {
    if (isSeparator(slug.charCodeAt(end - 1)) && permissions.prefixes.has(slug.slice(0, end))) return true;
  }
  return false;
}

function isSeparator(code: number): boolean {
  return code === 46 || code === 58 || code === 47; // . : /
}
