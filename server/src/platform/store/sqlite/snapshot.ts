import { backup, DatabaseSync } from "node:sqlite";

/** Pages per step: about a megabyte, so that the pauses between steps are short. */
const PAGES_PER_STEP = 256;

/**
 * Copies an embedded database while other processes write to it; the copy is the state at the call. `onStep` runs after
 * each step with the number of copied bytes so far and of all bytes, and may block to slow the copy down. The copy has no
 * log beside it.
 *
 * All steps read within one transaction. Without it, each commit of another process would start the copy again.
 */
export async function copySqliteDatabase(
  source: string,
  target: string,
  onStep: (copiedBytes: number, bytes: number) => void,
): Promise<void> {
  const database = new DatabaseSync(source, { readOnly: true, timeout: 5_000 });
  try {
    const { page_size: pageBytes } = database.prepare("pragma page_size").get() as { page_size: number };
    database.exec("begin");
    database.prepare("select count(*) from sqlite_schema").get();
    await backup(database, target, {
      rate: PAGES_PER_STEP,
      progress: ({ totalPages, remainingPages }) =>
        onStep((totalPages - remainingPages) * pageBytes, totalPages * pageBytes),
    });
  } finally {
    database.close();
  }
  const copy = new DatabaseSync(target);
  try {
    copy.exec("pragma journal_mode = delete");
  } finally {
    copy.close();
  }
}
