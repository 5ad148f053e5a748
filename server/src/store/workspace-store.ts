import { AuditReader } from "./administration/audit.ts";
import { RootKeyReader, RootKeyWriter } from "./administration/root-keys.ts";
import { SessionReader, SessionWriter } from "./administration/sessions.ts";
import { WorkspaceReader, WorkspaceWriter } from "./administration/workspaces.ts";
import { BalanceWriter } from "./credits/balances.ts";
import { EventReader } from "./events/reader.ts";
import { IdentityReader, IdentityWriter } from "./identities/identities.ts";
import { ApiReader, ApiWriter } from "./keys/apis.ts";
import { KeyFindingReader } from "./keys/key-findings.ts";
import { KeyGrantWriter } from "./keys/key-grants.ts";
import { KeyMigrationWriter } from "./keys/key-migrations.ts";
import { KeyReader, KeyWriter } from "./keys/keys.ts";
import { PermissionReader, PermissionWriter } from "./permissions/permissions.ts";
import { RoleReader, RoleWriter } from "./permissions/roles.ts";
import { PortalSessionReader, PortalSessionWriter } from "./portal/portal-sessions.ts";
import { NamespaceReader, NamespaceWriter } from "./ratelimits/namespaces.ts";
import { OverrideReader, OverrideWriter } from "./ratelimits/overrides.ts";
import { RatelimitWriter } from "./ratelimits/ratelimits.ts";
import type { Sql } from "./store.ts";
import { DeliveryReader, DeliveryWriter } from "./webhooks/deliveries.ts";
import { WebhookReader, WebhookWriter } from "./webhooks/webhooks.ts";

/** Reads the data of one workspace. Data of other workspaces cannot be reached. */
export class StoreReader {
  readonly apis: ApiReader;
  readonly audit: AuditReader;
  readonly events: EventReader;
  readonly identities: IdentityReader;
  readonly keys: KeyReader;
  readonly keyFindings: KeyFindingReader;
  readonly namespaces: NamespaceReader;
  readonly overrides: OverrideReader;
  readonly permissions: PermissionReader;
  readonly portalSessions: PortalSessionReader;
  readonly roles: RoleReader;
  readonly rootKeys: RootKeyReader;
  readonly sessions: SessionReader;
  readonly webhookDeliveries: DeliveryReader;
  readonly webhooks: WebhookReader;
  readonly #workspaces: WorkspaceReader;
  readonly #workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.apis = new ApiReader(sql, workspaceId);
    this.audit = new AuditReader(sql, workspaceId);
    this.events = new EventReader(sql, workspaceId);
    this.identities = new IdentityReader(sql, workspaceId);
    this.keys = new KeyReader(sql, workspaceId);
    this.keyFindings = new KeyFindingReader(sql, workspaceId);
    this.namespaces = new NamespaceReader(sql, workspaceId);
    this.overrides = new OverrideReader(sql, workspaceId);
    this.permissions = new PermissionReader(sql, workspaceId);
    this.portalSessions = new PortalSessionReader(sql, workspaceId);
    this.roles = new RoleReader(sql, workspaceId);
    this.rootKeys = new RootKeyReader(sql, workspaceId);
    this.sessions = new SessionReader(sql, workspaceId);
    this.webhookDeliveries = new DeliveryReader(sql, workspaceId);
    this.webhooks = new WebhookReader(sql, workspaceId);
    this.#workspaces = new WorkspaceReader(sql);
    this.#workspaceId = workspaceId;
  }

  /** All workspaces, if this is the default workspace, which administers them; otherwise undefined. */
  async allWorkspaces(): Promise<WorkspaceReader | undefined> {
    return (await this.#workspaces.find(this.#workspaceId))?.is_default === 1 ? this.#workspaces : undefined;
  }
}

/** Reads and writes the data of one workspace, within one transaction. */
export class StoreWriter {
  readonly apis: ApiWriter;
  readonly balances: BalanceWriter;
  readonly identities: IdentityWriter;
  readonly keyGrants: KeyGrantWriter;
  readonly keyMigrations: KeyMigrationWriter;
  readonly keys: KeyWriter;
  readonly namespaces: NamespaceWriter;
  readonly overrides: OverrideWriter;
  readonly permissions: PermissionWriter;
  readonly portalSessions: PortalSessionWriter;
  readonly roles: RoleWriter;
  readonly ratelimits: RatelimitWriter;
  readonly rootKeys: RootKeyWriter;
  readonly sessions: SessionWriter;
  readonly webhookDeliveries: DeliveryWriter;
  readonly webhooks: WebhookWriter;
  readonly #workspaces: WorkspaceWriter;
  readonly #workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.apis = new ApiWriter(sql, workspaceId);
    this.balances = new BalanceWriter(sql, workspaceId);
    this.identities = new IdentityWriter(sql, workspaceId);
    this.keyGrants = new KeyGrantWriter(sql, workspaceId);
    this.keyMigrations = new KeyMigrationWriter(sql, workspaceId);
    this.keys = new KeyWriter(sql, workspaceId);
    this.namespaces = new NamespaceWriter(sql, workspaceId);
    this.overrides = new OverrideWriter(sql, workspaceId);
    this.permissions = new PermissionWriter(sql, workspaceId);
    this.portalSessions = new PortalSessionWriter(sql, workspaceId);
    this.roles = new RoleWriter(sql, workspaceId);
    this.ratelimits = new RatelimitWriter(sql, workspaceId);
    this.rootKeys = new RootKeyWriter(sql, workspaceId);
    this.sessions = new SessionWriter(sql, workspaceId);
    this.webhookDeliveries = new DeliveryWriter(sql, workspaceId);
    this.webhooks = new WebhookWriter(sql, workspaceId);
    this.#workspaces = new WorkspaceWriter(sql);
    this.#workspaceId = workspaceId;
  }

  /** All workspaces, if this is the default workspace, which administers them; otherwise undefined. */
  async allWorkspaces(): Promise<WorkspaceWriter | undefined> {
    return (await this.#workspaces.find(this.#workspaceId))?.is_default === 1 ? this.#workspaces : undefined;
  }
}
