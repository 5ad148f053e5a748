import { type Kysely, sql } from "kysely";

/** Webhooks, and the deliveries of events to them. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table webhooks (
       id ${text} not null primary key,
       workspace_id ${text} not null references workspaces (id),
       name ${text},
       url ${text} not null,
       event_types ${text},
       api_ids ${text},
       enabled ${integer} not null,
       disabled_at ${integer},
       disabled_reason ${text},
       failing_since ${integer},
       pending ${integer} not null,
       after_number ${integer} not null,
       secret ${text} not null,
       previous_secret ${text},
       previous_until ${integer},
       created_at ${integer} not null,
       updated_at ${integer},
       deleted_at ${integer}
     )${postgres ? "" : " strict"}`,
  );
  await run("create index webhooks_created on webhooks (workspace_id, created_at, id)");
  await run("create index webhooks_deleted on webhooks (deleted_at) where deleted_at is not null");
  await run(
    `create table webhook_deliveries (
       webhook_id ${text} not null,
       event_number ${integer} not null,
       workspace_id ${text} not null,
       object_id ${text} not null,
       status ${text} not null,
       attempts ${integer} not null,
       deadline ${integer} not null,
       next_attempt_at ${integer},
       created_at ${integer} not null,
       completed_at ${integer},
       attempted_at ${integer},
       answer_status ${integer},
       error ${text},
       duration ${integer},
       primary key (webhook_id, event_number)
     )${postgres ? "" : " strict, without rowid"}`,
  );
  // One delivery to an endpoint at a time for each object: the others wait until it has ended.
  await run(
    `create index webhook_deliveries_next on webhook_deliveries (webhook_id, object_id)
     where next_attempt_at is not null`,
  );
  await run(
    `create index webhook_deliveries_due on webhook_deliveries (webhook_id, next_attempt_at)
     where next_attempt_at is not null`,
  );
  await run(
    `create index webhook_deliveries_pending on webhook_deliveries (webhook_id, object_id, event_number)
     where status = 'pending'`,
  );
  await run("create index webhook_deliveries_status on webhook_deliveries (webhook_id, status, event_number)");
  await run("create index webhook_deliveries_created on webhook_deliveries (created_at)");
  await run("insert into leases (name, holder, token, expires_at) values ('webhooks', '', 0, 0)");
}
