import type { Updateable } from "kysely";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../../engine/src/random/random.ts";
import { lockAccess } from "../../platform/store/access/access-lock.ts";
import { parsed } from "../../platform/store/json.ts";
import { type PageOptions, searchPage } from "../../platform/store/page.ts";
import type { WorkspaceRow } from "../../platform/store/schema.ts";
import { fold } from "../../platform/store/search.ts";
import type { Sql } from "../../platform/store/store.ts";
import { WorkspaceRows } from "../../platform/store/workspace-rows.ts";
import { RootKeyWriter } from "../rootKeys/statements.ts";

/** A workspace as the directory caches it. */
export interface StoredWorkspace extends WorkspaceRow {
  sha512_migrations: number;
  /** Ids of its APIs with an upstream verifier. */
  upstream_apis: string[];
}

/** All workspaces. Only the administrator of the service may read them. */
export class WorkspaceReader {
  protected readonly sql: Sql;

  constructor(sql: Sql) {
    this.sql = sql;
  }

  find(workspaceId: string): Promise<WorkspaceRow | undefined> {
    return this.sql.db.selectFrom("workspaces").selectAll().where("id", "=", workspaceId).executeTakeFirst();
  }

  /** These workspaces, with the number of their key migrations whose hashes are SHA-512, and their upstream verifiers. */
  async findAll(workspaceIds: readonly string[]): Promise<StoredWorkspace[]> {
    const rows = await this.sql.db
      .selectFrom("workspaces")
      .selectAll()
      .select(({ selectFrom }) =>
        selectFrom("key_migrations")
          .select(({ fn }) => fn.countAll<number>().as("count"))
          .whereRef("key_migrations.workspace_id", "=", "workspaces.id")
          .where("key_migrations.algorithm", "=", "sha512")
          .as("sha512_migrations"),
      )
      .select(({ selectFrom }) =>
        this.sql.dialect.json
          .array(
            selectFrom("apis")
              .select("apis.id")
              .whereRef("apis.workspace_id", "=", "workspaces.id")
              .where("apis.upstream", "is not", null)
              .where("apis.deleted_at", "is", null)
              .orderBy("apis.id"),
          )
          .as("upstream_apis"),
      )
      .where(this.sql.dialect.values.isOneOf("id", workspaceIds))
      .execute();
    return rows.map((row) => ({
      ...row,
      sha512_migrations: Number(row.sha512_migrations),
      upstream_apis: parsed(row.upstream_apis).map(({ id }) => id),
    }));
  }

  findDefault(): Promise<WorkspaceRow | undefined> {
    return this.sql.db.selectFrom("workspaces").selectAll().where("is_default", "=", 1).executeTakeFirst();
  }

  list(): Promise<WorkspaceRow[]> {
    return this.sql.db.selectFrom("workspaces").selectAll().orderBy("created_at").orderBy("id").execute();
  }

  /** A page of workspaces, searched by name and id. */
  page(options: PageOptions): Promise<WorkspaceRow[]> {
    return searchPage(this.sql, this.sql.db.selectFrom("workspaces").selectAll(), options).execute();
  }
}

export class WorkspaceWriter extends WorkspaceReader {
  /** Creates a workspace without a root key and returns its id. */
  async create(
    {
      name,
      isDefault = false,
      requestsPerMinute,
    }: { name: string; isDefault?: boolean; requestsPerMinute: number | null },
    random: Random,
    at: Instant,
  ): Promise<string> {
    const id = newId(random, "ws");
    await this.sql.db
      .insertInto("workspaces")
      .values({
        id,
        name,
        name_folded: fold(name),
        enabled: 1,
        has_imported_keys: 0,
        is_default: isDefault ? 1 : 0,
        requests_per_minute: requestsPerMinute,
        created_at: at,
      })
      .execute();
    return id;
  }

  async update(
    workspaceId: string,
    values: Pick<Updateable<WorkspaceRow>, "name" | "enabled" | "requests_per_minute">,
    at: Instant,
  ): Promise<void> {
    await lockAccess(this.sql, workspaceId, "exclusive");
    await this.sql.db
      .updateTable("workspaces")
      .set({ ...values, ...(values.name !== undefined && { name_folded: fold(values.name) }), updated_at: at })
      .where("id", "=", workspaceId)
      .execute();
  }

  /** The root keys of one workspace. */
  rootKeysOf(workspaceId: string): RootKeyWriter {
    return new RootKeyWriter(this.sql, workspaceId);
  }
}

/** What the default workspace alone may read: all workspaces, which it administers. */
export class AdministrationReader extends WorkspaceRows {
  /** All workspaces, if this is the default workspace; otherwise undefined. */
  allWorkspaces(): Promise<WorkspaceReader | undefined> {
    return ifAdministrator(this.workspaceId, new WorkspaceReader(this.sql));
  }
}

/** What the default workspace alone may change. */
export class AdministrationWriter extends WorkspaceRows {
  static readonly writes = true;

  /** All workspaces, if this is the default workspace; otherwise undefined. */
  allWorkspaces(): Promise<WorkspaceWriter | undefined> {
    return ifAdministrator(this.workspaceId, new WorkspaceWriter(this.sql));
  }
}

async function ifAdministrator<All extends WorkspaceReader>(workspaceId: string, all: All): Promise<All | undefined> {
  return (await all.find(workspaceId))?.is_default === 1 ? all : undefined;
}
