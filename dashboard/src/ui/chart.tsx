import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { exactNumber, localTime, shortNumber } from "../api/format.ts";
import type { Series } from "./series.ts";

/** The charts of a page have one cursor: its time is shown in all of them. */
const cursors = uPlot.sync("charts");

/**
 * Counts over time as stacked bars, or values as lines. Dragging selects a range. A table with the same numbers is there
 * for readers of the screen.
 */
export function Chart({
  label,
  times,
  series,
  kind,
  height = 200,
  onRange,
  format = shortNumber,
}: {
  label: string;
  /** The start of each bucket, Unix time in milliseconds. */
  times: readonly number[];
  series: readonly Series[];
  kind: "bars" | "lines";
  height?: number;
  onRange?: (start: number, end: number) => void;
  format?: (value: number) => string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const scheme = useScheme();
  const range = useRef(onRange);
  range.current = onRange;
  const data = useMemo(() => [times.map((time) => time / 1_000), ...heights(series, kind)], [times, series, kind]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours depend on the scheme.
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const style = getComputedStyle(element);
    const color = (name: string) => resolved(style.getPropertyValue(name), element);
    const [quiet, line] = [color("--color-quiet"), color("--color-line")];
    const axis = {
      stroke: quiet,
      grid: { stroke: line, width: 1 },
      ticks: { show: false },
      font: `11px ${style.fontFamily}`,
    };
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height,
        legend: { show: false },
        padding: [8, 28, 0, 0],
        cursor: {
          sync: { key: cursors.key },
          drag: { x: range.current !== undefined, y: false, setScale: false },
          points: { show: kind === "lines" },
        },
        scales: {
          // The last bar ends where its bucket ends.
          x: { time: true, range: (_, least, most) => [least, most + (kind === "bars" ? bucket(times) : 0)] },
          y: { range: (_, __, most) => [0, Math.max(most || 0, 1) * 1.08] },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            space: 72,
            size: 28,
            values: (_, ticks, __, ___, step) => ticks.map((tick) => tickText(tick, step)),
          },
          {
            ...axis,
            size: 44,
            space: 36,
            values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) || kind === "lines" ? format(tick) : "")),
          },
        ],
        series: [
          {},
          ...drawn(series, kind).map(({ label, color: name, values }) => ({
            label,
            stroke: color(name),
            width: kind === "bars" ? 0 : 1.5,
            // A line has no point between two gaps.
            points: { show: kind === "lines" && values.includes(null), size: 4 },
            ...(kind === "bars" && { fill: color(name), paths: uPlot.paths.bars!({ size: [0.82, 40], align: 1 }) }),
          })),
        ],
        hooks: {
          setCursor: [({ cursor }) => setAt(cursor.idx ?? null)],
          setSelect: [
            (self) => {
              const { left, width } = self.select;
              if (width < 4) return;
              range.current?.(
                Math.round(self.posToVal(left, "x") * 1_000),
                Math.round(self.posToVal(left + width, "x") * 1_000),
              );
              self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            },
          ],
        },
      },
      data as unknown as uPlot.AlignedData,
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [data, times, series, kind, height, format, scheme]);

  const shown = at !== null && at < times.length ? at : null;
  return (
    <figure className="relative flex min-w-0 grow flex-col">
      <figcaption className="mb-1 flex min-h-5 grow flex-wrap content-start items-center gap-x-4 gap-y-0.5 text-xs">
        <span className="font-medium">{label}</span>
        {shown !== null && <span className="text-quiet tabular-nums">{localTime(times[shown]!)}</span>}
        {series.map(({ label, color, values }) => (
          <span key={label} className="inline-flex items-center gap-1.5 tabular-nums">
            <span aria-hidden className="size-2 rounded-[2px]" style={{ background: `var(${color})` }} />
            {label}
            {shown !== null && (
              <span className="text-quiet">{values[shown] == null ? "no data" : exactNumber(values[shown])}</span>
            )}
          </span>
        ))}
      </figcaption>
      <div ref={place} aria-hidden className="w-full" style={{ height }} />
      <div className="sr-only">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <th>Time</th>
              {series.map(({ label }) => (
                <th key={label}>{label}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {times.map((time, index) => (
              <tr key={time}>
                <td>{localTime(time)}</td>
                {series.map(({ label, values }) => (
                  <td key={label}>{values[index] ?? "no data"}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

/** Bars are drawn from the back: the first is the whole stack. */
function drawn(series: readonly Series[], kind: "bars" | "lines"): readonly Series[] {
  return kind === "bars" ? series.toReversed() : series;
}

const hours = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const days = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

/** A time on the axis, in the zone and the language of the viewer. Midnight is the day that begins. */
function tickText(seconds: number, step: number): string {
  const time = new Date(seconds * 1_000);
  const isMidnight = time.getHours() === 0 && time.getMinutes() === 0;
  return (step >= 86_400 || isMidnight ? days : hours).format(time);
}

/** The length of a bucket in seconds. */
function bucket(times: readonly number[]): number {
  return times.length > 1 ? (times[1]! - times[0]!) / 1_000 : 3_600;
}

function heights(series: readonly Series[], kind: "bars" | "lines"): (number | null)[][] {
  if (kind === "lines") return series.map(({ values }) => [...values]);
  const sums: (number | null)[][] = [];
  for (const { values } of series) {
    const below = sums.at(-1);
    sums.push(values.map((value, index) => (value === null ? null : value + (below?.[index] ?? 0))));
  }
  return sums.toReversed();
}

/** A colour as a canvas understands it: the browser resolves `light-dark()`. */
function resolved(value: string, element: HTMLElement): string {
  const probe = document.createElement("span");
  probe.style.color = value;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Changes when the colours of the page change. */
function useScheme(): string {
  const [scheme, setScheme] = useState(readScheme);
  useEffect(() => {
    const update = () => setScheme(readScheme());
    const list = matchMedia("(prefers-color-scheme: dark)");
    list.addEventListener("change", update);
    const observer = new MutationObserver(update);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      list.removeEventListener("change", update);
      observer.disconnect();
    };
  }, []);
  return scheme;
}

function readScheme(): string {
  return `${document.documentElement.dataset.theme} ${matchMedia("(prefers-color-scheme: dark)").matches}`;
}
