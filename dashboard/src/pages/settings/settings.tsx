import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import { type Data, read } from "../../api/client.ts";
import { duration, exactNumber } from "../../api/format.ts";
import { useCan, useSession } from "../../api/session.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Fact, Facts, Page, Section } from "../../ui/page.tsx";
import { Filters, SearchField } from "../../ui/tables/filters.tsx";
import { CopyButton, Id } from "../../ui/text/copy-button.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { StatusBadge, type Tone } from "../../ui/text/status-badge.tsx";
import { Time } from "../../ui/text/time.tsx";

type Status = Data<"system.getStatus">;

const INTERVAL_MS = 15_000;
const componentNames = {
  database: "Database",
  storage: "Disk",
  claim: "Claim of the database",
  redis: "Redis",
  analytics: "Analytics store",
} as const;
const tones: Record<string, Tone> = {
  ok: "good",
  degraded: "bad",
  fail: "bad",
  "shutting down": "warn",
  off: "neutral",
};

/** The state of the service, its versions and its effective configuration. */
export function SettingsPage() {
  const isAllowed = useCan()("system.*.read_status");
  const { workspace, rootKey, version } = useSession();
  const status = useQuery({
    ...read("system.getStatus", {}),
    enabled: isAllowed,
    refetchInterval: INTERVAL_MS,
  });
  const { data } = status;
  return (
    <Page
      title="Settings"
      summary="The state of the node that answers, and the configuration it runs with."
      actions={<CopyButton text={() => snippetsOf("system.getStatus", {}).curl}>Copy as curl</CopyButton>}
    >
      <Section title="Session">
        <Facts>
          <Fact name="Workspace">
            {workspace.name} <Id id={workspace.id} />
          </Fact>
          <Fact name="Root key">
            {rootKey.name || "–"} <Id id={rootKey.keyId} />
          </Fact>
          <Fact name="Version">{version}</Fact>
        </Facts>
      </Section>
      {!isAllowed ? (
        <EmptyState title="The root key may not read the status">
          <p>It lacks the permission system.*.read_status.</p>
        </EmptyState>
      ) : status.error || !data ? (
        <Loading of={status} lines={10} />
      ) : (
        <>
          <Section title="Health">
            <Health of={data} />
          </Section>
          {data.edges && (
            <Section title="Edges">
              <Edges of={data.edges} />
            </Section>
          )}
          {data.service && (
            <Section title="Backups">
              <Backups of={data.service} />
            </Section>
          )}
          {data.service && (
            <Section title="Configuration">
              <Configuration of={data.service.configuration} />
            </Section>
          )}
        </>
      )}
    </Page>
  );
}

function Health({ of: { status, startedAt, components, service } }: { of: Status }) {
  return (
    <Facts>
      <Fact name="Service">
        <StatusBadge tone={tones[status] ?? "neutral"}>{sentence(status)}</StatusBadge>
      </Fact>
      {components.map(({ name, status, detail }) => (
        <Fact key={name} name={componentNames[name]}>
          <StatusBadge tone={tones[status] ?? "neutral"}>{sentence(status)}</StatusBadge>
          {detail && <p className="mt-1 text-quiet">{detail}</p>}
        </Fact>
      ))}
      <Fact name="Started">
        <Time at={startedAt} relative />
      </Fact>
      {service && <Fact name="Node.js">{service.node}</Fact>}
    </Facts>
  );
}

/** What verifies keys of this workspace outside of the service, as far as it asks this node. */
function Edges({ of: { count, list } }: { of: NonNullable<Status["edges"]> }) {
  return (
    <>
      <p className="mb-3 text-quiet">
        Programs that verify keys of this workspace near their callers, and asked this node in the last 10 seconds.
        {count > list.length && ` The first ${list.length} of ${exactNumber(count)}.`}
      </p>
      <dl className="divide-y divide-line border-y border-line">
        {list.map(({ id, kind, name, version, address, records, reports, leases = 0 }) => (
          <div key={id} className="grid grid-cols-1 gap-x-6 py-1.5 sm:grid-cols-[22rem_minmax(0,1fr)]">
            <dt>
              {name ?? (kind === "process" ? "latchkey edge" : "LocalLatchkey")} <Id id={id} />
            </dt>
            <dd className="text-quiet">
              release {version} at {address}, {exactNumber(records)} keys in memory
              {leases > 0 && `, ${exactNumber(leases)} leases of limits`}
              {reports > 0 && `, ${exactNumber(reports)} counts not delivered`}
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function Backups({ of: { backups, configuration } }: { of: NonNullable<Status["service"]> }) {
  if (backups === undefined) {
    const database = configuration.find(({ name }) => name === "LATCHKEY_DATABASE_URL")?.value ?? "";
    return (
      <p className="text-quiet">
        {/^postgres/.test(database) || database === "set" ? (
          "The database is PostgreSQL: make backups with its own tools."
        ) : (
          <>
            There is no schedule. Set <code className="font-mono text-xs">LATCHKEY_BACKUP_EVERY</code>, such as to 6h,
            or run <code className="font-mono text-xs">latchkey backup</code>.
          </>
        )}
      </p>
    );
  }
  const { everyMs, lastMadeAt, bytes, nextAt, failures, trouble } = backups;
  return (
    <Facts>
      <Fact name="State">
        <StatusBadge tone={trouble === undefined ? "good" : "bad"}>
          {trouble === undefined ? "OK" : "The last attempt failed"}
        </StatusBadge>
        {trouble !== undefined && <p className="mt-1 text-quiet">{trouble}</p>}
      </Fact>
      <Fact name="Last backup">
        {lastMadeAt === undefined ? "none yet" : <Time at={lastMadeAt} relative />}
        {bytes !== undefined && <span className="text-quiet"> · {(bytes / 1e6).toFixed(1)} MB</span>}
      </Fact>
      <Fact name="Next backup">
        <Time at={nextAt} relative />, every {duration(everyMs)}
      </Fact>
      {failures > 0 && <Fact name="Failed attempts">{exactNumber(failures)} since the start</Fact>}
    </Facts>
  );
}

function Configuration({ of: settings }: { of: NonNullable<Status["service"]>["configuration"] }) {
  const { q = "" } = useSearch({ from: "/shell/settings" });
  const navigate = useNavigate({ from: "/settings" });
  const search = useCallback(
    (q: string) => void navigate({ search: q === "" ? {} : { q }, replace: true }),
    [navigate],
  );
  const shown = settings.filter(({ name }) => name.toLowerCase().includes(q.toLowerCase()));
  return (
    <>
      <p className="mb-3 text-quiet">
        Set by flags, the environment or a file when the service starts. Times are in milliseconds, sizes in bytes.
        Secrets are never shown.
      </p>
      <Filters>
        <SearchField label="Search settings" placeholder="LATCHKEY_…" value={q} onChange={search} />
      </Filters>
      {shown.length === 0 ? (
        <p className="text-quiet">No setting matches “{q}”.</p>
      ) : (
        <dl className="divide-y divide-line border-y border-line">
          {shown.map(({ name, value, isSecret }) => (
            <div key={name} className="grid grid-cols-1 gap-x-6 py-1.5 sm:grid-cols-[22rem_minmax(0,1fr)]">
              <dt className="font-mono text-xs leading-5">{name}</dt>
              <dd className="font-mono text-xs leading-5">
                {isSecret ? (
                  <span className="font-sans text-quiet">{value === "" ? "secret, not set" : "secret, set"}</span>
                ) : value === "" ? (
                  <span className="font-sans text-quiet">none</span>
                ) : (
                  value
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </>
  );
}

function sentence(text: string): string {
  return text === "ok" ? "OK" : text.charAt(0).toUpperCase() + text.slice(1);
}
