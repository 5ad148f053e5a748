import { useQuery } from "@tanstack/react-query";
import { CircleCheck, TriangleAlert } from "lucide-react";
import { Hint } from "../ui/hint.tsx";

const INTERVAL_MS = 30_000;

/** What `/health/ready` answers, as far as the header shows it. */
interface Readiness {
  isReady: boolean;
  /** What is wrong, by the name of the check. */
  checks: Readonly<Record<string, string>>;
}

async function readReadiness(signal: AbortSignal): Promise<Readiness> {
  try {
    const response = await fetch(`${location.origin}/health/ready`, { signal });
    const { checks = {} } = (await response.json()) as Partial<Readiness>;
    return { isReady: response.ok, checks };
  } catch {
    return { isReady: false, checks: {} };
  }
}

/** Whether the service is ready to answer and what is wrong with it, read every 30 seconds. */
export function Health() {
  const { data } = useQuery({
    queryKey: ["health"],
    queryFn: ({ signal }) => readReadiness(signal),
    refetchInterval: INTERVAL_MS,
  });
  if (data === undefined) return null;
  const faults = Object.entries(data.checks).map(([check, fault]) => `${check}: ${fault}`);
  const isHealthy = data.isReady && faults.length === 0;
  const state = isHealthy ? "The service answers, and its stores are reachable." : stateOf(data.isReady, faults);
  const { storage } = data.checks;
  return (
    <Hint
      text={state}
      className={`inline-flex items-center gap-1.5 rounded-md px-1.5 text-xs ${isHealthy ? "text-good" : "text-bad"}`}
    >
      {isHealthy ? <CircleCheck aria-hidden className="size-4" /> : <TriangleAlert aria-hidden className="size-4" />}
      <span className="max-sm:sr-only">
        {isHealthy ? "Healthy" : storage ? `Degraded: disk ${storage}` : "Degraded"}
      </span>
    </Hint>
  );
}

function stateOf(isReady: boolean, faults: readonly string[]): string {
  if (faults.length === 0) return "The service is not ready: see its log.";
  return `${isReady ? "The service answers, but it is degraded" : "The service is not ready"}: ${faults.join("; ")}.`;
}
