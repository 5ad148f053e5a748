/** The database value of `meta`. An empty object is stored as null. */
export function metaColumn(meta: Record<string, unknown> | undefined): string | null {
  return meta === undefined || Object.keys(meta).length === 0 ? null : JSON.stringify(meta);
}
