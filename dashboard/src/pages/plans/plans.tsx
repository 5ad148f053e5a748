import type { Plan } from "@latchkey/sdk";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { loadCode } from "../../api/connection.ts";
import { useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Page } from "../../ui/page.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { SearchedListing, useSearchChange } from "../../ui/tables/searched-listing.tsx";
import { CodeSnippet } from "../../ui/text/code-snippet.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { Time } from "../../ui/text/time.tsx";
import { planText } from "./plan-text.ts";

const CreatePlan = lazy(async () => ({
  default: (await loadCode(() => import("./create-plan.tsx"))).CreatePlan,
}));

/** The plans of the workspace, with what each gives. */
export function PlansPage() {
  const { q = "" } = useSearch({ from: "/shell/plans" });
  const navigate = useNavigate({ from: "/plans" });
  const [isCreating, setCreating] = useState(false);
  const needs = "plans.some.read_plan";
  const list = useRows("plans.listPlans", q === "" ? {} : { search: q }, useCan()(needs));
  const onSearch = useSearchChange(navigate);
  const create = (
    <Button kind="primary" needs="plans.*.create_plan" onPress={() => setCreating(true)}>
      <Plus aria-hidden />
      Create plan
    </Button>
  );
  return (
    <Page
      title="Plans"
      summary="A plan gives limits, permissions and roles to many keys and identities. A change reaches all of them within a second."
      actions={create}
    >
      <SearchedListing
        one="plan"
        many="plans"
        placeholder="Name or id"
        search={q}
        onSearch={onSearch}
        of={list}
        needs={needs}
        columns={columns}
        rowId={({ planId }) => planId}
        rowLabel={({ name }) => name}
        onOpen={({ planId }) => void navigate({ to: "/plans/$planId", params: { planId } })}
        empty={
          <EmptyState title="No plans yet" action={create}>
            <p>
              Give many customers the same limits from one place: a key or an identity with the plan has them without a
              copy, so one change raises them for everybody.
            </p>
            <CodeSnippet
              operation="plans.createPlan"
              input={{
                name: "gold",
                ratelimits: [{ name: "requests", limit: 600, duration: 60_000, autoApply: true }],
                permissions: ["documents.read"],
              }}
            />
          </EmptyState>
        }
      />
      {isCreating && (
        <Suspense>
          <CreatePlan
            onClose={() => setCreating(false)}
            onCreated={(planId) => void navigate({ to: "/plans/$planId", params: { planId } })}
          />
        </Suspense>
      )}
    </Page>
  );
}

const columns: readonly Column<Plan>[] = [
  {
    id: "name",
    header: "Name",
    width: "minmax(9rem, 1fr)",
    card: "title",
    sort: ({ name }) => name,
    cell: ({ planId, name }) => (
      <Link
        to="/plans/$planId"
        params={{ planId }}
        tabIndex={-1}
        className="block min-w-0 truncate font-medium hover:underline"
      >
        {name}
      </Link>
    ),
  },
  {
    id: "gives",
    header: "Gives",
    width: "minmax(14rem, 4fr)",
    cell: (plan) => (
      <span className="block truncate" title={planText(plan)}>
        {planText(plan)}
      </span>
    ),
  },
  { id: "version", header: "Version", width: "5rem", align: "right", from: "md", cell: ({ version }) => version },
  {
    id: "changed",
    header: "Changed",
    width: "8rem",
    align: "right",
    from: "md",
    cell: ({ createdAt, updatedAt = createdAt }) => <Time at={updatedAt} relative />,
  },
];
