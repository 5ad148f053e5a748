import type { Instant } from "../clock/clock.ts";
import { HASH_VERSION, hashSecret } from "../crypto/hash.ts";
import type { SecretSource } from "../crypto/secret.ts";
import { newId, type Random } from "../random/random.ts";
import { formatKey } from "../rules/key-string.ts";
import { insertAuditEvent } from "./audit.ts";
import { announceChange } from "./changes.ts";
import { RootKeyReader, RootKeyWriter } from "./root-keys.ts";
import type { RootKeyRow, WorkspaceRow } from "./schema.ts";
import { Rollback, type Sql } from "./store.ts";
import { WorkspaceReader, WorkspaceWriter } from "./workspaces.ts";

const ROOT_KEY_PREFIX = "lk_root";
const ROOT_KEY_BYTES = 24;
const ADMINISTRATOR = "*";

/** A root key that was just made, with the only copy of its string. */
export interface IssuedRootKey {
  rootKeyId: string;
  workspaceId: string;
  key: string;
}

/** A refusal of an administrative command: a sentence for the person who gave it. */
export interface Refusal {
  refused: string;
}

export interface AdministrationWorld {
  random: Random;
  secrets: SecretSource;
}

interface Act {
  now: Instant;
  /** Who does it: `cli` or `system`. */
  actor: string;
}

/**
 * What is done to workspaces and root keys from the command line and at start, beside the operations that callers have.
 */
export function administrationProcedures({ random, secrets }: AdministrationWorld) {
  const audit = (sql: Sql, act: Act, workspaceId: string, action: string, targets: string[], meta = {}) =>
    insertAuditEvent(sql, {
      id: newId(random, "evt"),
      workspaceId,
      occurredAt: act.now,
      actor: act.actor,
      action,
      targets,
      meta,
    });

  async function issueRootKey(
    sql: Sql,
    options: Act & { workspaceId: string; name: string; grants: readonly string[]; expiresAt?: number | undefined },
  ): Promise<IssuedRootKey> {
    const { key, start } = formatKey(ROOT_KEY_PREFIX, secrets(ROOT_KEY_BYTES));
    const hash = hashSecret(key);
    const id = newId(random, "rk");
    await new RootKeyWriter(sql, options.workspaceId).insert({
      id,
      name: options.name,
      hash,
      hash_version: HASH_VERSION,
      start,
      grants: JSON.stringify(options.grants),
      source: "issued",
      enabled: 1,
      expires_at: options.expiresAt ?? null,
      created_at: options.now,
    });
    await announceChange(sql, [hash], options.now);
    await audit(sql, options, options.workspaceId, "rootKeys.createRootKey", [id], {
      name: options.name,
      permissions: options.grants,
    });
    return { rootKeyId: id, workspaceId: options.workspaceId, key };
  }

  async function insertWorkspace(sql: Sql, act: Act, name: string, isDefault: boolean): Promise<string> {
    const id = newId(random, "ws");
    await new WorkspaceWriter(sql).insert({
      id,
      name,
      enabled: 1,
      has_imported_keys: 0,
      is_default: isDefault ? 1 : 0,
      requests_per_minute: null,
      created_at: act.now,
      updated_at: null,
    });
    await announceChange(sql, [id], act.now);
    await audit(sql, act, id, "workspaces.createWorkspace", [id], { name });
    return id;
  }

  /** Makes what the environment says about the administrator's root key true, and leaves alone what it does not say. */
  async function adoptRootKey(sql: Sql, workspaceId: string, key: string, act: Act): Promise<void> {
    const rootKeys = new RootKeyWriter(sql, workspaceId);
    const hash = hashSecret(key);
    const tags: string[] = [];
    const all = await rootKeys.list();
    for (const former of all.filter((rootKey) => rootKey.source === "environment" && rootKey.hash !== hash)) {
      await rootKeys.update(former.id, { deleted_at: act.now });
      await audit(sql, act, workspaceId, "rootKeys.deleteRootKey", [former.id], {
        because: "replaced by configuration",
      });
      tags.push(former.id);
    }
    const given = all.find((rootKey) => rootKey.hash === hash);
    const administrator = {
      grants: JSON.stringify([ADMINISTRATOR]),
      source: "environment",
      enabled: 1,
      expires_at: null,
    } as const;
    if (!given) {
      const id = newId(random, "rk");
      await rootKeys.insert({
        id,
        name: "environment",
        hash,
        hash_version: HASH_VERSION,
        // Somebody else chose it, so nobody knows which part of it may be shown.
        start: "",
        ...administrator,
        created_at: act.now,
      });
      await audit(sql, act, workspaceId, "rootKeys.createRootKey", [id], { because: "given by configuration" });
      tags.push(hash);
    } else if (given.source !== "environment") {
      await rootKeys.update(given.id, { ...administrator, updated_at: act.now });
      await audit(sql, act, workspaceId, "rootKeys.updateRootKey", [given.id], { because: "given by configuration" });
      tags.push(given.id);
    }
    if (tags.length > 0) await announceChange(sql, tags, act.now);
  }

  return {
    reading: {
      listWorkspaces: (sql: Sql, _: null): Promise<WorkspaceRow[]> => new WorkspaceReader(sql).list(),
      listRootKeys: (sql: Sql, { workspaceId }: { workspaceId: string }): Promise<RootKeyRow[]> =>
        new RootKeyReader(sql, workspaceId).list(),
      findDefaultWorkspace: (sql: Sql, _: null) => new WorkspaceReader(sql).findDefault(),
    },
    writing: {
      /**
       * Makes sure that there is a default workspace with an administrator. Gives the root key that was made, if one
       * was. Runs under the lock of the migrations, so that of nodes which start together one makes it.
       */
      async establish(
        sql: Sql,
        { now, rootKey }: { now: Instant; rootKey: string | undefined },
      ): Promise<{ workspaceId: string; issued?: IssuedRootKey }> {
        const act = { now, actor: "system" };
        const existing = await new WorkspaceReader(sql).findDefault();
        const workspaceId = existing?.id ?? (await insertWorkspace(sql, act, "default", true));
        if (rootKey !== undefined) {
          await adoptRootKey(sql, workspaceId, rootKey, act);
          return { workspaceId };
        }
        if (existing) return { workspaceId };
        return {
          workspaceId,
          issued: await issueRootKey(sql, { ...act, workspaceId, name: "administrator", grants: [ADMINISTRATOR] }),
        };
      },

      async createWorkspace(sql: Sql, options: Act & { name: string }): Promise<IssuedRootKey> {
        const workspaceId = await insertWorkspace(sql, options, options.name, false);
        return issueRootKey(sql, { ...options, workspaceId, name: "administrator", grants: [ADMINISTRATOR] });
      },

      async setWorkspaceEnabled(
        sql: Sql,
        options: Act & { workspaceId: string; enabled: boolean },
      ): Promise<{ workspaceId: string; enabled: boolean } | Rollback<Refusal>> {
        const { workspaceId, enabled, now } = options;
        const workspaces = new WorkspaceWriter(sql);
        if (!(await workspaces.find(workspaceId))) {
          return new Rollback({ refused: `There is no workspace ${workspaceId}.` });
        }
        await workspaces.update(workspaceId, { enabled: enabled ? 1 : 0, updated_at: now });
        await announceChange(sql, [workspaceId], now);
        await audit(sql, options, workspaceId, "workspaces.updateWorkspace", [workspaceId], { enabled });
        return { workspaceId, enabled };
      },

      async createRootKey(
        sql: Sql,
        options: Act & { workspaceId: string; name: string; grants: readonly string[]; expiresAt?: number | undefined },
      ): Promise<IssuedRootKey | Rollback<Refusal>> {
        if (!(await new WorkspaceReader(sql).find(options.workspaceId))) {
          return new Rollback({ refused: `There is no workspace ${options.workspaceId}.` });
        }
        return issueRootKey(sql, options);
      },

      async deleteRootKey(
        sql: Sql,
        options: Act & { workspaceId: string; rootKeyId: string },
      ): Promise<{ rootKeyId: string } | Rollback<Refusal>> {
        const { workspaceId, rootKeyId, now } = options;
        const rootKeys = new RootKeyWriter(sql, workspaceId);
        const rootKey = await rootKeys.find(rootKeyId);
        if (!rootKey)
          return new Rollback({ refused: `There is no root key ${rootKeyId} in workspace ${workspaceId}.` });
        const administrators = (await rootKeys.list()).filter(
          ({ grants, expires_at, enabled }) =>
            (JSON.parse(grants) as string[]).includes(ADMINISTRATOR) && expires_at === null && enabled === 1,
        );
        if (administrators.length === 1 && administrators[0]!.id === rootKeyId) {
          return new Rollback({
            refused: `${rootKeyId} is the last administrator of workspace ${workspaceId}. Create another one first.`,
          });
        }
        await rootKeys.update(rootKeyId, { deleted_at: now });
        await announceChange(sql, [rootKeyId], now);
        await audit(sql, options, workspaceId, "rootKeys.deleteRootKey", [rootKeyId], { name: rootKey.name });
        return { rootKeyId };
      },
    },
  };
}
