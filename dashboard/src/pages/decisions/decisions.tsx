import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { type DecisionsSearch, decisionCodes } from "../../layout/searches.ts";
import { rangeOptions } from "../../ui/fields/range.tsx";
import { UnlistedPanel } from "../../ui/overlays/panel.tsx";
import { Page } from "../../ui/page.tsx";
import { FilterChip, Filters, FilterText } from "../../ui/tables/filters.tsx";
import { useSearchMembers } from "../../ui/tables/listing.tsx";
import { ListingWithPanel } from "../../ui/tables/listing-with-panel.tsx";
import { CopyButton } from "../../ui/text/copy-button.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { aboutFilter, filterOf } from "./decision.ts";
import { decisionColumns, useNamespaceNames } from "./decision-columns.tsx";
import { DecisionPanel } from "./decision-panel.tsx";

const outcomes = [
  { value: "refused", label: "Refused" },
  { value: "passed", label: "Passed (a sample)" },
] as const;
const codeOptions = decisionCodes.map((value) => ({ value, label: value }));

/** The log of decisions: what happened to a request, and why. */
export function DecisionsPage() {
  const search = useSearch({ from: "/shell/decisions" });
  const navigate = useNavigate({ from: "/decisions" });
  const can = useCan();
  const needs = can("ratelimits.some.read_analytics") ? "ratelimits.some.read_analytics" : "apis.some.read_analytics";
  const isAllowed = can(needs);
  const { range, outcome, code, about, open } = search;
  const filter = useMemo(() => filterOf({ range, outcome, code, about }), [range, outcome, code, about]);
  const list = useRows("analytics.listDecisions", { ...filter, limit: 100 }, isAllowed);
  const set = useSearchMembers<DecisionsSearch>(navigate);
  const namespaces = useNamespaceNames();
  const columns = useMemo(() => decisionColumns(namespaces, open !== undefined), [namespaces, open]);
  const isUnknown = about !== undefined && aboutFilter(about) === undefined;
  return (
    <Page
      title="Decisions"
      summary="Refused verifications and rate limits one by one, and a sample of what passed. The newest is first."
      actions={<CopyButton text={() => snippetsOf("analytics.listDecisions", filter).curl}>Copy as curl</CopyButton>}
    >
      <Filters>
        <FilterChip label="Time" value={range} onChange={(range) => set({ range })} options={rangeOptions} />
        <FilterChip label="Outcome" value={outcome} onChange={(outcome) => set({ outcome })} options={outcomes} />
        <FilterChip label="Code" value={code} onChange={(code) => set({ code })} options={codeOptions} />
        <FilterText
          label="About"
          value={about}
          onChange={(about) => set({ about })}
          placeholder="req_…, key_…, id_…, api_…, rlns_…"
        />
      </Filters>
      {isUnknown && (
        <p role="status" className="mb-3 text-warn">
          “{about}” is no id of a request, key, identity, API or namespace: it filters nothing.
        </p>
      )}
      <ListingWithPanel
        of={list}
        needs={needs}
        label="Decisions"
        columns={columns}
        rowId={({ id }) => id}
        rowLabel={({ code }) => code}
        open={open}
        onOpen={(open, replace) => set({ open }, replace)}
        panel={(id, decision) =>
          decision ? (
            <DecisionPanel of={decision} onFilter={(about) => set({ about, open: undefined })} />
          ) : (
            list.rows && <UnlistedPanel id={id} />
          )
        }
        noMatch={Object.keys(filter).length > 0 ? "No decision matches the filters" : undefined}
        empty={
          <EmptyState title="No decisions yet">
            <p>Verify a key that is disabled or over its limit: the refusal appears here within seconds.</p>
          </EmptyState>
        }
      />
    </Page>
  );
}
