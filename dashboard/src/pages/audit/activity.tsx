import type { AuditEvent } from "@latchkey/sdk";
import { useInfiniteQuery } from "@tanstack/react-query";
import { ChevronRight } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { list } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { Time } from "../../ui/text/time.tsx";
import { Actor, useActorNames } from "./actor.tsx";

const ChangesTable = lazy(async () => ({
  default: (await loadCode(() => import("./changes-table.tsx"))).ChangesTable,
}));

/** The audit trail of a resource, the newest change first. */
export function Activity({ target }: { target: string }) {
  const isAllowed = useCan()("audit.*.read_event");
  const names = useActorNames();
  const trail = useInfiniteQuery({
    ...list("audit.listEvents", { target, limit: 20 }),
    enabled: isAllowed,
  });
  if (!isAllowed) return <p className="text-quiet">The audit trail needs the permission audit.*.read_event.</p>;
  const { data, error, hasNextPage, fetchNextPage, isFetching } = trail;
  if (error || !data) return <Loading of={trail} />;
  const events = data.pages.flatMap(({ data }) => data);
  if (events.length === 0) return <p className="text-quiet">Nothing was recorded.</p>;
  return (
    <>
      <ul>
        {events.map((event) => (
          <Change key={event.id} of={event} names={names} />
        ))}
      </ul>
      {hasNextPage && (
        <div className="mt-3">
          <Button onPress={() => void fetchNextPage()} isPending={isFetching}>
            Show older ones
          </Button>
        </div>
      )}
    </>
  );
}

/** A change in one line, which shows the values before and after it when it is opened. */
function Change({ of: event, names }: { of: AuditEvent; names: ReadonlyMap<string, string> }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <li className="border-b border-line">
      <details className="group" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary className="flex cursor-pointer list-none flex-wrap items-center gap-x-4 py-2 hover:bg-hover">
          <ChevronRight
            aria-hidden
            className="-mr-2 size-4 text-quiet transition-transform duration-120 group-open:rotate-90"
          />
          <span className="w-36 text-quiet">
            <Time at={event.occurredAt} relative />
          </span>
          <code className="font-mono text-xs">{event.action}</code>
          <span className="ml-auto text-xs text-quiet">
            <Actor id={event.actor} names={names} />
          </span>
        </summary>
        <div className="pb-3">
          <Suspense>{isOpen && <ChangesTable of={event} />}</Suspense>
        </div>
      </details>
    </li>
  );
}
