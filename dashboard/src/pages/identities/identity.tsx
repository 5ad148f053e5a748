import schema from "virtual:operation/identities.updateIdentity";
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { call, type Data, read, refresh, useCall } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { member } from "../../api/schema.ts";
import { useCan } from "../../api/session.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { share } from "../../api/stats.ts";
import { SUBJECTS_MAX } from "../../api/workspace-stats.ts";
import { Code } from "../../ui/code-snippet.tsx";
import { CopyButton, Id } from "../../ui/copy-button.tsx";
import { ConfirmDialog } from "../../ui/dialog.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { InlineEdit } from "../../ui/inline-edit.tsx";
import { JsonField, parseObject } from "../../ui/json-field.tsx";
import { LimitWords } from "../../ui/limit.tsx";
import { Loading } from "../../ui/loading.tsx";
import { MoreMenu } from "../../ui/menu.tsx";
import { Count } from "../../ui/number.tsx";
import { Fact, Facts, None, Page, Section } from "../../ui/page.tsx";
import { type RangeName, RangePicker, useRange } from "../../ui/range.tsx";
import { RatelimitsField, ratelimitDraft, ratelimitInputs } from "../../ui/ratelimits-field.tsx";
import { Skeleton } from "../../ui/skeleton.tsx";
import { toast } from "../../ui/toast.tsx";
import { VerificationChart } from "../../ui/verification-chart.tsx";
import { Activity } from "../keys/activity.tsx";

const CreateSession = lazy(async () => ({ default: (await import("../portal/create-session.tsx")).CreateSession }));

type Identity = Data<"identities.getIdentity">;

/** An owner of keys: its keys, limits, metadata, use and changes. */
export function IdentityPage() {
  const { identityId } = useParams({ from: "/shell/identities/$identityId" });
  const navigate = useNavigate();
  const [isDeleting, setDeleting] = useState(false);
  const [isOpening, setOpening] = useState(false);
  const found = useQuery(read("identities.getIdentity", { identity: identityId }));
  const identity = found.data;
  const above = (
    <Link to="/identities" className="hover:underline">
      Identities
    </Link>
  );
  if (!identity) {
    return (
      <Page title="Identity" above={above}>
        <Loading of={found} lines={8} />
      </Page>
    );
  }
  const { id, externalId } = identity;
  return (
    <Page
      title={externalId}
      above={above}
      summary={<Id id={id} />}
      actions={
        <>
          <CopyButton text={() => snippetsOf("identities.getIdentity", { identity: externalId }).curl}>
            Copy as curl
          </CopyButton>
          <MoreMenu
            label="Actions"
            entries={[
              {
                label: "Portal session…",
                needs: "apis.some.create_portal_session",
                onAction: () => setOpening(true),
              },
              {
                label: "Delete the identity…",
                isDanger: true,
                needs: "identities.*.delete_identity",
                onAction: () => setDeleting(true),
              },
            ]}
          />
        </>
      }
    >
      <Section title="Use">
        <Usage of={identity} />
      </Section>
      <Section title="Keys">
        <Keys of={identity} />
      </Section>
      <Section title="Limits and metadata">
        <Members of={identity} />
      </Section>
      <Section title="Activity">
        <Activity target={id} />
      </Section>
      {isOpening && (
        <Suspense>
          <CreateSession externalId={externalId} onClose={() => setOpening(false)} />
        </Suspense>
      )}
      <ConfirmDialog
        title="Delete the identity"
        action="Delete identity"
        typed={externalId}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={async () => {
          await call("identities.deleteIdentity", { identity: id });
          await navigate({ to: "/identities" });
          await refresh();
          toast({ text: `Deleted the identity ${externalId}.` });
        }}
      >
        The keys of <strong className="font-medium">{externalId}</strong> stay valid, but have no owner and no shared
        limits any more. This cannot be undone.
      </ConfirmDialog>
    </Page>
  );
}

function Usage({ of: { id, externalId } }: { of: Identity }) {
  const [name, setName] = useState<RangeName>("7d");
  const range = useRange(name);
  const { data, error } = useQuery(read("analytics.getIdentityStats", { identity: id, ...range }));
  if (error) return <ErrorBox error={error} />;
  return (
    <div>
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
        <p>
          {data && (
            <>
              <span className="text-lg font-semibold">
                <Count value={data.total} />
              </span>{" "}
              verifications, {share(data.total - data.valid, data.total)} refused
              {data.creditsSpent > 0 && `, ${counted(data.creditsSpent, "credit")} spent`}
            </>
          )}
        </p>
        <RangePicker value={name} onChange={setName} />
      </div>
      <div className="min-h-48">{data && <VerificationChart of={data} height={160} />}</div>
      <p className="mt-3 text-xs">
        <Link to="/analytics" search={{ owner: externalId, range: name }} className="link">
          Open in the analytics
        </Link>
      </p>
    </div>
  );
}

/** The number of its keys in each API, with a link to them. */
function Keys({ of: { externalId } }: { of: Identity }) {
  const can = useCan();
  const needs = ["apis.*.read_api", "apis.some.read_key"].find((permission) => !can(permission));
  const { data: apis, error } = useQuery({
    ...read("apis.listApis", { limit: SUBJECTS_MAX + 1 }),
    enabled: needs === undefined,
  });
  const shown = (apis ?? []).filter(({ apiId }) => can(`apis.${apiId}.read_key`)).slice(0, SUBJECTS_MAX);
  const counts = useQueries({ queries: shown.map(({ apiId }) => read("apis.countKeys", { apiId, externalId })) });
  if (needs) return <p className="text-quiet">Its keys need the permission {needs.replace(".some.", ".*.")}.</p>;
  if (error) return <ErrorBox error={error} />;
  if (!apis || counts.some(({ isPending }) => isPending)) return <Skeleton lines={2} />;
  const owned = shown
    .map((api, index) => ({ ...api, count: counts[index]?.data }))
    .filter(({ count }) => count && (count.count > 0 || !count.isComplete));
  return (
    <>
      {owned.length === 0 ? (
        <p className="text-quiet">
          It has no keys. Create a key with the externalId <code className="font-mono text-xs">{externalId}</code> in
          one of your{" "}
          <Link to="/apis" className="link">
            APIs
          </Link>
          .
        </p>
      ) : (
        <ul className="divide-y divide-line border-y border-line">
          {owned.map(({ apiId, name, count }) => (
            <li key={apiId}>
              <Link
                to="/apis/$apiId"
                params={{ apiId }}
                search={{ owner: externalId }}
                className="flex items-center justify-between gap-4 px-2 py-2 hover:bg-hover"
              >
                <span className="min-w-0 truncate">{name}</span>
                <span className="text-quiet tabular-nums">
                  {count!.isComplete ? counted(count!.count, "key") : `at least ${counted(count!.count, "key")}`}
                </span>
              </Link>
            </li>
          ))}
        </ul>
      )}
      {apis.length > SUBJECTS_MAX && (
        <p className="mt-2 text-xs text-quiet">In the first {counted(SUBJECTS_MAX, "API")}.</p>
      )}
    </>
  );
}

function Members({ of: { id, meta, ratelimits } }: { of: Identity }) {
  const { mutateAsync } = useCall("identities.updateIdentity");
  const needs = "identities.*.update_identity";
  const metaText = Object.keys(meta).length === 0 ? "" : JSON.stringify(meta, null, 2);
  const before = JSON.stringify(ratelimits.map(ratelimitDraft));
  return (
    <Facts>
      <Fact name="Limits">
        <InlineEdit
          label="the limits"
          field="ratelimits"
          needs={needs}
          display={
            ratelimits.length === 0 ? (
              <None />
            ) : (
              <ul className="space-y-1">
                {ratelimits.map((limit) => (
                  <li key={limit.id} className="flex flex-wrap items-baseline gap-x-3">
                    <span className="font-medium">{limit.name}</span>
                    <LimitWords of={limit} />
                  </li>
                ))}
              </ul>
            )
          }
          draft={() => ratelimits.map(ratelimitDraft)}
          change={(draft) => {
            if (JSON.stringify(draft) === before) return {};
            return ratelimitInputs(draft, member(schema, "ratelimits").items!);
          }}
          editor={(draft, set) => <RatelimitsField value={draft} onChange={set} alwaysApply />}
          save={(value) => mutateAsync({ identity: id, ratelimits: value as Identity["ratelimits"] })}
        />
      </Fact>
      <Fact name="Metadata">
        <InlineEdit
          label="the metadata"
          field="meta"
          needs={needs}
          display={metaText === "" ? <None /> : <Code text={metaText} label="Copy the metadata" />}
          draft={() => metaText}
          change={(draft) => {
            if (draft.trim() === metaText.trim()) return {};
            const { value = {}, problem } = parseObject(draft);
            return problem === undefined ? { value } : { problem };
          }}
          editor={(draft, set) => (
            <JsonField label="Metadata" value={draft} onChange={set} description="A JSON object. Empty: {}." />
          )}
          save={(value) => mutateAsync({ identity: id, meta: value as Identity["meta"] })}
        />
      </Fact>
    </Facts>
  );
}
