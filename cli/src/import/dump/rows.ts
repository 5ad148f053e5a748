import { CommandError } from "../../output.ts";
import { dumpRows } from "./dump.ts";
import type { DumpRow, DumpTable } from "./statements.ts";

/** One key of a dump. */
export interface DumpedKey {
  readonly fields: Record<string, unknown>;
  /** How much of the file was read, from 0 to 1. */
  readonly progress: number;
}

/** Maximum number of rows of the tables that are kept in memory while the keys are read. */
const JOINED_MAX = 2_000_000;

/** The keys of a system that has them in one table. */
export function keysIn(name: string, ...columns: string[]): (file: string) => AsyncGenerator<DumpedKey> {
  return async function* (file) {
    for await (const { values, progress } of dumpRows(file, [{ name, columns, isRequired: true }])) {
      yield { fields: Object.fromEntries(values), progress };
    }
  };
}

/** The rows of tables that keys refer to, for memory. */
export async function* joinedRows(file: string, tables: readonly DumpTable[]): AsyncGenerator<DumpRow> {
  let rows = 0;
  for await (const row of dumpRows(file, tables)) {
    if (++rows > JOINED_MAX) {
      throw new CommandError(
        `${file} has more than ${JOINED_MAX.toLocaleString("en")} rows besides keys. Make a dump of a part, such as one workspace.`,
      );
    }
    yield row;
  }
}
