import type { Instant } from "../../../engine/src/clock/clock.ts";
import type { Directories } from "../../../engine/src/directory/directories.ts";
import type { NodeStatus, ServiceStatus } from "../features/system/fields.ts";
import type { CallMetrics } from "../metrics/calls.ts";
import { quantile } from "../metrics/histogram.ts";
import type { RecentRise } from "../metrics/recent.ts";
import { configSettings } from "../platform/config/config.ts";
import { PREFIX } from "../platform/config/env.ts";
import { secretSettings } from "../platform/config/secrets.ts";
import { isSetting } from "../platform/config/setting-kinds.ts";
import { version } from "../platform/config/version.ts";
import type { StorageTrouble } from "../platform/store/store.ts";
import type { Parts, Start } from "./open.ts";
import { readReadiness } from "./readiness.ts";

/** What trouble with the disk means. */
const STORAGE_TROUBLE: Readonly<Record<StorageTrouble, string>> = {
  full: "the disk is full: changes and spends get 503",
  "read-only": "the file system is read-only: changes and spends get 503",
  failing: "the file system reports errors: changes and spends get 503",
  slow: "syncs of the disk take a second or longer: changes and spends wait for them",
};

type Component = NodeStatus["components"][number];

/** Minutes of the latest calls that the description sums up. */
const RECENT_MINUTES = 10;
/** Minutes that it describes one by one. */
export const DESCRIBED_MINUTES = 60;

/** The numbers of this node whose latest rise is described: refused look-ups, and verifications by latency. */
export function recentNumbers(calls: CallMetrics, { refusedLookups }: Directories): number[] {
  return [Object.values(refusedLookups).reduce((sum, count) => sum + count, 0), ...calls.latencies("keys.verifyKey")];
}

/** Describes this node. Nothing that it says contains a secret. */
export class NodeDescription {
  readonly #start: Start;
  readonly #parts: Parts;
  readonly #recent: RecentRise;
  readonly #startedAt: Instant;

  constructor(start: Start, parts: Parts, recent: RecentRise) {
    this.#start = start;
    this.#parts = parts;
    this.#recent = recent;
    this.#startedAt = start.clock.now();
  }

  status(): NodeStatus {
    const { status } = readReadiness(this.#start, this.#parts);
    return { status, startedAt: this.#startedAt, components: this.#components() };
  }

  serviceStatus(): ServiceStatus {
    const backups = this.#parts.backups?.describe();
    return {
      version,
      node: process.version,
      configuration: this.#configuration(),
      recent: this.#latest(),
      ...(backups && { backups }),
    };
  }

  #latest() {
    const { since, values } = this.#recent.rise(RECENT_MINUTES);
    const minutes = this.#recent.rises().map(({ since, values }) => ({ since, ...latenciesOf(values) }));
    return { since, ...latenciesOf(values), lookupsRefused: values[0]!, minutes };
  }

  #components(): Component[] {
    const { config } = this.#start;
    const { analytics } = this.#parts;
    const { checks } = readReadiness(this.#start, this.#parts);
    const checked = (name: Component["name"]): Component =>
      checks[name] === undefined ? { name, status: "ok" } : { name, status: "degraded", detail: checks[name] };
    const analyticsState = (): Component => {
      if (!config.analytics.enabled) return { name: "analytics", status: "off" };
      if (analytics.outbox.reachable) return { name: "analytics", status: "ok" };
      return { name: "analytics", status: "degraded", detail: "their store does not answer: counts wait on disk" };
    };
    return [
      checked("database"),
      this.#storage(),
      ...(checks.claim === undefined ? [] : [checked("claim")]),
      this.#redis(checked("redis")),
      analyticsState(),
    ];
  }

  #storage(): Component {
    const { trouble } = this.#parts.storage;
    if (trouble === undefined) return { name: "storage", status: "ok" };
    return { name: "storage", status: "degraded", detail: STORAGE_TROUBLE[trouble] };
  }

  #redis(checked: Component): Component {
    const { redis } = this.#parts.limits;
    if (!redis) return { name: "redis", status: "off" };
    const names = redis.connection.servers.map(({ name }) => name);
    return checked.detail === undefined ? { ...checked, detail: `counts on ${names.join(", ")}` } : checked;
  }

  /** Every setting with its effective value; of a secret only whether it is set. */
  #configuration(): { name: string; value: string; isSecret: boolean }[] {
    const { config, secrets } = this.#start;
    return [
      ...valuesOf(configSettings, config).map(([name, value]) => ({ name, value, isSecret: false })),
      ...Object.entries(secretSettings).map(([member, { name }]) => {
        const value = secrets[member as keyof typeof secretSettings];
        const isSet = Array.isArray(value) ? value.length > 0 : value !== undefined;
        return { name: PREFIX + name, value: isSet ? "set" : "", isSecret: true };
      }),
    ];
  }
}

/** The verifications of a rise of `recentNumbers`, and how long they took. */
function latenciesOf([, ...latencies]: readonly number[]) {
  const rounded = (ms: number | undefined) => (ms === undefined ? undefined : Math.round(ms * 1_000) / 1_000);
  return {
    verifications: latencies.at(-1)!,
    p50Ms: rounded(quantile(latencies, 0.5)),
    p99Ms: rounded(quantile(latencies, 0.99)),
  };
}

/** The settings of a part of the configuration by their names in the environment, with their values. */
function valuesOf(settings: object, values: object): [string, string][] {
  return Object.entries(settings).flatMap(([member, setting]): [string, string][] => {
    const value = (values as Record<string, unknown>)[member];
    if (isSetting(setting)) return [[PREFIX + setting.name, plain(value)]];
    return valuesOf(setting, value as object);
  });
}

function plain(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "boolean") return value ? "on" : "off";
  if (typeof value !== "object") return String(value);
  return Array.isArray(value) ? value.join(", ") : Object.values(value).join(":");
}
