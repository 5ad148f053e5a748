import { Link } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { call, type Entry, type Input, refresh } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { counted, exactNumber } from "../../api/format.ts";
import { type Rows, useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { StatusBadge, type Tone } from "../../ui/text/status-badge.tsx";
import { Time } from "../../ui/text/time.tsx";

const SettleHold = lazy(async () => ({
  default: (await loadCode(() => import("./settle-hold.tsx"))).SettleHold,
}));

/** Whose holds they are. */
export type HoldSelection = Partial<Pick<Input<"holds.listHolds">, "keyId" | "budgetId" | "identity">>;
type Hold = Entry<"holds.listHolds">;
type Ended = Exclude<Hold["state"], "open">;

/** Holds that are shown; the others come in steps. */
const SHOWN = 8;
const PAGE = 50;

const ends: Record<Ended, { tone: Tone; text: string }> = {
  settled: { tone: "good", text: "Settled" },
  released: { tone: "neutral", text: "Released" },
  expired: { tone: "warn", text: "Expired" },
};

/** Open holds, which can be settled and released by hand, and those that ended last. */
export function HoldList({ of: selection }: { of: HoldSelection }) {
  const isAllowed = useCan()("apis.some.read_key");
  const newest = { ...selection, order: "desc", limit: PAGE } as const;
  const open = useRows("holds.listHolds", { ...newest, state: "open" }, isAllowed);
  const all = useRows("holds.listHolds", newest, isAllowed);
  const [settled, setSettled] = useState<Hold>();
  const [released, setReleased] = useState<Hold>();
  if (!isAllowed) return <p className="text-quiet">The holds need the permission apis.*.read_key.</p>;
  const isOfKey = selection.keyId !== undefined;
  return (
    <>
      <h3 className="label mb-1">Open</h3>
      <HoldLines
        label="Open holds"
        of={open}
        empty="No call holds credits. A verification with hold takes them until its cost is known."
        line={(hold) => (
          <OpenHold
            key={hold.holdId}
            of={hold}
            isOfKey={isOfKey}
            onSettle={() => setSettled(hold)}
            onRelease={() => setReleased(hold)}
          />
        )}
      />
      <h3 className="label mt-5 mb-1">Ended</h3>
      <HoldLines
        label="Holds that ended"
        of={{ ...all, rows: all.rows?.filter(({ state }) => state !== "open") }}
        empty="None that ended is stored any more: those that were settled or released stay for an hour, expired ones for a day, unless settings say otherwise."
        line={(hold) => <EndedHold key={hold.holdId} of={hold} isOfKey={isOfKey} onSettle={() => setSettled(hold)} />}
      />
      {settled && (
        <Suspense>
          <SettleHold of={settled} onClose={() => setSettled(undefined)} />
        </Suspense>
      )}
      {released && <ReleaseHold of={released} onClose={() => setReleased(undefined)} />}
    </>
  );
}

/** Asks before a hold is released. */
function ReleaseHold({ of: { holdId, credits }, onClose }: { of: Hold; onClose: () => void }) {
  const held = counted(credits, "credit");
  return (
    <ConfirmDialog
      title="Release the hold"
      action="Release hold"
      isOpen
      onClose={onClose}
      onConfirm={async () => {
        await call("holds.releaseHold", { holdId });
        await refresh();
        toast({ text: `Released ${held}.` });
      }}
    >
      This gives back {held} and charges nothing. The call that made the hold cannot settle it any more. This cannot be
      undone.
    </ConfirmDialog>
  );
}

/** The first rows of a list of holds, with a button for more. */
function HoldLines({
  label,
  of: list,
  empty,
  line,
}: {
  label: string;
  of: Rows<Hold>;
  empty: string;
  line: (hold: Hold) => ReactNode;
}) {
  const [isWhole, setWhole] = useState(false);
  const { rows, onMore, hasMore } = list;
  if (list.error || !rows) return <Loading of={list} lines={2} />;
  const shown = isWhole ? rows : rows.slice(0, SHOWN);
  const more = () => {
    setWhole(true);
    onMore?.();
  };
  return (
    <>
      {rows.length === 0 && (
        <p className="text-quiet">{hasMore ? "There is none among the newest holds of the workspace." : empty}</p>
      )}
      {shown.length > 0 && <ul aria-label={label}>{shown.map(line)}</ul>}
      {(rows.length > shown.length || hasMore) && (
        <div className="mt-2">
          <Button onPress={more}>Show more holds</Button>
        </div>
      )}
    </>
  );
}

const row =
  "grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-4 gap-y-1 border-b border-line px-2 py-1.5 md:grid-cols-[9rem_minmax(0,1fr)_minmax(0,1.5fr)_auto]";

function OpenHold({
  of: hold,
  isOfKey,
  onSettle,
  onRelease,
}: {
  of: Hold;
  isOfKey: boolean;
  onSettle: () => void;
  onRelease: () => void;
}) {
  const { holdId, apiId, credits, createdAt, expiresAt, onExpiry } = hold;
  const needs = `apis.${apiId}.verify_key`;
  return (
    <li className={row}>
      <span className="tabular-nums">{counted(credits, "credit")}</span>
      <span className="truncate max-md:order-last max-md:col-span-2">
        <KeyOf hold={hold} isOfKey={isOfKey} />
      </span>
      <span className="text-xs text-quiet max-md:order-last max-md:col-span-2">
        made <Time at={createdAt} relative />, {onExpiry === "charge" ? "charged" : "given back"}{" "}
        <Time at={expiresAt} relative />
      </span>
      <span className="flex justify-end gap-1.5">
        <Button className={small} needs={needs} aria-label={`Settle ${holdId}`} onPress={onSettle}>
          Settle…
        </Button>
        <Button className={small} needs={needs} aria-label={`Release ${holdId}`} onPress={onRelease}>
          Release…
        </Button>
      </span>
    </li>
  );
}

const small = "!h-7 !px-2 text-xs";

function EndedHold({ of: hold, isOfKey, onSettle }: { of: Hold; isOfKey: boolean; onSettle: () => void }) {
  const { holdId, apiId, state, credits, charged = 0, uncovered = 0, closedAt, expiresAt } = hold;
  const { tone, text } = ends[state as Ended];
  return (
    <li className={row}>
      <span>
        <StatusBadge tone={tone}>{text}</StatusBadge>
      </span>
      <span className="truncate max-md:order-last max-md:col-span-2">
        <KeyOf hold={hold} isOfKey={isOfKey} />
      </span>
      <span className="text-xs text-quiet tabular-nums max-md:order-last max-md:col-span-2">
        {counted(charged, "credit")} charged, {exactNumber(credits)} held
        {uncovered > 0 && `, ${exactNumber(uncovered)} not covered`}, <Time at={closedAt ?? expiresAt} relative />
      </span>
      <span className="flex h-7 justify-end">
        {state === "expired" && (
          <Button
            className={small}
            needs={`apis.${apiId}.verify_key`}
            aria-label={`Settle ${holdId}`}
            onPress={onSettle}
          >
            Settle…
          </Button>
        )}
      </span>
    </li>
  );
}

/** The key that made a hold; on the page of the key, the id of the hold. */
function KeyOf({ hold: { holdId, apiId, keyId }, isOfKey }: { hold: Hold; isOfKey: boolean }) {
  if (isOfKey) return <code className="font-mono text-xs">{holdId}</code>;
  return (
    <Link to="/apis/$apiId/keys/$keyId" params={{ apiId, keyId }} className="font-mono text-xs hover:underline">
      {keyId}
    </Link>
  );
}
