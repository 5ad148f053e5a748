/** The version of the format of backups. */
export const BACKUP_FORMAT = 1;

/** Names of files in a backup, which are their names in the data folder. */
export const DATABASE = "latchkey.db";
export const ANALYTICS = "analytics.db";
export const COUNTERS = "counters";
export const SPOOL = "analytics";
export const VAULT_KEYS = ["vault-key", "vault-key.next"] as const;

/** Describes the other files of a backup. */
export const MANIFEST = "manifest.json";
/** The SHA-256 digest of the manifest, so that a change of the manifest itself is noticed. */
export const MANIFEST_DIGEST = "manifest.json.sha256";

export interface BackupFile {
  name: string;
  bytes: number;
  /** Hexadecimal. */
  sha256: string;
}

export interface Manifest {
  format: number;
  /** The version of the program that made the backup. */
  version: string;
  /** When the copy of the database began, as ISO 8601: writes that were acknowledged before are in it. */
  copiedAt: string;
  /** The newest row of the table `changes`. */
  changes: number;
  /** The last migration that has run. */
  migration: string;
  /** Which releases can read it. Absent: it was made before backups said so. */
  needs?: {
    /** A release that can, and with it every newer one. */
    release: string;
    /** The lowest schema versions of releases that can: of the database, and of the analytics, 0 without. */
    schema: number;
    analyticsSchema: number;
  };
  /** Rows by table of the database. */
  tables: Record<string, number>;
  vault: {
    /** The fingerprint of the master key that recoverable keys need; null if there is no vault. */
    fingerprint: string | null;
    /** Whether the backup contains the master key. */
    includesKey: boolean;
  };
  files: BackupFile[];
}
