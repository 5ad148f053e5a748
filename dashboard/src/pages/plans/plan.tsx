import type { Plan } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link, lazyRouteComponent, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { call, read, refresh, useCall } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { counted } from "../../api/format.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { LimitWords } from "../../ui/charts/limit.tsx";
import { EditInPlace } from "../../ui/fields/edit-in-place.tsx";
import { MetadataFact } from "../../ui/fields/metadata-fact.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { MoreMenu } from "../../ui/overlays/menu.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { Fact, Facts, None, Page, Section } from "../../ui/page.tsx";
import { CopyButton, Id } from "../../ui/text/copy-button.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { Time } from "../../ui/text/time.tsx";
import { WhenSeen } from "../../ui/when-seen.tsx";
import { ActivitySection } from "../audit/activity-section.tsx";
import { PlanMembers } from "./plan-preview.tsx";
import { budgetText, creditsText } from "./plan-text.ts";

const load = () => loadCode(() => import("./plan-editors.tsx"));
const PlanLimitsEditor = lazyRouteComponent(load, "PlanLimitsEditor");
const PlanPermissionsEditor = lazyRouteComponent(load, "PlanPermissionsEditor");
const PlanRolesEditor = lazyRouteComponent(load, "PlanRolesEditor");
const loadBalances = () => loadCode(() => import("./plan-balance-editors.tsx"));
const PlanCreditsEditor = lazyRouteComponent(loadBalances, "PlanCreditsEditor");
const PlanBudgetEditor = lazyRouteComponent(loadBalances, "PlanBudgetEditor");
const PlanMetadataEditor = lazyRouteComponent(load, "PlanMetadataEditor");
const ConcurrencyEditor = lazyRouteComponent(
  () => loadCode(() => import("../holds/concurrency-editor.tsx")),
  "ConcurrencyEditor",
);
const KeysByApi = lazyRouteComponent(() => loadCode(() => import("../keys/keys-by-api.tsx")), "KeysByApi");
const IdentitiesWith = lazyRouteComponent(
  () => loadCode(() => import("../identities/identities-with.tsx")),
  "IdentitiesWith",
);

/** A plan: what it gives, and who has it. */
export function PlanPage() {
  const { planId } = useParams({ from: "/shell/plans/$planId" });
  const navigate = useNavigate();
  const [isDeleting, setDeleting] = useState(false);
  const found = useQuery(read("plans.getPlan", { plan: planId }));
  const plan = found.data;
  const above = (
    <Link to="/plans" className="hover:underline">
      Plans
    </Link>
  );
  if (!plan) {
    return (
      <Page title="Plan" above={above}>
        <Loading of={found} lines={8} />
      </Page>
    );
  }
  const { name } = plan;
  return (
    <Page
      title={name}
      above={above}
      summary={<Id id={planId} />}
      actions={
        <>
          <CopyButton text={() => snippetsOf("plans.getPlan", { plan: name }).curl}>Copy as curl</CopyButton>
          <MoreMenu
            label="Actions"
            entries={[
              {
                label: "Delete the plan…",
                isDanger: true,
                needs: `plans.${planId}.delete_plan`,
                onAction: () => setDeleting(true),
              },
            ]}
          />
        </>
      }
    >
      <Section title="What it gives">
        <p className="mb-3 text-quiet">
          To <PlanMembers of={planId} />. A limit of the same name that a key or an identity has itself comes first.
        </p>
        <Gifts of={plan} />
      </Section>
      <Section title="Keys">
        <WhenSeen>
          <KeysByApi
            of={{ plan: name }}
            empty={<p className="text-quiet">No key has it itself. The page of a key gives it one.</p>}
          />
        </WhenSeen>
      </Section>
      <Section title="Identities">
        <WhenSeen>
          <IdentitiesWith
            of={{ plan: name }}
            label="Identities with the plan"
            empty="No identity has it. All keys of an identity share the limits and the budget of its plan."
          />
        </WhenSeen>
      </Section>
      <ActivitySection target={planId} />
      <ConfirmDialog
        title="Delete the plan"
        action="Delete plan"
        typed={name}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={async () => {
          await call("plans.deletePlan", { plan: planId });
          await navigate({ to: "/plans" });
          await refresh();
          toast({ text: `Deleted the plan ${name}.` });
        }}
      >
        The service refuses while keys or identities have <strong className="font-medium">{name}</strong>. This cannot
        be undone.
      </ConfirmDialog>
    </Page>
  );
}

function Gifts({ of: plan }: { of: Plan }) {
  const {
    planId,
    ratelimits,
    concurrency = [],
    credits,
    budget,
    permissions,
    roles,
    meta,
    version,
    createdAt,
    updatedAt,
  } = plan;
  const needs = `plans.${planId}.update_plan`;
  const { mutateAsync } = useCall("plans.updatePlan");
  return (
    <Facts>
      <Fact name="Limits">
        <EditInPlace
          label="the limits"
          needs={needs}
          display={
            ratelimits.length === 0 ? (
              <None />
            ) : (
              <ul className="space-y-1">
                {ratelimits.map(({ id, name, autoApply, ...limit }) => (
                  <li key={id} className="flex flex-wrap items-baseline gap-x-3">
                    <span className="font-medium">{name}</span>
                    <LimitWords of={limit} />
                    <span className="text-xs text-quiet">
                      {autoApply ? "charged by every verification" : "of keys: charged by verifications that name it"}
                    </span>
                  </li>
                ))}
              </ul>
            )
          }
          editor={(onClose) => <PlanLimitsEditor of={plan} onClose={onClose} />}
        />
      </Fact>
      <Fact name="Calls at once">
        <EditInPlace
          label="how many calls run at once"
          needs={needs}
          display={concurrency.length === 0 ? <None text="unlimited" /> : <Slots of={concurrency} />}
          editor={(onClose) => (
            <ConcurrencyEditor
              before={concurrency}
              save={(value) => mutateAsync({ plan: planId, concurrency: value })}
              onClose={onClose}
            />
          )}
        />
      </Fact>
      <Fact name="Credits of keys">
        <EditInPlace
          label="the credits"
          needs={needs}
          display={credits ? creditsText(credits) : <None />}
          editor={(onClose) => <PlanCreditsEditor of={plan} onClose={onClose} />}
        />
      </Fact>
      <Fact name="Budget of identities">
        <EditInPlace
          label="the budget"
          needs={needs}
          display={budget ? budgetText(budget) : <None />}
          editor={(onClose) => <PlanBudgetEditor of={plan} onClose={onClose} />}
        />
      </Fact>
      <Fact name="Permissions of keys">
        <EditInPlace
          label="the permissions"
          needs={needs}
          display={<Names of={permissions} />}
          editor={(onClose) => <PlanPermissionsEditor of={plan} onClose={onClose} />}
        />
      </Fact>
      <Fact name="Roles of keys">
        <EditInPlace
          label="the roles"
          needs={needs}
          display={<Names of={roles} />}
          editor={(onClose) => <PlanRolesEditor of={plan} onClose={onClose} />}
        />
      </Fact>
      <MetadataFact
        meta={meta}
        needs={needs}
        editor={(before, onClose) => <PlanMetadataEditor of={plan} before={before} onClose={onClose} />}
      />
      <Fact name="Version">
        <span className="tabular-nums">{version}</span>
      </Fact>
      <Fact name="Changed">
        <Time at={updatedAt ?? createdAt} />
      </Fact>
    </Facts>
  );
}

function Slots({ of: limits }: { of: NonNullable<Plan["concurrency"]> }) {
  return (
    <ul className="space-y-1">
      {limits.map(({ name, limit }) => (
        <li key={name}>
          <span className="font-medium">{name}</span> {counted(limit, "call")}
        </li>
      ))}
    </ul>
  );
}

function Names({ of: names }: { of: readonly string[] }) {
  if (names.length === 0) return <None />;
  return (
    <ul className="flex flex-wrap gap-x-3 gap-y-1">
      {names.map((name) => (
        <li key={name}>
          <code className="font-mono text-xs">{name}</code>
        </li>
      ))}
    </ul>
  );
}
