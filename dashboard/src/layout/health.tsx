import { useQuery } from "@tanstack/react-query";
import { CircleCheck, TriangleAlert } from "lucide-react";
import { useEffect } from "react";
import { refresh } from "../api/client.ts";
import { readReadiness, useConnection, waitForService } from "../api/connection.ts";
import { Hint } from "../ui/overlays/hint.tsx";

const INTERVAL_MS = 5_000;

/** Whether the service is ready to answer and what is wrong with it. Says at once that it does not answer. */
export function Health() {
  const isConnected = useConnection();
  const { data } = useQuery({
    queryKey: ["health"],
    queryFn: async ({ signal }) => {
      const readiness = await readReadiness(signal);
      if (!readiness) void waitForService();
      return readiness ?? { isReady: false, checks: {} };
    },
    refetchInterval: INTERVAL_MS,
  });
  if (data === undefined && isConnected) return null;
  const { isReady, checks } = isConnected && data ? data : { isReady: false, checks: {} };
  const faults = Object.entries(checks).map(([check, fault]) => `${check}: ${fault}`);
  const isHealthy = isReady && faults.length === 0;
  const state = isHealthy
    ? "The service answers, and its stores are reachable."
    : isConnected
      ? stateOf(isReady, faults)
      : "The service does not answer. The dashboard asks again until it does.";
  const { storage } = checks as { storage?: string };
  return (
    <Hint
      text={state}
      className={`inline-flex items-center gap-1.5 rounded-md px-1.5 text-xs ${isHealthy ? "text-good" : "text-bad"}`}
    >
      {isHealthy ? <CircleCheck aria-hidden className="size-4" /> : <TriangleAlert aria-hidden className="size-4" />}
      <span className="max-sm:sr-only">
        {isHealthy ? "Healthy" : !isConnected ? "No answer" : storage ? `Degraded: disk ${storage}` : "Degraded"}
      </span>
    </Hint>
  );
}

function stateOf(isReady: boolean, faults: readonly string[]): string {
  if (faults.length === 0) return "The service is not ready: see its log.";
  return `${isReady ? "The service answers, but it is degraded" : "The service is not ready"}: ${faults.join("; ")}.`;
}

/** Above the page while the service does not answer. When it does, everything that is shown is read again. */
export function Reconnecting() {
  const isConnected = useConnection();
  useEffect(() => {
    if (isConnected) return;
    return () => void refresh();
  }, [isConnected]);
  if (isConnected) return null;
  return (
    <p role="alert" className="sticky top-12 z-20 border-b border-line bg-warn-soft px-4 py-2 text-warn">
      The service does not answer. Reconnecting… What you entered stays.
    </p>
  );
}
