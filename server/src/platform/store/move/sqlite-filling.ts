import type { Filling } from "./database.ts";

/** What SQLite needs around a copy. It continues to number rows after the copied ones by itself. */
export const sqliteFilling: Filling = {
  definitions: `
    select name, 'index', sql, 'drop index "' || name || '"' from sqlite_schema
    where type = 'index' and sql is not null and tbl_name not like 'move\\_%' escape '\\'
    union all
    select 'trigger ' || name, 'trigger', sql, 'drop trigger "' || name || '"' from sqlite_schema
    where type = 'trigger' and name not like 'move\\_%' escape '\\'`,
  // The transaction has locked the file.
  async lockSchema() {},
  async analyze() {},
  async finish() {},
  async validate() {},
};
