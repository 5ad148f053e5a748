import type { Instant } from "../clock/clock.ts";
import { newId, type Random } from "../random/random.ts";
import type { IdentityRow } from "./schema.ts";
import type { Sql } from "./store.ts";

/** The identities of one workspace that are not deleted. */
export class IdentityReader {
  protected readonly sql: Sql;
  protected readonly workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.sql = sql;
    this.workspaceId = workspaceId;
  }

  findByExternalId(externalId: string): Promise<IdentityRow | undefined> {
    return this.sql.db
      .selectFrom("identities")
      .selectAll()
      .where("workspace_id", "=", this.workspaceId)
      .where("external_id", "=", externalId)
      .where("deleted_at", "is", null)
      .executeTakeFirst();
  }
}

export class IdentityWriter extends IdentityReader {
  /** The id of the identity with this external id, made when there is none; one, however many ask at once. */
  async ensure(externalId: string, random: Random, at: Instant): Promise<string> {
    await this.sql.db
      .insertInto("identities")
      .values({
        id: newId(random, "id"),
        workspace_id: this.workspaceId,
        external_id: externalId,
        created_at: at,
      })
      .onConflict((conflict) =>
        conflict.columns(["workspace_id", "external_id"]).where("deleted_at", "is", null).doNothing(),
      )
      .execute();
    const identity = await this.findByExternalId(externalId);
    return identity!.id;
  }
}
