import { useQuery } from "@tanstack/react-query";
import { CircleCheck, TriangleAlert } from "lucide-react";
import { Hint } from "../ui/hint.tsx";

const INTERVAL_MS = 30_000;

/** Whether the service is ready to answer, read every 30 seconds. */
export function Health() {
  const { data: isReady } = useQuery({
    queryKey: ["health"],
    queryFn: async ({ signal }) => {
      try {
        return (await fetch(`${location.origin}/health/ready`, { signal })).ok;
      } catch {
        return false;
      }
    },
    refetchInterval: INTERVAL_MS,
  });
  if (isReady === undefined) return null;
  return (
    <Hint
      text={isReady ? "The service answers, and its stores are reachable." : "The service is not ready: see its log."}
      className={`inline-flex items-center gap-1.5 rounded-md px-1.5 text-xs ${isReady ? "text-good" : "text-bad"}`}
    >
      {isReady ? <CircleCheck aria-hidden className="size-4" /> : <TriangleAlert aria-hidden className="size-4" />}
      <span className="max-sm:sr-only">{isReady ? "Healthy" : "Degraded"}</span>
    </Hint>
  );
}
