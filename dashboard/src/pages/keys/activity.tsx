import { useInfiniteQuery } from "@tanstack/react-query";
import { list } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Time } from "../../ui/time.tsx";
import { ChangesTable } from "../audit/changes-table.tsx";

/** The audit trail of a resource, the newest change first. */
export function Activity({ target }: { target: string }) {
  const isAllowed = useCan()("audit.*.read_event");
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
        {events.map(({ id, occurredAt, actor, action, meta }) => (
          <li key={id} className="border-b border-line">
            <details>
              <summary className="flex cursor-pointer flex-wrap items-baseline gap-x-4 py-2 hover:bg-hover">
                <span className="w-36 text-quiet">
                  <Time at={occurredAt} relative />
                </span>
                <code className="font-mono text-xs">{action}</code>
                <code className="ml-auto font-mono text-xs text-quiet">{actor}</code>
              </summary>
              <div className="pb-3">
                <ChangesTable of={{ action, meta }} />
              </div>
            </details>
          </li>
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
