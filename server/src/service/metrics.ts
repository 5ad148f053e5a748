import type { Ledger } from "../../../engine/src/credits/ledger.ts";
import type { Directories } from "../../../engine/src/directory/directories.ts";
import type { RecordCacheCounts } from "../../../engine/src/directory/record-cache.ts";
import type { BackupSchedule } from "../backup/schedule.ts";
import type { Analytics } from "../features/analytics/analytics.ts";
import type { Upstreams } from "../features/upstreams/upstreams.ts";
import type { WebhookDelivery } from "../features/webhooks/delivery.ts";
import type { StoreMetrics } from "../metrics/calls.ts";
import { Metrics, type Sample } from "../metrics/metrics.ts";
import type { GrpcListener } from "../platform/grpc/listener.ts";
import { grpcMetrics } from "../platform/grpc/metrics.ts";
import type { ClusterCounters } from "../platform/redis/cluster-counters.ts";
import type { QuotaCounts } from "../platform/rpc/quota-counts.ts";
import type { AuthenticationFailures } from "./authentication-failures.ts";
import type { LimitsService } from "./limits.ts";
import type { Replicas } from "./replicas.ts";
import type { Retention } from "./retention.ts";
import type { StorageWatch } from "./storage-watch.ts";
import type { Totals } from "./workers/totals.ts";

/** The parts that count. */
export interface MetricSources {
  /** Undefined: there is no gRPC. */
  grpc: GrpcListener["counts"] | undefined;
  totals: Pick<Totals, "calls" | "counts" | "serving" | "ended">;
  storeMetrics: StoreMetrics;
  directories: Directories;
  limits: LimitsService;
  ledger: Pick<Ledger<never, never>, "counts" | "waiting">;
  analytics: Analytics;
  backups: BackupSchedule | undefined;
  storage: Pick<StorageWatch, "room" | "trouble" | "refused" | "slowSyncs">;
  retention: Pick<Retention, "deleted" | "dropped" | "lagMs" | "hasLease">;
  webhooks: Pick<WebhookDelivery, "attempts" | "hasLease" | "lag" | "open">;
  upstreams: Pick<Upstreams, "questions" | "durations">;
  authenticationFailures: Pick<AuthenticationFailures, "counts">;
  quotas: Pick<QuotaCounts, "rejected" | "near">;
  replicas: Pick<Replicas, "edges" | "lookups" | "leases" | "resolving" | "charging" | "leasing" | "reporting">;
}

/** A metric: its name, its help text, and how to read it. A name that ends in `_total` is a counter, else a gauge. */
type Metric = readonly [name: string, help: string, read: () => number];

/** A metric with a value for each value of one label. */
type LabelledMetric = readonly [
  name: string,
  help: string,
  label: string,
  read: () => readonly (readonly [string, number])[],
];

/** All metrics of the service. The parts count; the values are read when `/metrics` is requested. */
export function openMetrics(sources: MetricSources): Metrics {
  const metrics = new Metrics();
  sources.totals.calls.register(metrics);
  sources.storeMetrics.register(metrics);
  metrics.histogram(
    "latchkey_upstream_question_duration_seconds",
    "Time until an upstream verifier answered a question, or failed to.",
    () => [{}],
    sources.upstreams.durations,
  );
  const add = (name: string, help: string, labels: readonly string[], read: () => Sample[]) =>
    name.endsWith("_total") ? metrics.counter(name, help, labels, read) : metrics.gauge(name, help, labels, read);
  for (const [name, help, label, read] of labelledMetrics(sources)) {
    add(name, help, [label], () => read().map(([value, count]): Sample => [{ [label]: value }, count]));
  }
  const { redis } = sources.limits;
  if (redis) {
    add("latchkey_redis_server_away", "1 while this server of Redis does not answer.", ["server"], () =>
      redis.connection.servers.map(({ name, hasOutage }): Sample => [{ server: name }, hasOutage ? 1 : 0]),
    );
  }
  for (const [name, help, read] of [
    ...threadMetrics(sources),
    ...directoryMetrics(sources),
    ...limitMetrics(sources),
    ...ledgerMetrics(sources),
    ...analyticsMetrics(sources),
    ...storageMetrics(sources),
    ...retentionMetrics(sources),
    ...webhookMetrics(sources),
    ...(redis ? redisMetrics(redis) : []),
    ...(sources.backups ? backupMetrics(sources.backups) : []),
    ...grpcMetrics(sources.grpc),
    ...edgeMetrics(sources),
  ]) {
    add(name, help, [], () => [[{}, read()]]);
  }
  return metrics;
}

function labelledMetrics({
  totals,
  directories,
  retention,
  webhooks,
  upstreams,
  storage,
  authenticationFailures,
  quotas,
  replicas,
}: MetricSources): LabelledMetric[] {
  const read = (count: keyof RecordCacheCounts) => () =>
    Object.entries(totals.counts.directories).map(([kind, counts]) => [kind, counts[count]] as const);
  return [
    [
      "latchkey_verifications_total",
      "Answers of keys.verifyKey by code.",
      "code",
      () => Object.entries(totals.counts.verifications),
    ],
    [
      "latchkey_edge_calls_refused_total",
      "Calls of edges for which there was no room in their queue.",
      "queue",
      () => [
        ["resolve", replicas.resolving.rejected],
        ["charge", replicas.charging.rejected],
        ["lease", replicas.leasing.rejected],
        ["report", replicas.reporting.rejected],
      ],
    ],
    [
      "latchkey_retention_deleted_total",
      "Rows beyond their retention that this node deleted.",
      "table",
      () => [...retention.deleted],
    ],
    [
      "latchkey_retention_partitions_dropped_total",
      "Partitions of PostgreSQL beyond their retention that this node dropped.",
      "table",
      () => [...retention.dropped],
    ],
    [
      "latchkey_retention_lag_seconds",
      "For how long the oldest row is overdue for deletion, on the node with the lease.",
      "table",
      () => [...retention.lagMs].map(([table, lag]) => [table, lag / 1_000] as const),
    ],
    [
      "latchkey_webhooks_attempts_total",
      "Requests to webhooks by result: delivered, failed (to be tried again) or dead (given up).",
      "result",
      () => Object.entries(webhooks.attempts),
    ],
    [
      "latchkey_upstream_questions_total",
      "Questions to upstream verifiers by outcome: valid, invalid, failed (no answer) or skipped (not sent).",
      "outcome",
      () => Object.entries(upstreams.questions),
    ],
    [
      "latchkey_auth_failures_total",
      "Requests whose root key or token was refused, by problem.",
      "problem",
      () => [...authenticationFailures.counts],
    ],
    [
      "latchkey_quota_rejections_total",
      "Calls that were rejected because their workspace had its maximum, by quota.",
      "quota",
      () => [...quotas.rejected],
    ],
    [
      "latchkey_workspaces_near_quota",
      "Workspaces that have more than 80 % of what they may have, by quota, as of the previous scrape.",
      "quota",
      () => [...quotas.rejected.keys()].map((quota) => [quota, quotas.near[quota] ?? 0] as const),
    ],
    [
      "latchkey_storage_free_bytes",
      "Bytes that the service can still write to this disk.",
      "place",
      () => [...storage.room].map(([place, { free }]) => [place, free] as const),
    ],
    [
      "latchkey_storage_size_bytes",
      "Bytes of this disk, used or free.",
      "place",
      () => [...storage.room].map(([place, { size }]) => [place, size] as const),
    ],
    [
      "latchkey_lookups_refused_total",
      "Look-ups rejected because the budget for unknown names of their kind was used up.",
      "kind",
      () => Object.entries(directories.refusedLookups),
    ],
    ["latchkey_directory_entries", "Cached records.", "kind", read("entries")],
    ["latchkey_directory_bytes", "Estimated memory of cached records.", "kind", read("bytes")],
    ["latchkey_directory_hits_total", "Look-ups answered from the cache.", "kind", read("hits")],
    ["latchkey_directory_misses_total", "Look-ups not answered from the cache.", "kind", read("misses")],
    ["latchkey_directory_loads_total", "Queries that load records.", "kind", read("loads")],
    ["latchkey_directory_evictions_total", "Records evicted because the cache was full.", "kind", read("evictions")],
  ];
}

function threadMetrics({ totals }: MetricSources): Metric[] {
  return [
    ["latchkey_threads", "Threads that answer calls.", () => totals.serving],
    ["latchkey_threads_ended_total", "Worker threads that ended by themselves.", () => totals.ended],
  ];
}

function directoryMetrics({ directories }: MetricSources): Metric[] {
  const { changes } = directories;
  return [
    [
      "latchkey_changes_age_seconds",
      "Time since this node last read the table of changes.",
      () => changes.age() / 1_000,
    ],
    ["latchkey_database_reachable", "1 while the database answers.", () => (changes.reachable ? 1 : 0)],
  ];
}

function storageMetrics({ storage }: MetricSources): Metric[] {
  return [
    [
      "latchkey_storage_degraded",
      "1 while a disk is full, slow, failing or read-only.",
      () => (storage.trouble === undefined ? 0 : 1),
    ],
    [
      "latchkey_storage_refused_writes_total",
      "Writes to the embedded database that the file system refused.",
      () => storage.refused,
    ],
    [
      "latchkey_storage_slow_syncs_total",
      "Syncs of the embedded database that took a second or longer.",
      () => storage.slowSyncs,
    ],
  ];
}

function retentionMetrics({ retention }: MetricSources): Metric[] {
  return [
    [
      "latchkey_retention_lease",
      "1 on the node that deletes rows beyond their retention.",
      () => (retention.hasLease ? 1 : 0),
    ],
  ];
}

function webhookMetrics({ webhooks }: MetricSources): Metric[] {
  return [
    ["latchkey_webhooks_lease", "1 on the node that delivers events to webhooks.", () => (webhooks.hasLease ? 1 : 0)],
    [
      "latchkey_webhooks_lag_seconds",
      "For how long an event or a due delivery waits for the node with the lease. Endpoints that fail do not count.",
      () => webhooks.lag / 1_000,
    ],
    ["latchkey_webhooks_open", "Requests to webhooks without an answer.", () => webhooks.open],
  ];
}

function limitMetrics({ totals, limits: { limiter, table, dropped } }: MetricSources): Metric[] {
  return [
    ["latchkey_counters_segments", "Segments of the counters' memory in use.", () => table.segments.used],
    ["latchkey_counters_segments_max", "Segments that the counters' memory can have.", () => table.segments.max],
    ["latchkey_counters_dropped_total", "Counters on disk that did not fit in memory at the start.", () => dropped],
    ["latchkey_limits_undecided_total", "Calls whose limits could not be decided.", () => totals.counts.undecided],
    [
      "latchkey_limits_shadowed_total",
      "Calls that limits in shadow mode would have denied, counted for each limit.",
      () => totals.counts.shadowed,
    ],
    [
      "latchkey_limits_corrected_total",
      "Charges of limits that settlements corrected, and those of calls whose credits could not be written.",
      () => limiter.corrected,
    ],
    [
      "latchkey_limits_uncorrected_total",
      "Charges of limits that settlements could not correct, because their window has ended or their count is elsewhere.",
      () => limiter.uncorrected,
    ],
    [
      "latchkey_limit_events_dropped_total",
      "Rejections by limits that have no event because there were too many.",
      () => totals.counts.droppedLimitEvents,
    ],
  ];
}

function ledgerMetrics({ ledger }: MetricSources): Metric[] {
  return [
    ["latchkey_ledger_batches_total", "Committed batches.", () => ledger.counts.batches],
    ["latchkey_ledger_calls_total", "Calls in committed batches.", () => ledger.counts.calls],
    ["latchkey_ledger_credits_total", "Spent credits.", () => ledger.counts.credits],
    ["latchkey_ledger_failures_total", "Failed batches.", () => ledger.counts.failures],
    ["latchkey_ledger_waiting", "Calls that wait for the next batch.", () => ledger.waiting],
  ];
}

function edgeMetrics({ replicas: { edges, lookups, leases }, directories: { feed } }: MetricSources): Metric[] {
  return [
    ["latchkey_edges", "Edges that asked this node within ten seconds.", () => edges.count],
    ["latchkey_edge_questions_waiting", "Questions of edges that wait for a change.", () => feed.waiting],
    ["latchkey_edge_changes_held", "Changes in memory for edges that come later.", () => feed.held],
    ["latchkey_edge_lookups_refused_total", "Questions of edges with too many unknown hashes.", () => lookups.rejected],
    ["latchkey_leases_granted_total", "Leases of limits to edges.", () => leases.counts.granted],
    [
      "latchkey_leases_refused_total",
      "Limits of which an edge asked for a lease and got none.",
      () => leases.counts.refused,
    ],
    ["latchkey_leases_returned_total", "Leases that edges returned.", () => leases.counts.returned],
    [
      "latchkey_leases_unknown_total",
      "Returns of leases that this service does not know, or no longer.",
      () => leases.counts.unknown,
    ],
  ];
}

function analyticsMetrics({ analytics: { recorder, outbox, spool } }: MetricSources): Metric[] {
  return [
    ["latchkey_analytics_events_total", "Counted verifications and rate limit decisions.", () => recorder.recorded],
    [
      "latchkey_analytics_delivered_total",
      "Events delivered to the store of the analytics.",
      () => outbox.counts.delivered,
    ],
    [
      "latchkey_analytics_lost_total",
      "Events lost because neither the store of the analytics nor the disk accepted them.",
      () => outbox.counts.lost,
    ],
    ["latchkey_analytics_waiting", "Batches not delivered yet to the store of the analytics.", () => outbox.waiting],
    [
      "latchkey_analytics_unreadable_total",
      "Lines on disk that are no valid batches and were moved to unreadable.lines.",
      () => outbox.invalidLines,
    ],
    ["latchkey_analytics_spool_bytes", "Disk space of batches not delivered yet.", () => spool.bytes],
  ];
}

function backupMetrics(backups: BackupSchedule): Metric[] {
  return [
    [
      "latchkey_backup_last_made_seconds",
      "Unix time of the newest scheduled backup; 0 if there is none.",
      () => (backups.lastMadeAt ?? 0) / 1_000,
    ],
    ["latchkey_backup_failures_total", "Scheduled backups that failed.", () => backups.failures],
  ];
}

function redisMetrics({ connection, counters }: NonNullable<LimitsService["redis"]>): Metric[] {
  return [
    [
      "latchkey_redis_away",
      "1 while Redis, or a primary of the cluster, does not answer.",
      () => (connection.hasOutage ? 1 : 0),
    ],
    ["latchkey_redis_outages_total", "Outages of Redis.", () => connection.outages],
    [
      "latchkey_redis_absences_total",
      "Deprecated: the former name of latchkey_redis_outages_total.",
      () => connection.outages,
    ],
    [
      "latchkey_redis_losses_total",
      "Times that Redis, or a partition in the cluster, lost counters.",
      () => counters.losses,
    ],
    ["latchkey_redis_calls_total", "Calls decided in Redis.", () => counters.sent],
    ["latchkey_redis_batches_total", "Scripts run in Redis.", () => counters.batches],
    [
      "latchkey_redis_recalled_total",
      "Denials answered from the denial cache, without Redis.",
      () => counters.denialCacheHits,
    ],
    ...("spread" in counters ? clusterMetrics(counters) : []),
  ];
}

function clusterMetrics(counters: ClusterCounters): Metric[] {
  return [
    ["latchkey_redis_spread_total", "Calls whose limits were in several partitions.", () => counters.spread],
    [
      "latchkey_redis_returned_total",
      "Charges of a part of a call that were given back, because another part denied it.",
      () => counters.returned,
    ],
    [
      "latchkey_redis_unreturned_total",
      "Charges that could not be given back: they count until their windows end.",
      () => counters.unreturned,
    ],
  ];
}
