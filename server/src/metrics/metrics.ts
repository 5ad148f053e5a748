import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { type Histograms, LATENCY_BOUNDS_MS } from "./histogram.ts";

export type Labels = Readonly<Record<string, string>>;
/** One value of a metric. */
export type Sample = readonly [labels: Labels, value: number];

/**
 * The metrics of the process. It stores no values: modules count in plain numbers and register a function that reads
 * them at each scrape.
 */
export class Metrics {
  readonly #registry = new Registry();

  constructor() {
    collectDefaultMetrics({ register: this.#registry });
  }

  /** Registers a value that only grows. Names end in `_total`. */
  counter(name: string, help: string, labelNames: readonly string[], read: () => Iterable<Sample>): void {
    new Counter({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const [labels, value] of read()) this.inc(labels, value);
      },
    });
  }

  /** Registers a value that can rise and fall. */
  gauge(name: string, help: string, labelNames: readonly string[], read: () => Iterable<Sample>): void {
    new Gauge({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const [labels, value] of read()) this.set(labels, value);
      },
    });
  }

  /** Registers latencies, exposed in seconds as Prometheus recommends. Empty series are omitted. */
  histogram(name: string, help: string, series: () => readonly Labels[], histograms: Histograms): void {
    const get = async () => ({
      name,
      help,
      type: "histogram",
      aggregator: "sum",
      values: series().flatMap((labels, index) => {
        const { cumulated, sum } = histograms.read(index);
        const count = cumulated.at(-1)!;
        if (count === 0) return [];
        return [
          ...cumulated.map((value, bucket) => ({
            metricName: `${name}_bucket`,
            labels: { ...labels, le: bucket < LATENCY_BOUNDS_MS.length ? LATENCY_BOUNDS_MS[bucket]! / 1_000 : "+Inf" },
            value,
          })),
          { metricName: `${name}_sum`, labels, value: sum / 1_000 },
          { metricName: `${name}_count`, labels, value: count },
        ];
      }),
    });
    this.#registry.registerMetric({ name, get, reset() {} } as never);
  }

  /** All metrics in Prometheus' text format, and its content type. */
  async expose(): Promise<{ text: string; contentType: string }> {
    return { text: await this.#registry.metrics(), contentType: this.#registry.contentType };
  }
}
