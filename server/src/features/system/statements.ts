import { type RawBuilder, sql as raw } from "kysely";
import { fold, folded } from "../../platform/store/search.ts";
import { WorkspaceRows } from "../../platform/store/workspace-rows.ts";

/** The most keys that one search examines, the newest of each API, and the most identities. */
export const SEARCH_EXAMINED_MAX = 100_000;
/** The most objects of any other kind that one search examines, the newest ones. */
export const SEARCH_OTHERS_EXAMINED_MAX = 10_000;
/** The most matches of one kind that are read, of which the caller may be allowed to see only a few. */
const MATCHES_MAX = 1_000;

/** What all found objects have. */
export interface FoundRow {
  id: string;
  name: string | null;
  created_at: number;
}

export interface FoundKey extends FoundRow {
  api_id: string;
  start: string;
  external_id: string | null;
}

/** A table that is searched by columns, which are folded when they are compared if they hold identifiers. */
interface SearchedTable {
  table: string;
  /** What a person recognizes an object by. */
  name: string;
  /** Finds at most one object, by an index. */
  exact: string | undefined;
  columns: readonly RawBuilder<string | null>[];
  hasDeletedRows: boolean;
  examined: number;
}

const column = (name: string) => raw.ref<string | null>(name);
const foldedColumn = (name: string) => folded(raw.ref<string>(name));

const searchedTables = {
  api: {
    table: "apis",
    name: "name",
    exact: undefined,
    columns: [column("name_folded")],
    hasDeletedRows: true,
    examined: SEARCH_OTHERS_EXAMINED_MAX,
  },
  budget: {
    table: "budgets",
    name: "name",
    exact: undefined,
    columns: [column("name_folded")],
    hasDeletedRows: false,
    examined: SEARCH_OTHERS_EXAMINED_MAX,
  },
  identity: {
    table: "identities",
    name: "external_id",
    exact: "external_id",
    columns: [foldedColumn("external_id")],
    hasDeletedRows: true,
    examined: SEARCH_EXAMINED_MAX,
  },
  namespace: {
    table: "ratelimit_namespaces",
    name: "name",
    exact: "name",
    columns: [column("name_folded")],
    hasDeletedRows: true,
    examined: SEARCH_OTHERS_EXAMINED_MAX,
  },
  permission: {
    table: "permissions",
    name: "slug",
    exact: "slug_folded",
    columns: [column("slug_folded"), column("name_folded"), column("description_folded")],
    hasDeletedRows: false,
    examined: SEARCH_OTHERS_EXAMINED_MAX,
  },
  role: {
    table: "roles",
    name: "name",
    exact: "name_folded",
    columns: [column("name_folded"), column("description_folded")],
    hasDeletedRows: false,
    examined: SEARCH_OTHERS_EXAMINED_MAX,
  },
  rootKey: {
    table: "root_keys",
    name: "name",
    exact: "hash",
    columns: [column("name_folded"), foldedColumn("start")],
    hasDeletedRows: true,
    examined: SEARCH_OTHERS_EXAMINED_MAX,
  },
} as const satisfies Record<string, SearchedTable>;

/** A kind of objects that are searched alike. */
export type SearchedKind = keyof typeof searchedTables;
export const searchedKinds = Object.keys(searchedTables) as SearchedKind[];

/** An API whose keys are searched, and which of the words its name has: one flag for each. */
export interface SearchedApi {
  id: string;
  named: readonly boolean[];
}

/**
 * Finds objects of one workspace by parts of what they are called. Every statement examines a bounded number of rows, the
 * newest ones, along an index.
 */
export class SearchReader extends WorkspaceRows {
  /** The object with this id, else the one that this text names exactly. */
  async exact(kind: SearchedKind, text: string): Promise<FoundRow | undefined> {
    const { exact } = searchedTables[kind];
    const byId = await this.#find(kind, "id", text);
    if (byId !== undefined || exact === undefined || exact === "hash") return byId;
    return this.#find(kind, exact, exact.endsWith("_folded") ? fold(text) : text);
  }

  /** The root key with one of these hashes. */
  async rootKeyByHash(hash: string): Promise<FoundRow | undefined> {
    return this.#find("rootKey", "hash", hash);
  }

  async #find(kind: SearchedKind, by: string, text: string): Promise<FoundRow | undefined> {
    const { table, name } = searchedTables[kind];
    const { rows } = await raw<FoundRow>`
      select id, ${raw.ref(name)} as name, created_at from ${raw.table(table)}
      where ${raw.ref(by)} = ${text} and workspace_id = ${this.workspaceId} and ${this.#isLive(kind)}`.execute(
      this.sql.db,
    );
    return rows[0];
  }

  /** Objects in which each of the folded words occurs, the newest first. `isComplete`: whether none was left out. */
  async matching(kind: SearchedKind, words: readonly string[]): Promise<{ rows: FoundRow[]; isComplete: boolean }> {
    const { columns, name, examined } = searchedTables[kind];
    const { contains } = this.sql.dialect;
    const isMatch = words.map((word) => {
      const found = [...columns, foldedColumn("id")].map((text) => contains(text, word));
      return raw`(${raw.join(found, raw` or `)})`;
    });
    const { rows } = await raw<FoundRow>`
      select id, ${raw.ref(name)} as name, created_at from (${this.#newest(kind)}) as newest
      where ${this.#isLive(kind)} and ${raw.join(isMatch, raw` and `)} order by created_at desc, id desc limit ${MATCHES_MAX}`.execute(
      this.sql.db,
    );
    return { rows, isComplete: rows.length < MATCHES_MAX && !(await this.#hasMore(kind, examined)) };
  }

  /** The newest APIs. */
  async newestApis(): Promise<{ rows: { id: string; name_folded: string }[]; isComplete: boolean }> {
    const { rows } = await raw<{ id: string; name_folded: string }>`
      select id, name_folded from (${this.#newest("api")}) as newest where ${this.#isLive("api")}`.execute(this.sql.db);
    return { rows, isComplete: !(await this.#hasMore("api", searchedTables.api.examined)) };
  }

  /** Keys of these APIs in which each word occurs that does not occur in the name of the API, the newest first. */
  async matchingKeys(
    apis: readonly SearchedApi[],
    words: readonly string[],
    limit: number,
  ): Promise<{ rows: FoundKey[]; isComplete: boolean }> {
    const places = await this.#placesOfKeys(apis);
    const flags = words.map((word, index) => ({ word, flag: `w${index}` }));
    const input = this.sql.dialect.values.rows(
      {
        api_id: "text",
        at: "bigint",
        id: "text",
        ...Object.fromEntries(flags.map(({ flag }) => [flag, "bigint"] as const)),
      },
      apis.map(({ id, named }) => ({
        api_id: id,
        // Smaller than every place.
        ...(places.get(id) ?? { at: -1, id: "" }),
        ...Object.fromEntries(flags.map(({ flag }, index) => [flag, named[index] ? 1 : 0])),
      })),
    );
    const { contains } = this.sql.dialect;
    const isMatch = flags.map(({ word, flag }) => {
      const texts = [raw.ref<string>("k.name_folded"), ...["k.id", "k.start", "owner.external_id"].map(foldedColumn)];
      const found = texts.map((text) => contains(text, word));
      return raw`(input.${raw.ref(flag)} = 1 or ${raw.join(found, raw` or `)})`;
    });
    // A cross join, so that the APIs are the outer loop of SQLite.
    const { rows } = await raw<Omit<FoundKey, "external_id" | "name">>`
      select k.id from ${input} cross join keys as k
      left join identities as owner on owner.id = k.identity_id and owner.deleted_at is null
      where k.api_id = input.api_id and k.deleted_at is null and (k.created_at, k.id) > (input.at, input.id)
        and ${raw.join(isMatch, raw` and `)}
      order by k.created_at desc, k.id desc limit ${limit}`.execute(this.sql.db);
    return { rows: await this.keys(rows.map(({ id }) => id)), isComplete: places.size === 0 };
  }

  /** These keys, as far as they exist, the newest first. */
  async keys(keyIds: readonly string[]): Promise<FoundKey[]> {
    if (keyIds.length === 0) return [];
    const rows = await this.sql.db
      .selectFrom("keys")
      .innerJoin("apis", "apis.id", "keys.api_id")
      .leftJoin("identities", (join) =>
        join.onRef("identities.id", "=", "keys.identity_id").on("identities.deleted_at", "is", null),
      )
      .select(["keys.id", "keys.api_id", "keys.start", "keys.name", "keys.created_at", "identities.external_id"])
      .where("keys.workspace_id", "=", this.workspaceId)
      .where("keys.deleted_at", "is", null)
      .where("apis.deleted_at", "is", null)
      .where(this.sql.dialect.values.isOneOf("keys.id", keyIds))
      .execute();
    return rows.sort((a, b) => b.created_at - a.created_at || (a.id < b.id ? 1 : -1));
  }

  /**
   * The place below which the keys of an API are not examined, for APIs with more keys than their share. An API with fewer
   * keys leaves the rest of its share to the others.
   */
  async #placesOfKeys(apis: readonly SearchedApi[]): Promise<Map<string, { at: number; id: string }>> {
    const share = Math.floor(SEARCH_EXAMINED_MAX / apis.length);
    const counted = await raw<{ api_id: string; count: number }>`
      select input.api_id, (select count(*) from (select 1 from keys
        where keys.api_id = input.api_id and keys.deleted_at is null limit ${share + 1}) as first) as count
      from ${this.#ids(apis.map(({ id }) => id))}`.execute(this.sql.db);
    const larger = counted.rows.filter(({ count }) => Number(count) > share).map(({ api_id }) => api_id);
    if (larger.length === 0) return new Map();
    const left = counted.rows.reduce((left, { count }) => left - Math.min(share, Number(count)), SEARCH_EXAMINED_MAX);
    const examined = share + Math.floor(left / larger.length);
    const { rows } = await raw<{ api_id: string; at: number; id: string }>`
      select input.api_id, keys.created_at as at, keys.id from ${this.#ids(larger)} cross join keys
      where keys.id = (select k.id from keys as k where k.api_id = input.api_id and k.deleted_at is null
        order by k.created_at desc, k.id desc limit 1 offset ${examined})`.execute(this.sql.db);
    return new Map(rows.map(({ api_id, at, id }) => [api_id, { at, id }]));
  }

  #ids(apiIds: readonly string[]) {
    return this.sql.dialect.values.rows(
      { api_id: "text" },
      apiIds.map((api_id) => ({ api_id })),
    );
  }

  #newest(kind: SearchedKind) {
    const { table, examined } = searchedTables[kind];
    // Deleted rows count too, so that a workspace with many of them is not searched for longer.
    return raw`select * from ${raw.table(table)} where workspace_id = ${this.workspaceId}
      order by created_at desc, id desc limit ${examined}`;
  }

  async #hasMore(kind: SearchedKind, examined: number): Promise<boolean> {
    const { rows } = await raw`
      select 1 from ${raw.table(searchedTables[kind].table)}
      where workspace_id = ${this.workspaceId} limit 1 offset ${examined}`.execute(this.sql.db);
    return rows.length > 0;
  }

  #isLive(kind: SearchedKind) {
    return searchedTables[kind].hasDeletedRows ? raw`deleted_at is null` : raw`1 = 1`;
  }
}
