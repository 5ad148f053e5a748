import type { Analytics } from "../analytics/analytics.ts";
import type { Ledger } from "../credits/ledger.ts";
import type { Directories } from "../directory/directories.ts";
import type { RecordCacheCounts } from "../directory/record-cache.ts";
import type { CallMetrics, StoreMetrics } from "../metrics/calls.ts";
import { Metrics, type Sample } from "../metrics/metrics.ts";
import type { Verification } from "../verification/verification.ts";
import type { LimitsService } from "./limits.ts";

export interface Measured {
  calls: CallMetrics;
  stores: StoreMetrics;
  directories: Directories;
  verification: Verification;
  limits: LimitsService;
  ledger: Pick<Ledger<never, never>, "counts" | "waiting">;
  analytics: Analytics;
}

/** Says of every figure that somebody keeps how it is read. */
export function measure(measured: Measured): Metrics {
  const { calls, stores, directories, verification, limits, ledger, analytics } = measured;
  const { limiter, table, dropped, redis } = limits;
  const metrics = new Metrics();
  calls.register(metrics);
  stores.register(metrics);

  metrics.counter("latchkey_verifications_total", "Answers of keys.verifyKey by code.", ["code"], () =>
    Object.entries(verification.counts).map(([code, count]): Sample => [{ code }, count]),
  );

  const directory = (figure: keyof RecordCacheCounts) => () =>
    Object.entries(directories.counts).map(([kind, counts]): Sample => [{ kind }, counts[figure]]);
  metrics.gauge("latchkey_directory_entries", "Records in memory.", ["kind"], directory("entries"));
  metrics.gauge("latchkey_directory_bytes", "Memory of the records, estimated.", ["kind"], directory("bytes"));
  metrics.counter("latchkey_directory_hits_total", "Look-ups answered from memory.", ["kind"], directory("hits"));
  metrics.counter(
    "latchkey_directory_misses_total",
    "Look-ups not answered from memory.",
    ["kind"],
    directory("misses"),
  );
  metrics.counter("latchkey_directory_loads_total", "Queries to the store.", ["kind"], directory("loads"));
  metrics.counter(
    "latchkey_directory_evictions_total",
    "Records forgotten for want of memory.",
    ["kind"],
    directory("evictions"),
  );
  const figure = (read: () => number) => (): Sample[] => [[{}, read()]];
  metrics.counter(
    "latchkey_lookups_refused_total",
    "Look-ups of unknown keys refused because their budget was used up.",
    [],
    figure(() => directories.keyBudget.refused + directories.rootKeyBudget.refused),
  );
  metrics.gauge(
    "latchkey_changes_age_seconds",
    "Time since this node last read what changed.",
    [],
    figure(() => directories.changes.age() / 1_000),
  );
  metrics.gauge(
    "latchkey_database_reachable",
    "1 while the database answers.",
    [],
    figure(() => (directories.changes.reachable ? 1 : 0)),
  );

  metrics.gauge(
    "latchkey_counters_segments",
    "Segments of the counters' memory in use.",
    [],
    figure(() => table.segments.used),
  );
  metrics.gauge(
    "latchkey_counters_segments_max",
    "Segments there is room for.",
    [],
    figure(() => table.segments.max),
  );
  metrics.counter(
    "latchkey_counters_dropped_total",
    "Counters on disk that found no room in memory at the start.",
    [],
    figure(() => dropped),
  );
  metrics.counter(
    "latchkey_limits_undecided_total",
    "Calls whose limits could not be decided.",
    [],
    figure(() => limiter.undecided),
  );

  metrics.counter(
    "latchkey_ledger_batches_total",
    "Batches committed.",
    [],
    figure(() => ledger.counts.batches),
  );
  metrics.counter(
    "latchkey_ledger_calls_total",
    "Calls in committed batches.",
    [],
    figure(() => ledger.counts.calls),
  );
  metrics.counter(
    "latchkey_ledger_credits_total",
    "Credits spent.",
    [],
    figure(() => ledger.counts.credits),
  );
  metrics.counter(
    "latchkey_ledger_failures_total",
    "Batches that failed.",
    [],
    figure(() => ledger.counts.failures),
  );
  metrics.gauge(
    "latchkey_ledger_waiting",
    "Calls that wait for the next batch.",
    [],
    figure(() => ledger.waiting),
  );

  metrics.counter(
    "latchkey_analytics_events_total",
    "Verifications and limits counted for the analytics.",
    [],
    figure(() => analytics.recorder.recorded),
  );
  metrics.counter(
    "latchkey_analytics_delivered_total",
    "Events that the store of the analytics has taken.",
    [],
    figure(() => analytics.outbox.counts.delivered),
  );
  metrics.counter(
    "latchkey_analytics_lost_total",
    "Events that neither the store of the analytics nor the disk took.",
    [],
    figure(() => analytics.outbox.counts.lost),
  );
  metrics.gauge(
    "latchkey_analytics_waiting",
    "Batches that the store of the analytics does not have yet.",
    [],
    figure(() => analytics.outbox.waiting),
  );
  metrics.counter(
    "latchkey_analytics_unreadable_total",
    "Lines on disk that were no batches and were set aside.",
    [],
    figure(() => analytics.outbox.unreadable),
  );
  metrics.gauge(
    "latchkey_analytics_spool_bytes",
    "Disk taken by batches that wait.",
    [],
    figure(() => analytics.spool.bytes),
  );

  if (!redis) return metrics;
  const { connection, counters } = redis;
  metrics.gauge(
    "latchkey_redis_away",
    "1 while Redis does not answer.",
    [],
    figure(() => (connection.isAway ? 1 : 0)),
  );
  metrics.counter(
    "latchkey_redis_absences_total",
    "Times that Redis went away.",
    [],
    figure(() => connection.outages),
  );
  metrics.counter(
    "latchkey_redis_losses_total",
    "Times that Redis lost counters.",
    [],
    figure(() => counters.losses),
  );
  metrics.counter(
    "latchkey_redis_calls_total",
    "Calls decided in Redis.",
    [],
    figure(() => counters.sent),
  );
  metrics.counter(
    "latchkey_redis_batches_total",
    "Scripts run in Redis.",
    [],
    figure(() => counters.batches),
  );
  metrics.counter(
    "latchkey_redis_recalled_total",
    "Denials told from memory without asking Redis.",
    [],
    figure(() => counters.denialCacheHits),
  );
  return metrics;
}
