import { jsonColumn } from "../../platform/vocabulary/columns.ts";

/** The database value of `meta`. An empty object is stored as null. */
export function metaColumn(meta: Record<string, unknown> | undefined): string | null {
  return jsonColumn(meta && Object.keys(meta).length > 0 ? meta : null);
}
