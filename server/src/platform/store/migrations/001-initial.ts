import { type Kysely, sql } from "kysely";

/** The first schema. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  // Identifiers and cursors are compared byte by byte, whatever the database's locale is.
  const text = postgres ? 'text collate "C"' : "text";
  const table = (name: string, columns: string, options = "strict") =>
    sql.raw(`create table ${name} (${columns})${postgres ? "" : ` ${options}`}`).execute(db);
  const index = (text: string) => sql.raw(`create ${text}`).execute(db);

  await table(
    "workspaces",
    `id ${text} not null primary key,
     name ${text} not null,
     enabled ${integer} not null,
     has_imported_keys ${integer} not null,
     is_default ${integer} not null,
     requests_per_minute ${integer},
     created_at ${integer} not null,
     updated_at ${integer}`,
  );
  await index("unique index workspaces_default on workspaces (is_default) where is_default = 1");

  await table(
    "root_keys",
    `id ${text} not null primary key,
     workspace_id ${text} not null references workspaces (id),
     name ${text} not null,
     hash ${text} not null,
     hash_version ${integer} not null,
     start ${text} not null,
     grants ${text} not null,
     source ${text} not null,
     enabled ${integer} not null,
     expires_at ${integer},
     created_at ${integer} not null,
     updated_at ${integer},
     deleted_at ${integer}`,
  );
  await index("unique index root_keys_hash on root_keys (hash) where deleted_at is null");
  await index("index root_keys_workspace on root_keys (workspace_id, id)");

  await table(
    "apis",
    `id ${text} not null primary key,
     workspace_id ${text} not null references workspaces (id),
     name ${text} not null,
     prefix ${text},
     byte_length ${integer},
     delete_protection ${integer} not null,
     allowed_ips ${text},
     created_at ${integer} not null,
     updated_at ${integer},
     deleted_at ${integer}`,
  );
  await index("index apis_workspace on apis (workspace_id, id)");

  await table(
    "identities",
    `id ${text} not null primary key,
     workspace_id ${text} not null references workspaces (id),
     external_id ${text} not null,
     meta ${text},
     created_at ${integer} not null,
     updated_at ${integer},
     deleted_at ${integer}`,
  );
  await index("unique index identities_external on identities (workspace_id, external_id) where deleted_at is null");
  await index("index identities_workspace on identities (workspace_id, id)");

  await table(
    "balances",
    `pool_id ${text} not null primary key,
     workspace_id ${text} not null,
     remaining ${integer} not null check (remaining >= 0),
     refill_interval ${text},
     refill_amount ${integer},
     refill_day ${integer},
     refill_due_at ${integer}`,
    "strict, without rowid",
  );
  await index("index balances_due on balances (refill_due_at) where refill_due_at is not null");

  await table(
    "keys",
    `id ${text} not null primary key,
     workspace_id ${text} not null references workspaces (id),
     api_id ${text} not null references apis (id),
     identity_id ${text} references identities (id),
     pool_id ${text} not null,
     hash ${text} not null,
     hash_version ${integer} not null,
     start ${text} not null,
     name ${text},
     meta ${text},
     enabled ${integer} not null,
     recoverable ${integer} not null,
     expires_at ${integer},
     created_at ${integer} not null,
     updated_at ${integer},
     deleted_at ${integer}`,
  );
  await index("unique index keys_hash on keys (hash, workspace_id)");
  await index("index keys_api on keys (api_id, id) where deleted_at is null");
  await index("index keys_identity on keys (identity_id) where identity_id is not null");
  await index("index keys_pool on keys (pool_id)");

  await table(
    "key_usage",
    `key_id ${text} not null primary key references keys (id) on delete cascade,
     workspace_id ${text} not null,
     last_used_at ${integer} not null`,
    "strict, without rowid",
  );

  await table(
    "ratelimits",
    `id ${text} not null primary key,
     workspace_id ${text} not null,
     key_id ${text} references keys (id) on delete cascade,
     identity_id ${text} references identities (id) on delete cascade,
     name ${text} not null,
     "limit" ${integer} not null,
     duration ${integer} not null,
     auto_apply ${integer} not null,
     created_at ${integer} not null,
     updated_at ${integer},
     check ((key_id is null) <> (identity_id is null))`,
  );
  await index("unique index ratelimits_key on ratelimits (key_id, name) where key_id is not null");
  await index("unique index ratelimits_identity on ratelimits (identity_id, name) where identity_id is not null");

  await table(
    "permissions",
    `id ${text} not null primary key,
     workspace_id ${text} not null references workspaces (id),
     slug ${text} not null,
     slug_folded ${text} not null,
     name ${text} not null,
     description ${text},
     created_at ${integer} not null`,
  );
  await index("unique index permissions_slug on permissions (workspace_id, slug_folded)");
  await index("index permissions_workspace on permissions (workspace_id, id)");

  await table(
    "roles",
    `id ${text} not null primary key,
     workspace_id ${text} not null references workspaces (id),
     name ${text} not null,
     name_folded ${text} not null,
     description ${text},
     created_at ${integer} not null`,
  );
  await index("unique index roles_name on roles (workspace_id, name_folded)");
  await index("index roles_workspace on roles (workspace_id, id)");

  const link = async (name: string, owner: string, ownerTable: string, target: string, targetTable: string) => {
    await table(
      name,
      `workspace_id ${text} not null,
       ${owner} ${text} not null references ${ownerTable} (id) on delete cascade,
       ${target} ${text} not null references ${targetTable} (id) on delete cascade,
       primary key (${owner}, ${target})`,
      "strict, without rowid",
    );
    await index(`index ${name}_reverse on ${name} (${target})`);
  };
  await link("roles_permissions", "role_id", "roles", "permission_id", "permissions");
  await link("keys_permissions", "key_id", "keys", "permission_id", "permissions");
  await link("keys_roles", "key_id", "keys", "role_id", "roles");

  await table(
    "vault",
    `id ${integer} not null primary key check (id = 1),
     fingerprint ${text} not null`,
  );
  await table(
    "vault_data_keys",
    `workspace_id ${text} not null primary key references workspaces (id),
     fingerprint ${text} not null,
     sealed ${text} not null,
     created_at ${integer} not null`,
  );
  await index("index vault_data_keys_fingerprint on vault_data_keys (fingerprint)");
  await table(
    "vault_secrets",
    `key_id ${text} not null primary key references keys (id) on delete cascade,
     workspace_id ${text} not null,
     sealed ${text} not null,
     created_at ${integer} not null`,
  );

  await table(
    "audit_events",
    `id ${text} not null primary key,
     workspace_id ${text} not null,
     occurred_at ${integer} not null,
     actor ${text} not null,
     action ${text} not null,
     targets ${text} not null,
     meta ${text} not null`,
  );
  await index("index audit_events_time on audit_events (workspace_id, occurred_at, id)");

  // On PostgreSQL sequence numbers are given before commits and so become visible out of order; the transaction's own
  // number tells a reader how far it has really seen.
  await table(
    "changes",
    postgres
      ? `sequence bigint generated always as identity primary key,
         transaction_id xid8 not null default pg_current_xact_id(),
         tags text not null,
         created_at bigint not null`
      : `sequence integer primary key autoincrement,
         tags text not null,
         created_at integer not null`,
  );
  if (postgres) await index("index changes_transaction on changes (transaction_id)");
}
