/** How `meta` is kept: an empty object like none. */
export function metaColumn(meta: Record<string, unknown> | undefined): string | null {
  return meta === undefined || Object.keys(meta).length === 0 ? null : JSON.stringify(meta);
}
