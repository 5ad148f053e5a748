import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { loadCode } from "../../api/connection.ts";
import { exactNumber, locale, localTime, shortNumber, utcDay } from "../../api/format.ts";
import { classes } from "../classes.ts";
import { CsvButton } from "../text/csv-button.tsx";
import type { Series } from "./series.ts";

const DAY_SECONDS = 86_400;
const BEFORE = "Period before";

/** The charts of a page have one cursor: its time is shown in all of them. */
const cursors = uPlot.sync("charts");

/**
 * Counts over time as stacked bars, or values as lines. Dragging selects a range. A table with the same numbers is there
 * for readers of the screen.
 */
export function Chart({
  label,
  times,
  series: all,
  kind,
  height = 200,
  accepted,
  before,
  onRange,
  format = shortNumber,
}: {
  label: string;
  /** The start of each bucket, Unix time in milliseconds. */
  times: readonly number[];
  series: readonly Series[];
  kind: "bars" | "lines";
  height?: number;
  /** The part that was not refused, which a switch hides: beside it the refusals are a pixel high. */
  accepted?: string;
  /** The sums of the period before, bucket by bucket: a line behind all parts. */
  before?: readonly (number | null)[] | undefined;
  onRange?: (start: number, end: number) => void;
  format?: (value: number) => string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const [hidden, setHidden] = useState<readonly string[]>([]);
  const series = useMemo(() => {
    const chosen = all.filter(({ label }) => !hidden.includes(label));
    return chosen.length === 0 ? all : chosen;
  }, [all, hidden]);
  const scheme = useScheme();
  const range = useRef(onRange);
  range.current = onRange;
  // A part of the sums is not to be compared with all of them.
  const ghost = hidden.length === 0 ? before : undefined;
  const data = useMemo(
    () => [
      times.map((time) => time / 1_000),
      ...heights(series, kind),
      ...(ghost ? [times.map((_, i) => ghost[i])] : []),
    ],
    [times, series, kind, ghost],
  );
  const isOfDays = bucket(times) === DAY_SECONDS;

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
        ...(isOfDays && { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), "Etc/UTC") }),
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
            values: (_, ticks, __, ___, step) => ticks.map((tick) => tickText(tick, step, isOfDays)),
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
          ...(ghost
            ? [
                {
                  label: BEFORE,
                  stroke: quiet,
                  width: 1.5,
                  dash: [4, 3],
                  points: { show: false },
                  ...(uPlot.paths.stepped && { paths: uPlot.paths.stepped({ align: 1, extend: true }) }),
                },
              ]
            : []),
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
  }, [data, times, series, kind, ghost, isOfDays, height, format, scheme]);

  const shown = at !== null && at < times.length ? at : null;
  const columns = before ? [...all, { label: BEFORE, values: before }] : all;
  return (
    <figure className="relative flex min-w-0 grow flex-col">
      <figcaption className="mb-1 flex min-h-5 grow flex-wrap content-start items-center gap-x-4 gap-y-0.5 text-xs">
        <span className="font-medium">{label}</span>
        {accepted !== undefined && all.length > 1 && (
          <LegendButton
            isOn={hidden.length === 1 && hidden[0] === accepted}
            className="border border-line px-1.5 aria-pressed:border-accent aria-pressed:bg-accent-soft aria-pressed:text-accent"
            onChange={(isOn) => setHidden(isOn ? [accepted] : [])}
          >
            Refusals only
          </LegendButton>
        )}
        {all.map(({ label, color, values }) => (
          <LegendButton
            key={label}
            isOn={!hidden.includes(label)}
            onChange={(isOn) => setHidden(isOn ? hidden.filter((other) => other !== label) : [...hidden, label])}
          >
            <span aria-hidden className="size-2 rounded-[2px]" style={{ background: `var(${color})` }} />
            {label}
            {/* Its room is there before it has a number, so that the legend does not move. */}
            <span className="min-w-[5ch] text-left text-quiet">
              {shown === null ? "" : values[shown] == null ? "no data" : exactNumber(values[shown])}
            </span>
          </LegendButton>
        ))}
        {ghost && (
          <span className="inline-flex items-center gap-1.5 tabular-nums">
            <span aria-hidden className="w-3 border-t border-dashed border-quiet" />
            {BEFORE}
            <span className="min-w-[5ch] text-quiet">{shown === null ? "" : exactNumber(ghost[shown] ?? 0)}</span>
          </span>
        )}
        <span className="ml-auto text-quiet tabular-nums">
          {shown !== null ? timeText(times[shown]!, isOfDays) : isOfDays ? "days in UTC" : zone}
        </span>
        <CsvButton label={label} onSave={() => saveSeries(label, times, columns)} />
      </figcaption>
      <div ref={place} aria-hidden className="w-full" style={{ height }} />
      <div className="sr-only">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <th>Time</th>
              {columns.map(({ label }) => (
                <th key={label}>{label}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {times.map((time, index) => (
              <tr key={time}>
                <td>{timeText(time, isOfDays)}</td>
                {columns.map(({ label, values }) => (
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

/** Saves the numbers of a chart as a file. */
async function saveSeries(
  label: string,
  times: readonly number[],
  series: readonly Pick<Series, "label" | "values">[],
): Promise<undefined> {
  const { csvText, saveCsv } = await loadCode(() => import("../../api/csv.ts"));
  const rows = times.map((time, index) => [new Date(time).toISOString(), ...series.map(({ values }) => values[index])]);
  saveCsv(csvText([["time", ...series.map(({ label }) => label)], ...rows]), label);
}

/** A part of the legend that is shown or hidden. */
function LegendButton({
  isOn,
  className = "aria-[pressed=false]:text-quiet aria-[pressed=false]:line-through",
  onChange,
  children,
}: {
  isOn: boolean;
  className?: string;
  onChange: (isOn: boolean) => void;
  children: ReactNode;
}) {
  return (
    <button
      type="button"
      aria-pressed={isOn}
      onClick={() => onChange(!isOn)}
      className={classes("inline-flex items-center gap-1.5 rounded-sm tabular-nums hover:underline", className)}
    >
      {children}
    </button>
  );
}

/** Bars are drawn from the back: the first is the whole stack. */
function drawn(series: readonly Series[], kind: "bars" | "lines"): readonly Series[] {
  return kind === "bars" ? series.toReversed() : series;
}

const hours = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
const days = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
const utcDays = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", timeZone: "UTC" });
const zone = hours.resolvedOptions().timeZone;

/** The start of a bucket, in the zone of the viewer. Days are counted in UTC: elsewhere they would begin in the afternoon. */
function timeText(time: number, isOfDays: boolean): string {
  return isOfDays ? utcDay(time) : localTime(time);
}

/** A time on the axis, in the language of the viewer. Midnight is the day that begins. */
function tickText(seconds: number, step: number, isOfDays: boolean): string {
  const time = new Date(seconds * 1_000);
  if (isOfDays) return utcDays.format(time);
  const isMidnight = time.getHours() === 0 && time.getMinutes() === 0;
  return (step >= DAY_SECONDS || isMidnight ? days : hours).format(time);
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
