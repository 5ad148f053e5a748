/** The compiled permissions of a key. A check takes the same time for any number of permissions. */
export interface Permissions {
  /** Whether `*` alone was granted. */
  readonly everything: boolean;
  /** Every granted slug, wildcards included. */
  readonly slugs: ReadonlySet<string>;
  /** The prefixes of the granted wildcards, with the separator: `documents.` for `documents.*`. */
  readonly prefixes: ReadonlySet<string>;
}

/**
 * Compiles granted slugs for `holds`. `*` is a wildcard if it is the whole slug, or the whole last segment after `.`, `:`
 * or `/`. Elsewhere it is a literal character.
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
 * Whether the permissions include `slug`, in which `*` is a literal character. `documents.*` includes `documents.read` and
 * `documents.read.own`, but not `documents` or `documents.`: a wildcard stands for at least one character.
 */
export function holds(permissions: Permissions, slug: string): boolean {
  return grantOf(permissions, slug) !== undefined;
}

/** The granted slug that includes `slug`: itself, `*`, or else the shortest wildcard; undefined if there is none. */
export function grantOf(permissions: Permissions, slug: string): string | undefined {
  if (permissions.slugs.has(slug)) return slug;
  if (permissions.everything) return "*";
  if (permissions.prefixes.size === 0) return undefined;
  for (let end = 1; end < slug.length; end++) {
    if (!isSeparator(slug.charCodeAt(end - 1))) continue;
    const prefix = slug.slice(0, end);
    if (permissions.prefixes.has(prefix)) return `${prefix}*`;
  }
  return undefined;
}

/** The permissions that both include. */
export function intersection(a: Permissions, b: Permissions): Permissions {
  if (a.everything) return b;
  if (b.everything) return a;
  // Two wildcards include one another or nothing in common, so what is in both is the narrower of two slugs.
  const common = [...a.slugs].filter((slug) => holds(b, slug));
  for (const slug of b.slugs) if (holds(a, slug)) common.push(slug);
  return compilePermissions([...new Set(common)].sort());
}

function isSeparator(code: number): boolean {
  return code === 46 || code === 58 || code === 47; // . : /
}
