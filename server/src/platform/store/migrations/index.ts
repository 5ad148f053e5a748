import type { Kysely } from "kysely";
import { up as initial } from "./001-initial.ts";
import { up as ratelimitNamespaces } from "./002-ratelimit-namespaces.ts";
import { up as idempotency } from "./003-idempotency.ts";
import { up as permissionSearch } from "./004-permission-search.ts";
import { up as administration } from "./005-administration.ts";
import { up as keyMigrations } from "./006-key-migrations.ts";
import { up as failovers } from "./007-failovers.ts";
import { up as workspaceCounts } from "./009-workspace-counts.ts";
import { up as redisEpoch } from "./010-redis-epoch.ts";
import { up as claim } from "./011-claim.ts";
import { up as listsByCreation } from "./012-lists-by-creation.ts";
import { up as keySearch } from "./013-key-search.ts";
import { up as rootKeyUsage } from "./014-root-key-usage.ts";
import { up as sessions } from "./015-sessions.ts";
import { up as moves } from "./016-moves.ts";
import { up as redisPartitions } from "./017-redis-partitions.ts";
import { up as retention } from "./018-retention.ts";
import { up as partitions } from "./019-partitions.ts";
import { up as deletedRows } from "./020-deleted-rows.ts";
import { up as events } from "./021-events.ts";
import { up as portalSessions } from "./022-portal-sessions.ts";
import { up as leaks } from "./023-leaks.ts";
import { up as upstreams } from "./024-upstreams.ts";
import { up as ownKeyAccess } from "./025-own-key-access.ts";
import { up as strictLimits } from "./026-strict-limits.ts";
import { up as webhooks } from "./027-webhooks.ts";
import { up as endedKeys } from "./028-ended-keys.ts";
import { up as workspaceUsage } from "./029-workspace-usage.ts";
import { up as webhookPositions } from "./030-webhook-positions.ts";
import { up as rootKeyMakers } from "./031-root-key-makers.ts";
import { up as tokenKey } from "./032-token-key.ts";
import { up as workspaceBytes } from "./033-workspace-bytes.ts";
import { up as refillCalendars } from "./034-refill-calendars.ts";
import { up as apiPortals } from "./035-api-portals.ts";
import { up as deletedKeys } from "./036-deleted-keys.ts";
import { up as budgets } from "./037-budgets.ts";
import { up as holds } from "./038-holds.ts";
import { up as slots } from "./039-slots.ts";
import { up as keyAttributes } from "./040-key-attributes.ts";
import { up as plans } from "./041-plans.ts";
import { up as oauth } from "./046-oauth.ts";
import { up as derivedKeys } from "./047-derived-keys.ts";
import { up as planCredits } from "./049-plan-credits.ts";
import { up as planBudgets } from "./050-plan-budgets.ts";
import { up as apiPolicies } from "./051-api-policies.ts";
import { up as ratelimitDescriptors } from "./052-ratelimit-descriptors.ts";
import { up as shadowLimits } from "./053-shadow-limits.ts";
import { up as changeWorkspaces } from "./057-change-workspaces.ts";

export type MigrationStep = (db: Kysely<unknown>, dialect: "sqlite" | "postgres") => Promise<void>;

/** A step after the first ones, with its demand on the programs that run beside it. */
export interface SchemaStep {
  up: MigrationStep;
  /** The lowest schema version of programs that may run on a database with this step; 0: any that could before it. */
  needs: number;
}

/** A step that only adds: programs that do not know it continue to work beside it, and after a rollback. */
export const expand = (up: MigrationStep): SchemaStep => ({ up, needs: 0 });

/**
 * A step that takes away what programs below the schema version `needs` use. It may ship only in a release after that of
 * `needs`, so that a rolling upgrade never runs it beside such a program: decisions/030.
 */
export const contract = (up: MigrationStep, needs: number): SchemaStep => ({ up, needs });

/** The steps of the first releases, in order. Complete, and never edited. */
export const firstSteps: Readonly<Record<string, MigrationStep>> = {
  "001-initial": initial,
  "002-ratelimit-namespaces": ratelimitNamespaces,
  "003-idempotency": idempotency,
  "004-permission-search": permissionSearch,
  "005-administration": administration,
  "006-key-migrations": keyMigrations,
  "007-failovers": failovers,
  "009-workspace-counts": workspaceCounts,
  "010-redis-epoch": redisEpoch,
  "011-claim": claim,
  "012-lists-by-creation": listsByCreation,
  "013-key-search": keySearch,
  "014-root-key-usage": rootKeyUsage,
  "015-sessions": sessions,
};

/** Every later step, in order. A step that has shipped is never edited. */
export const schemaSteps: Readonly<Record<string, SchemaStep>> = {
  "016-moves": expand(moves),
  "017-redis-partitions": expand(redisPartitions),
  "018-retention": expand(retention),
  "019-partitions": expand(partitions),
  "020-deleted-rows": expand(deletedRows),
  "021-events": expand(events),
  "022-portal-sessions": expand(portalSessions),
  "023-leaks": expand(leaks),
  "024-upstreams": expand(upstreams),
  "025-own-key-access": expand(ownKeyAccess),
  "026-strict-limits": expand(strictLimits),
  "027-webhooks": expand(webhooks),
  "028-ended-keys": expand(endedKeys),
  "029-workspace-usage": expand(workspaceUsage),
  "030-webhook-positions": expand(webhookPositions),
  "031-root-key-makers": expand(rootKeyMakers),
  "032-token-key": expand(tokenKey),
  "033-workspace-bytes": expand(workspaceBytes),
  "034-refill-calendars": expand(refillCalendars),
  "035-api-portals": expand(apiPortals),
  "036-deleted-keys": expand(deletedKeys),
  "037-budgets": expand(budgets),
  "038-holds": expand(holds),
  "039-slots": expand(slots),
  "040-key-attributes": expand(keyAttributes),
  "041-plans": expand(plans),
  "046-oauth": expand(oauth),
  "047-derived-keys": expand(derivedKeys),
  "049-plan-credits": expand(planCredits),
  "050-plan-budgets": expand(planBudgets),
  "051-api-policies": expand(apiPolicies),
  "052-ratelimit-descriptors": expand(ratelimitDescriptors),
  "053-shadow-limits": expand(shadowLimits),
  "057-change-workspaces": expand(changeWorkspaces),
};
