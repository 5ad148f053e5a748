import schema from "virtual:operation/keys.createKey";
import { useQuery } from "@tanstack/react-query";
import { read } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { member } from "../../api/schema.ts";
import { useCan } from "../../api/session.ts";
import { ConcurrencyField } from "../../ui/fields/concurrency-field.tsx";
import { ExpiryField } from "../../ui/fields/expiry-field.tsx";
import { Switch, TagsField, TextField } from "../../ui/fields/fields.tsx";
import { JsonField } from "../../ui/fields/json-field.tsx";
import { RatelimitsField } from "../../ui/fields/ratelimits-field.tsx";
import { Fold } from "../../ui/fold.tsx";
import { BudgetField } from "../budgets/budget-field.tsx";
import { PlanField } from "../plans/plan-field.tsx";
import { CreditsField } from "./credits-field.tsx";
import type { Draft, Problems } from "./key-draft.ts";

interface Fields {
  readonly draft: Draft;
  readonly problems: Problems;
  readonly set: (change: Partial<Draft>) => void;
}

/** What most keys have: a name, an owner, a prefix, an expiry. */
export function CommonFields({ draft, problems, set, apiPrefix }: Fields & { apiPrefix: string | undefined }) {
  const isForeign = apiPrefix !== undefined && draft.prefix !== apiPrefix;
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <TextField
        label="Name"
        description={member(schema, "name").description}
        value={draft.name}
        onChange={(name) => set({ name })}
        problem={problems.name}
        placeholder="Acme, production"
        autoFocus
      />
      <TextField
        label="Owner"
        description="Your own id of the user or company. A new one creates an identity."
        value={draft.externalId}
        onChange={(externalId) => set({ externalId })}
        problem={problems.externalId}
        placeholder="acme"
      />
      <TextField
        label="Prefix"
        description={
          isForeign
            ? `The API has the prefix ${apiPrefix}: its leak kit does not find keys with another one.`
            : member(schema, "prefix").description
        }
        value={draft.prefix}
        onChange={(prefix) => set({ prefix })}
        problem={problems.prefix}
        placeholder="live"
        isMono
      />
      <ExpiryField value={draft.expires} onChange={(expires) => set({ expires })} />
    </div>
  );
}

/** Roles, permissions and addresses. */
export function AccessFields({ draft, problems, set }: Fields) {
  const can = useCan();
  const roles = useQuery({ ...read("permissions.listRoles", { limit: 100 }), enabled: can("permissions.*.read_role") });
  const permissions = useQuery({
    ...read("permissions.listPermissions", { limit: 100 }),
    enabled: can("permissions.*.read_permission"),
  });
  return (
    <Fold
      title="Access"
      summary={
        [
          draft.roles.length > 0 && counted(draft.roles.length, "role"),
          draft.permissions.length > 0 && counted(draft.permissions.length, "permission"),
          draft.allowedIps.length > 0 && counted(draft.allowedIps.length, "address", "addresses"),
        ]
          .filter(Boolean)
          .join(", ") || "No permissions"
      }
    >
      <TagsField
        label="Roles"
        description={member(schema, "roles").description}
        value={draft.roles}
        onChange={(roles) => set({ roles })}
        suggestions={roles.data?.map(({ name }) => name) ?? []}
      />
      <TagsField
        label="Permissions"
        description={member(schema, "permissions").description}
        value={draft.permissions}
        onChange={(permissions) => set({ permissions })}
        problem={problems.permissions}
        suggestions={permissions.data?.map(({ slug }) => slug) ?? []}
        placeholder="documents.read"
      />
      <TagsField
        label="Allowed addresses"
        description="IPv4 and IPv6 addresses and CIDRs that may use the key. Empty: every address that the API allows."
        value={draft.allowedIps}
        onChange={(allowedIps) => set({ allowedIps })}
        placeholder="10.0.0.0/8"
      />
    </Fold>
  );
}

/** How much of the API the key may use. */
export function LimitFields({ draft, problems, set }: Fields) {
  const can = useCan();
  const limitCount = draft.ratelimits.length + draft.concurrency.length;
  return (
    <Fold
      title="Limits and credits"
      isOpen={limitCount > 0 || draft.credits.isLimited}
      summary={
        [
          limitCount > 0 && counted(limitCount, "limit"),
          draft.credits.isLimited && counted(Number(draft.credits.remaining), "credit"),
          draft.budgetId !== "" && "a budget",
          draft.plan !== "" && `the plan ${draft.plan}`,
        ]
          .filter(Boolean)
          .join(", ") || "None"
      }
    >
      {can("plans.some.assign_plan") && <PlanField value={draft.plan} onChange={(plan) => set({ plan })} />}
      <RatelimitsField
        value={draft.ratelimits}
        onChange={(ratelimits) => set({ ratelimits })}
        problem={problems.ratelimits}
      />
      <ConcurrencyField
        value={draft.concurrency}
        onChange={(concurrency) => set({ concurrency })}
        problem={problems.concurrency}
        max={member(schema, "concurrency").maxItems}
      />
      <CreditsField value={draft.credits} onChange={(credits) => set({ credits })} problem={problems.credits} />
      {can("budgets.some.assign_budget") && (
        <BudgetField value={draft.budgetId} onChange={(budgetId) => set({ budgetId })} />
      )}
    </Fold>
  );
}

/** What few keys need. */
export function OtherFields({ draft, problems, set, apiId }: Fields & { apiId: string }) {
  const can = useCan();
  return (
    <Fold title="More" summary={draft.recoverable ? "Recoverable" : undefined}>
      <JsonField
        label="Metadata"
        description={member(schema, "meta").description}
        value={draft.meta}
        onChange={(meta) => set({ meta })}
      />
      <TextField
        label="Random bytes"
        description={`${member(schema, "byteLength").description} Empty: the default of the API.`}
        type="number"
        value={draft.byteLength}
        onChange={(byteLength) => set({ byteLength })}
        problem={problems.byteLength}
      />
      <Switch label="Enabled" value={draft.enabled} onChange={(enabled) => set({ enabled })} />
      <Switch
        label="Recoverable"
        description={
          can(`apis.${apiId}.encrypt_key`)
            ? "The key string is stored encrypted and can be shown again."
            : `The root key lacks the permission apis.${apiId}.encrypt_key`
        }
        isDisabled={!can(`apis.${apiId}.encrypt_key`)}
        value={draft.recoverable}
        onChange={(recoverable) => set({ recoverable })}
      />
    </Fold>
  );
}
