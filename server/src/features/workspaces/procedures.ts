import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { HASH_VERSION, hashSecret } from "../../../../engine/src/crypto/hash.ts";
import type { SecretSource } from "../../../../engine/src/crypto/secret.ts";
import { newId, type Random } from "../../../../engine/src/random/random.ts";
import { ADMINISTRATOR } from "../../../../engine/src/rules/grants.ts";
import { findRootKeysByHashes, grantsOf, isAdministrator } from "../../platform/store/access/root-key-lookup.ts";
import { type RootKeyUse, recordRootKeyUses } from "../../platform/store/access/root-key-usage.ts";
import { recordChange } from "../../platform/store/audit/audit.ts";
import { insertChange } from "../../platform/store/changes.ts";
import type { EventContent } from "../../platform/store/events/events.ts";
import type { RootKeyRow, WorkspaceRow } from "../../platform/store/schema.ts";
import { type PoolsOf, Rollback, type Sql } from "../../platform/store/store.ts";
import { createLink } from "../dashboard/statements.ts";
import { RootKeyReader, RootKeyWriter } from "../rootKeys/statements.ts";
import { WorkspaceReader, WorkspaceWriter } from "./statements.ts";

/** A new root key, with the only copy of its string. */
export interface IssuedRootKey {
  rootKeyId: string;
  workspaceId: string;
  key: string;
}

/** Why an administrative command was rejected: a sentence for the operator. */
export interface Rejection {
  rejected: string;
}

export interface AdministrationOptions {
  random: Random;
  secrets: SecretSource;
}

interface CommandContext {
  now: Instant;
  /** The actor in the audit log: `cli` or `system`. */
  actor: string;
}

/** The procedures of workspaces and root keys: look-ups, and changes by the command line and at start. */
export function administrationProcedures({ random, secrets }: AdministrationOptions) {
  const audit = (
    sql: Sql,
    context: CommandContext,
    workspaceId: string,
    action: string,
    targets: string[],
    meta: Readonly<Record<string, unknown>>,
    events: readonly EventContent[],
  ) =>
    recordChange(
      sql,
      { workspaceId, occurredAt: context.now, actor: context.actor, action, targets, meta, events },
      random,
    );

  async function issueRootKey(
    sql: Sql,
    options: CommandContext & {
      workspaceId: string;
      name: string;
      grants: readonly string[];
      expiresAt?: number | undefined;
    },
  ): Promise<IssuedRootKey> {
    const { workspaceId, name, grants, expiresAt = null, now } = options;
    const rootKeys = new RootKeyWriter(sql, workspaceId);
    const { rootKeyId, key, hash } = await rootKeys.issue(
      { name, grants, expiresAt, createdBy: null },
      { random, secrets },
      now,
    );
    await insertChange(sql, [hash], now, workspaceId);
    await audit(sql, options, workspaceId, "rootKeys.createRootKey", [rootKeyId], { name, permissions: grants }, [
      { type: "root_key.created", objectId: rootKeyId, data: { rootKeyId, name } },
    ]);
    return { rootKeyId, workspaceId, key };
  }

  /** Records a change of a workspace in the audit log of the default workspace, which administers the others. */
  async function auditWorkspace(
    sql: Sql,
    context: CommandContext,
    action: string,
    workspaceId: string,
    meta: Readonly<Record<string, unknown>>,
    event: EventContent,
  ): Promise<void> {
    const { id } = (await new WorkspaceReader(sql).findDefault())!;
    await audit(sql, context, id, action, [workspaceId], meta, [event]);
  }

  async function createWorkspace(sql: Sql, context: CommandContext, name: string, isDefault: boolean): Promise<string> {
    const id = await new WorkspaceWriter(sql).create({ name, isDefault, requestsPerMinute: null }, random, context.now);
    await insertChange(sql, [id], context.now, id);
    await auditWorkspace(
      sql,
      context,
      "workspaces.createWorkspace",
      id,
      { name },
      {
        type: "workspace.created",
        objectId: id,
        data: { workspaceId: id },
      },
    );
    return id;
  }

  /** Makes the root key from the environment the only one with that source, enabled and an administrator. */
  async function adoptRootKey(sql: Sql, workspaceId: string, key: string, context: CommandContext): Promise<void> {
    const rootKeys = new RootKeyWriter(sql, workspaceId);
    const hash = hashSecret(key);
    const tags: string[] = [];
    const all = await rootKeys.list();
    for (const replaced of all.filter((rootKey) => rootKey.source === "environment" && rootKey.hash !== hash)) {
      await rootKeys.markDeleted([replaced.id], context.now);
      const because = "replaced by configuration";
      await audit(sql, context, workspaceId, "rootKeys.deleteRootKey", [replaced.id], { because }, [deleted(replaced)]);
      tags.push(replaced.id);
    }
    const existing = all.find((rootKey) => rootKey.hash === hash);
    const administrator = {
      grants: JSON.stringify([ADMINISTRATOR]),
      source: "environment",
      enabled: 1,
      expires_at: null,
    } as const;
    if (!existing) {
      const id = newId(random, "rk");
      await rootKeys.insert({
        id,
        name: "environment",
        hash,
        hash_version: HASH_VERSION,
        // The key was not generated here, so any part of it may be secret.
        start: "",
        ...administrator,
        created_by: null,
        leak_action: null,
        created_at: context.now,
      });
      await audit(sql, context, workspaceId, "rootKeys.createRootKey", [id], { because: GIVEN }, [
        { type: "root_key.created", objectId: id, data: { rootKeyId: id, name: "environment" } },
      ]);
      tags.push(hash);
    } else if (existing.source !== "environment") {
      await rootKeys.update(existing.id, administrator, context.now);
      const { id: rootKeyId, name } = existing;
      await audit(sql, context, workspaceId, "rootKeys.updateRootKey", [rootKeyId], { because: GIVEN }, [
        {
          type: "root_key.updated",
          objectId: rootKeyId,
          data: { rootKeyId, name, changed: ["permissions", "enabled", "expires"] },
        },
      ]);
      tags.push(existing.id);
    }
    if (tags.length > 0) await insertChange(sql, tags, context.now, workspaceId);
  }

  const procedures = {
    reading: {
      workspacesByIds: (sql: Sql, ids: readonly string[]) => new WorkspaceReader(sql).findAll(ids),
      rootKeysByHashes: (sql: Sql, hashes: readonly string[]) => findRootKeysByHashes(sql, hashes),
      listWorkspaces: (sql: Sql, _: null): Promise<WorkspaceRow[]> => new WorkspaceReader(sql).list(),
      listRootKeys: (sql: Sql, { workspaceId }: { workspaceId: string }): Promise<RootKeyRow[]> =>
        new RootKeyReader(sql, workspaceId).list(),
      findDefaultWorkspace: (sql: Sql, _: null) => new WorkspaceReader(sql).findDefault(),
    },
    writing: {
      createSignInLink: (sql: Sql, { rootKeyId, now }: { rootKeyId: string; now: Instant }) =>
        createLink(sql, { rootKeyId, now }, secrets),
      recordRootKeyUses: (sql: Sql, uses: readonly RootKeyUse[]) => recordRootKeyUses(sql, uses),

      /**
       * Creates the default workspace and its administrator if they are missing, and returns a root key that was created.
       * Runs under the migration lock, so that one of several nodes that start together creates it.
       */
      async establish(
        sql: Sql,
        { now, rootKey }: { now: Instant; rootKey: string | undefined },
      ): Promise<{ workspaceId: string; issued?: IssuedRootKey; otherAdministrators?: number }> {
        const context = { now, actor: "system" };
        const existing = await new WorkspaceReader(sql).findDefault();
        const workspaceId = existing?.id ?? (await createWorkspace(sql, context, "default", true));
        if (rootKey !== undefined) {
          await adoptRootKey(sql, workspaceId, rootKey, context);
          const rootKeys = await new RootKeyReader(sql, workspaceId).list();
          const others = rootKeys.filter(
            (other) => other.source !== "environment" && isUsedAsAdministrator(other, now),
          );
          return { workspaceId, otherAdministrators: others.length };
        }
        if (existing) return { workspaceId };
        return {
          workspaceId,
          issued: await issueRootKey(sql, { ...context, workspaceId, name: "administrator", grants: [ADMINISTRATOR] }),
        };
      },

      async createWorkspace(sql: Sql, options: CommandContext & { name: string }): Promise<IssuedRootKey> {
        const workspaceId = await createWorkspace(sql, options, options.name, false);
        return issueRootKey(sql, { ...options, workspaceId, name: "administrator", grants: [ADMINISTRATOR] });
      },

      async setWorkspaceEnabled(
        sql: Sql,
        options: CommandContext & { workspaceId: string; enabled: boolean },
      ): Promise<{ workspaceId: string; enabled: boolean } | Rollback<Rejection>> {
        const { workspaceId, enabled, now } = options;
        const workspaces = new WorkspaceWriter(sql);
        if (!(await workspaces.find(workspaceId))) {
          return new Rollback({ rejected: `There is no workspace ${workspaceId}.` });
        }
        await workspaces.update(workspaceId, { enabled: enabled ? 1 : 0 }, now);
        await insertChange(sql, [workspaceId], now, workspaceId);
        await auditWorkspace(
          sql,
          options,
          "workspaces.updateWorkspace",
          workspaceId,
          { enabled },
          {
            type: "workspace.updated",
            objectId: workspaceId,
            data: { workspaceId, changed: ["enabled"] },
          },
        );
        return { workspaceId, enabled };
      },

      async createRootKey(
        sql: Sql,
        options: CommandContext & {
          workspaceId: string;
          name: string;
          grants: readonly string[];
          expiresAt?: number | undefined;
        },
      ): Promise<IssuedRootKey | Rollback<Rejection>> {
        if (!(await new WorkspaceReader(sql).find(options.workspaceId))) {
          return new Rollback({ rejected: `There is no workspace ${options.workspaceId}.` });
        }
        return issueRootKey(sql, options);
      },

      async deleteRootKey(
        sql: Sql,
        options: CommandContext & { workspaceId: string; rootKeyId: string },
      ): Promise<{ rootKeyId: string; livingDescendants: number } | Rollback<Rejection>> {
        const { workspaceId, rootKeyId, now } = options;
        const rootKeys = new RootKeyWriter(sql, workspaceId);
        const rootKey = await rootKeys.findForUpdate(rootKeyId);
        if (!rootKey)
          return new Rollback({ rejected: `There is no root key ${rootKeyId} in workspace ${workspaceId}.` });
        if (await rootKeys.hasNoAdministratorBeside([rootKey])) {
          return new Rollback({
            rejected: `${rootKeyId} is the last administrator of workspace ${workspaceId}. Create another one first.`,
          });
        }
        await rootKeys.markDeleted([rootKeyId], now);
        await insertChange(sql, [rootKeyId], now, workspaceId);
        await audit(sql, options, workspaceId, "rootKeys.deleteRootKey", [rootKeyId], { name: rootKey.name }, [
          deleted(rootKey),
        ]);
        return { rootKeyId, livingDescendants: (await rootKeys.findMade(rootKeyId, null)).living };
      },

      /**
       * Deletes every root key of a workspace that has the administrator's grant, except the one given by `keep`, or else
       * the one from the environment.
       */
      async revokeOtherRootKeys(
        sql: Sql,
        options: CommandContext & { workspaceId: string; keep: string | undefined },
      ): Promise<{ kept: string; revoked: { id: string; name: string }[] } | Rollback<Rejection>> {
        const { workspaceId, keep, now } = options;
        const rootKeys = new RootKeyWriter(sql, workspaceId);
        const all = await rootKeys.listForUpdate();
        const kept = all.find(({ id, source }) => (keep === undefined ? source === "environment" : id === keep));
        if (!kept) {
          return new Rollback({
            rejected:
              keep === undefined
                ? `No root key of workspace ${workspaceId} is given by LATCHKEY_ROOT_KEY: say which one to keep with --keep <rootKeyId>.`
                : `There is no root key ${keep} in workspace ${workspaceId}.`,
          });
        }
        if (!isAdministrator(kept)) {
          return new Rollback({
            rejected: `${kept.id} is no administrator that is enabled and without an expiry: without the others, workspace ${workspaceId} would have none.`,
          });
        }
        const others = all.filter((other) => other.id !== kept.id && grantsOf(other).includes(ADMINISTRATOR));
        const fromEnvironment = others.find(({ source }) => source === "environment");
        if (fromEnvironment) {
          return new Rollback({
            rejected: `${fromEnvironment.id} is given by LATCHKEY_ROOT_KEY, and the next start would make it again. Change that first, or keep it.`,
          });
        }
        for (const other of others) {
          await rootKeys.markDeleted([other.id], now);
          await audit(sql, options, workspaceId, "rootKeys.deleteRootKey", [other.id], { name: other.name }, [
            deleted(other),
          ]);
        }
        if (others.length > 0)
          await insertChange(
            sql,
            others.map(({ id }) => id),
            now,
            workspaceId,
          );
        return { kept: kept.id, revoked: others.map(({ id, name }) => ({ id, name })) };
      },
    },
  };
  const pools: PoolsOf<typeof procedures> = {
    workspacesByIds: "lookup",
    rootKeysByHashes: "lookup",
    recordRootKeyUses: "maintenance",
  };
  return { ...procedures, pools };
}

const GIVEN = "given by configuration";

function deleted({ id, name }: Pick<RootKeyRow, "id" | "name">): EventContent {
  return { type: "root_key.deleted", objectId: id, data: { rootKeyId: id, name } };
}

/** Whether calls with this root key are accepted and have every permission. */
function isUsedAsAdministrator(rootKey: RootKeyRow, now: Instant): boolean {
  const isExpired = rootKey.expires_at !== null && rootKey.expires_at <= now;
  return rootKey.enabled === 1 && !isExpired && grantsOf(rootKey).includes(ADMINISTRATOR);
}
