import type { Sql } from "../store.ts";
import { raw } from "./connection.ts";

/** Writes a page of the file without changing anything that the service reads. Fails while the disk takes no writes. */
export async function probeWrites(sql: Sql): Promise<void> {
  await raw(sql, "pragma user_version = 0");
}
