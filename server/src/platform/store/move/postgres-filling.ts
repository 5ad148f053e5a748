import { type CopiedTable, type CopyDatabase, type Filling, type FormerHolder, literal, quoted } from "./database.ts";

/** The same lock as that of the migrations, so that no service prepares the database at the same moment. */
const MIGRATION_LOCK = "7262837123001";

/** What PostgreSQL needs around a copy. */
export class PostgresFilling implements Filling {
  readonly #database: CopyDatabase;

  // Indexes of partitioned tables stay: each partition has its own.
  readonly definitions = `
    select i.relname, 'index', pg_get_indexdef(i.oid), format('drop index %I', i.relname)
    from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
    where t.relnamespace = current_schema()::regnamespace and t.relkind = 'r' and not t.relispartition
      and not x.indisprimary and not exists (select 1 from pg_constraint c where c.conindid = i.oid and c.contype <> 'f')
    union all
    select format('%s.%s', t.relname, c.conname), 'constraint',
      format('alter table %I add constraint %I %s not valid', t.relname, c.conname,
        regexp_replace(pg_get_constraintdef(c.oid), ' NOT VALID$', '')),
      format('alter table %I drop constraint %I', t.relname, c.conname)
    from pg_constraint c join pg_class t on t.oid = c.conrelid
    where c.contype = 'f' and c.connamespace = current_schema()::regnamespace and c.conparentid = 0
      and t.relkind = 'r' and not t.relispartition
    union all
    select format('trigger %s.%s', t.relname, g.tgname), 'trigger', pg_get_triggerdef(g.oid),
      format('drop trigger %I on %I', g.tgname, t.relname)
    from pg_trigger g join pg_class t on t.oid = g.tgrelid
    where t.relnamespace = current_schema()::regnamespace and not t.relispartition and not g.tgisinternal
      and g.tgname not like 'move\\_%'`;

  constructor(database: CopyDatabase) {
    this.#database = database;
  }

  async lockSchema(): Promise<void> {
    await this.#database.run(`select pg_advisory_xact_lock(${MIGRATION_LOCK})`);
  }

  /** Without statistics, PostgreSQL would read whole tables for the next steps and the first calls. */
  async analyze(): Promise<void> {
    await this.#database.run("analyze");
  }

  async finish(tables: readonly CopiedTable[], former: FormerHolder | undefined): Promise<void> {
    await this.#setSequences(tables);
    if (!former) return;
    await this.#database.rows(
      `insert into claim (id, holder, shared, lease_ms) values (1, ?, 0, ${Math.ceil(former.lease)})
       on conflict (id) do nothing`,
      [former.name],
    );
  }

  async validate(): Promise<void> {
    const constraints = await this.#database.rows(
      `select conrelid::regclass::text, conname from pg_constraint
       where contype = 'f' and not convalidated and connamespace = current_schema()::regnamespace`,
    );
    for (const [table, name] of constraints) {
      await this.#database.run(`alter table ${table} validate constraint ${quoted(name!)}`);
    }
  }

  /** Numbers that the database draws continue after the copied ones. */
  async #setSequences(tables: readonly CopiedTable[]): Promise<void> {
    const names = tables.map(({ name }) => literal(name)).join(", ");
    const columns = await this.#database.rows(
      `select table_name, column_name, pg_get_serial_sequence(quote_ident(table_name), column_name)
       from information_schema.columns
       where table_schema = current_schema() and is_identity = 'YES' and table_name in (${names})`,
    );
    for (const [table, column, sequence] of columns) {
      await this.#database.run(
        `select setval(${literal(sequence!)}, max(${quoted(column!)})) from ${quoted(table!)} having count(*) > 0`,
      );
    }
  }
}
