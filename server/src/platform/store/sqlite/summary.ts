import { DatabaseSync } from "node:sqlite";

/** What a database contains. */
export interface DatabaseSummary {
  /** Rows by table. */
  tables: Record<string, number>;
  /** The newest row of the table `changes`; 0 if there is none. */
  changes: number;
  /** The last migration that has run. */
  migration: string;
  /** The fingerprint of the vault's master key; null if there is no vault. */
  vaultFingerprint: string | null;
  /** The fingerprints of all master keys under which data keys are sealed; several during a rotation. */
  masterKeys: string[];
}

/** Reads a database file of the service that no process writes to. */
export function summarizeDatabase(file: string): DatabaseSummary {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const column = <T>(text: string) =>
      database
        .prepare(text)
        .all()
        .map((row) => Object.values(row)[0] as T);
    const names = column<string>(
      "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name",
    );
    const [vaultFingerprint = null] = column<string>("select fingerprint from vault");
    const sealing = column<string>("select distinct fingerprint from vault_data_keys");
    return {
      tables: Object.fromEntries(
        names.map((name) => [name, column<number>(`select count(*) from "${name.replaceAll('"', '""')}"`)[0]!]),
      ),
      changes: column<number | null>("select max(sequence) from changes")[0] ?? 0,
      migration: ["kysely_migration", "schema_steps"]
        .filter((table) => names.includes(table))
        .map((table) => column<string | null>(`select max(name) from ${table}`)[0] ?? "")
        .reduce((last, name) => (name > last ? name : last), ""),
      vaultFingerprint,
      masterKeys: [...new Set([...(vaultFingerprint === null ? [] : [vaultFingerprint]), ...sealing])],
    };
  } finally {
    database.close();
  }
}
