import { sql as raw } from "kysely";
import type { Sql } from "../../../platform/store/store.ts";
import type { MinuteCount } from "../batch.ts";
import { Block } from "./block.ts";
import { isAfter, type Place } from "./place.ts";

/** Reads the counts of a run in their order, those that are not merged yet. */
export class RunReader {
  readonly #run: number;
  readonly #mergedTo: Place;
  /** Only this workspace; undefined: all. */
  readonly #workspaceId: string | undefined;
  /** The last row that was read. */
  #last: Place;
  #isAtEnd = false;

  constructor(run: number, mergedTo: Place, workspaceId?: string) {
    this.#run = run;
    this.#mergedTo = mergedTo;
    this.#workspaceId = workspaceId;
    const startsLater = workspaceId !== undefined && workspaceId > mergedTo[0];
    this.#last = startsLater ? [workspaceId, ""] : mergedTo;
  }

  /** Where the last row is that was read. */
  get last(): Place {
    return this.#last;
  }

  get isAtEnd(): boolean {
    return this.#isAtEnd;
  }

  /** The counts of the next blocks; fewer or none at the end. */
  async next(sql: Sql, blocks: number): Promise<MinuteCount[]> {
    const [afterWorkspace, afterSubject] = this.#last;
    const ofWorkspace = this.#workspaceId === undefined ? raw`` : raw`and b.workspace_id = ${this.#workspaceId}`;
    const { rows } = await raw<{ workspace_id: string; last_subject: string; data: string }>`
      select b.workspace_id, b.last_subject, b.data from analytics_run_blocks as b
      where b.run = ${this.#run} and (b.workspace_id, b.last_subject) > (${afterWorkspace}, ${afterSubject}) ${ofWorkspace}
      order by b.workspace_id, b.last_subject limit ${blocks}`.execute(sql.db);
    this.#isAtEnd = rows.length < blocks;
    const counts: MinuteCount[] = [];
    for (const { workspace_id, last_subject, data } of rows) {
      const block = new Block(workspace_id, data);
      for (const [row, subject] of block.subjects.entries()) {
        // Only of the block in which the merge has stopped, a part is merged.
        if (isAfter(workspace_id, subject, this.#mergedTo)) counts.push(block.count(row));
      }
      this.#last = [workspace_id, last_subject];
    }
    return counts;
  }
}
