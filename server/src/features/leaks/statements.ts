import { sql as raw } from "kysely";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import { findRootKeysByHashes } from "../../platform/store/access/root-key-lookup.ts";
import { type AuditEntry, recordChanges } from "../../platform/store/audit/audit.ts";
import { insertChange } from "../../platform/store/changes.ts";
import type { Sql } from "../../platform/store/store.ts";
import { DerivedKeyWriter } from "../keys/statements/derived-keys.ts";
import { RootKeyWriter } from "../rootKeys/statements.ts";

/** `github`: GitHub's secret scanning. `report`: a call of `keys.reportLeak`. */
export type LeakSource = "github" | "report";

/** A key string that was found where it should not be. */
export interface LeakReport {
  /** The hashes under which a key with this string can be stored. */
  hashes: readonly string[];
  source: LeakSource;
  /** Where it was found, as the report says; null: unknown. */
  url: string | null;
}

/** Keys of one string, in different workspaces, that one report can concern. Only imported keys can share a string. */
const KEYS_PER_REPORT_MAX = 20;

/** Those of these hashes that a key or a root key of any workspace has. */
export async function findLeakedHashes(sql: Sql, hashes: readonly string[]): Promise<string[]> {
  const keys = await keysWithHashes(sql, hashes).select("keys.hash").distinct().execute();
  const derived = await derivedWithHashes(sql, hashes).select("derived_keys.hash").execute();
  const rootKeys = await findRootKeysByHashes(sql, hashes);
  return [...new Set([...keys, ...derived, ...rootKeys].map(({ hash }) => hash))];
}

/**
 * Marks the reported keys and root keys, and disables those whose API says so, or which say so themselves, with an entry in
 * the audit log and an event for each. One that was reported before is disabled again if it has been enabled since, and
 * otherwise does not change. A derived key is ended: it is short-lived, and easily replaced.
 *
 * @returns the change; null if no key changed.
 */
export async function recordLeaks(
  sql: Sql,
  { reports, now }: { reports: readonly LeakReport[]; now: Instant },
  random: Random,
): Promise<{ tags: string[]; sequence: number } | null> {
  const reportOf = new Map<string, LeakReport>();
  for (const report of reports) for (const hash of report.hashes) if (!reportOf.has(hash)) reportOf.set(hash, report);
  // First, because the lock on root keys comes before all others.
  const tags = await recordLeakedRootKeys(sql, reportOf, now, random);
  tags.push(...(await recordLeakedKeys(sql, reportOf, now, random)));
  tags.push(...(await recordLeakedDerivedKeys(sql, reportOf, now, random)));
  // Reports of one moment concern several workspaces.
  return tags.length === 0 ? null : { tags, sequence: await insertChange(sql, tags, now, null) };
}

/** Returns the ids of the root keys that changed. */
async function recordLeakedRootKeys(
  sql: Sql,
  reportOf: ReadonlyMap<string, LeakReport>,
  now: Instant,
  random: Random,
): Promise<string[]> {
  const found = await findRootKeysByHashes(sql, [...reportOf.keys()]);
  const workspaceIds = [...new Set(found.map(({ workspace_id }) => workspace_id))].sort();
  const changed: string[] = [];
  for (const workspaceId of workspaceIds) {
    const rootKeys = new RootKeyWriter(sql, workspaceId);
    for (const { id, hash } of found.filter(({ workspace_id }) => workspace_id === workspaceId)) {
      const rootKey = await rootKeys.findForUpdate(id);
      if (!rootKey) continue;
      // What the configuration says, it says again at the next start. A workspace keeps its last administrator.
      const isDisabled =
        rootKey.enabled === 1 &&
        rootKey.leak_action === "disable" &&
        rootKey.source !== "environment" &&
        !(await rootKeys.hasNoAdministratorBeside([rootKey]));
      if (rootKey.leaked_at !== null && !isDisabled) continue;
      await rootKeys.update(
        id,
        { leaked_at: rootKey.leaked_at ?? now, ...(isDisabled && { enabled: 0 as const }) },
        now,
      );
      const { source, url } = reportOf.get(hash)!;
      const reported = { source, ...(url !== null && { url }), disabled: isDisabled };
      const shown = { rootKeyId: id, name: rootKey.name };
      const entry: AuditEntry = {
        workspaceId,
        occurredAt: now,
        actor: "system",
        action: "keys.reportLeak",
        targets: [id],
        meta: reported,
        events: [
          { type: "root_key.leaked", objectId: id, data: { ...shown, ...reported } },
          ...(isDisabled ? [{ type: "root_key.disabled" as const, objectId: id, data: shown }] : []),
        ],
      };
      await recordChanges(sql, [entry], random);
      changed.push(id);
    }
  }
  return changed;
}

/** Returns the ids of the keys that changed. */
async function recordLeakedKeys(
  sql: Sql,
  reportOf: ReadonlyMap<string, LeakReport>,
  now: Instant,
  random: Random,
): Promise<string[]> {
  const found = await findReportedKeys(sql, [...reportOf.keys()]);
  const counts = new Map<LeakReport, number>();
  const leaked = found.filter(({ hash, leaked_at, leak_action, enabled, deleted_at }) => {
    const report = reportOf.get(hash)!;
    const count = (counts.get(report) ?? 0) + 1;
    counts.set(report, count);
    return (
      count <= KEYS_PER_REPORT_MAX &&
      (leaked_at === null || (leak_action === "disable" && enabled === 1 && deleted_at === null))
    );
  });
  if (leaked.length === 0) return [];

  const disabled = leaked.filter(
    ({ leak_action, enabled, deleted_at }) => leak_action === "disable" && enabled === 1 && deleted_at === null,
  );
  const update = (keys: typeof leaked) => {
    const ids = keys.map(({ id }) => id);
    return sql.db.updateTable("keys").where(sql.dialect.values.isOneOf("id", ids));
  };
  await update(leaked)
    .set({ leaked_at: raw<number>`coalesce(leaked_at, ${now})`, updated_at: now })
    .execute();
  if (disabled.length > 0) await update(disabled).set({ enabled: 0 }).execute();
  const entries = leaked.map((key): AuditEntry => {
    const { source, url } = reportOf.get(key.hash)!;
    const isDisabled = disabled.includes(key);
    const reported = { source, ...(url !== null && { url }), disabled: isDisabled };
    const shown = {
      keyId: key.id,
      apiId: key.api_id,
      ...(key.external_id !== null && { externalId: key.external_id }),
    };
    return {
      workspaceId: key.workspace_id,
      occurredAt: now,
      actor: "system",
      action: "keys.reportLeak",
      targets: [key.id, key.api_id],
      meta: reported,
      events:
        key.deleted_at !== null
          ? []
          : [
              { type: "leak.reported", objectId: key.id, data: { ...shown, ...reported } },
              ...(isDisabled ? [{ type: "key.disabled" as const, objectId: key.id, data: shown }] : []),
            ],
    };
  });
  await recordChanges(sql, entries, random);
  return leaked.map(({ id }) => id);
}

/** Ends the derived keys that were reported, and what was derived of them. Returns their ids. */
async function recordLeakedDerivedKeys(
  sql: Sql,
  reportOf: ReadonlyMap<string, LeakReport>,
  now: Instant,
  random: Random,
): Promise<string[]> {
  const leaked = await derivedWithHashes(sql, [...reportOf.keys()])
    .innerJoin("keys", "keys.id", "derived_keys.top_id")
    .leftJoin("identities", "identities.id", "keys.identity_id")
    .select(["derived_keys.id", "derived_keys.hash", "derived_keys.workspace_id", "derived_keys.parent_id"])
    .select(["derived_keys.top_id", "keys.api_id", "identities.external_id"])
    .where("derived_keys.deleted_at", "is", null)
    .orderBy("derived_keys.id")
    .execute();
  if (leaked.length === 0) return [];
  const entries: AuditEntry[] = [];
  for (const key of leaked) {
    const report = reportOf.get(key.hash);
    if (report === undefined) continue;
    await new DerivedKeyWriter(sql, key.workspace_id).end(key, now);
    const { source, url } = report;
    const reported = { source, ...(url !== null && { url }), disabled: true };
    const externalId = key.external_id === null ? {} : { externalId: key.external_id };
    const data = { keyId: key.id, apiId: key.api_id, ...externalId, ...reported };
    entries.push({
      workspaceId: key.workspace_id,
      occurredAt: now,
      actor: "system",
      action: "keys.reportLeak",
      targets: [...new Set([key.id, key.parent_id, key.top_id, key.api_id])],
      meta: reported,
      events: [{ type: "leak.reported", objectId: key.id, data }],
    });
  }
  await recordChanges(sql, entries, random);
  return leaked.map(({ id }) => id);
}

/** Selects the derived keys of these hashes in every workspace. */
function derivedWithHashes(sql: Sql, hashes: readonly string[]) {
  return sql.db.selectFrom("derived_keys").where(sql.dialect.values.isOneOf("derived_keys.hash", hashes));
}

/** The keys of these hashes in every workspace, locked in a fixed order until the transaction ends. */
async function findReportedKeys(sql: Sql, hashes: readonly string[]) {
  const keys = keysWithHashes(sql, hashes)
    .innerJoin("apis", "apis.id", "keys.api_id")
    .leftJoin("identities", "identities.id", "keys.identity_id")
    .select([
      "keys.id",
      "keys.workspace_id",
      "keys.api_id",
      "keys.hash",
      "keys.enabled",
      "keys.leaked_at",
      "keys.deleted_at",
      "apis.leak_action",
      "identities.external_id",
    ])
    .where("apis.deleted_at", "is", null)
    .orderBy("keys.id");
  return sql.dialect.locks.locking(keys, "no key update", "keys").execute();
}

/** Selects the keys of these hashes in every workspace. A deleted key is one of them: it can be restored. */
function keysWithHashes(sql: Sql, hashes: readonly string[]) {
  return sql.db.selectFrom("keys").where(sql.dialect.values.isOneOf("keys.hash", hashes));
}
