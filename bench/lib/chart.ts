import type { Spread } from "./statistics.ts";

export interface Bar {
  label: string;
  /** A text: why there is none. */
  figure: Spread | string;
  /** Drawn in the colour of the service; the others are grey. */
  isOurs: boolean;
}

const WIDTH = 720;
const LABEL_WIDTH = 190;
const VALUE_WIDTH = 110;
const BAR_HEIGHT = 22;
const ROW_HEIGHT = 34;
const HEAD_HEIGHT = 48;
const FOOT_HEIGHT = 14;

/**
 * A bar chart as SVG, readable on light and dark pages: a bar up to the median, a line from minimum to maximum.
 * `digits` is the number of decimal places.
 */
export function barChart(title: string, unit: string, bars: readonly Bar[], digits = 0): string {
  const largest = Math.max(...bars.map(({ figure }) => (typeof figure === "string" ? 0 : figure.max)));
  const scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / largest;
  const height = HEAD_HEIGHT + bars.length * ROW_HEIGHT + FOOT_HEIGHT;
  const rows = bars.map(({ label, figure, isOurs }, i) => {
    const top = HEAD_HEIGHT + i * ROW_HEIGHT;
    const middle = top + BAR_HEIGHT / 2;
    const name = `  <text x="${LABEL_WIDTH - 10}" y="${middle}" class="label">${escaped(label)}</text>`;
    if (typeof figure === "string")
      return `${name}\n  <text x="${LABEL_WIDTH}" y="${middle}" class="unit">${escaped(figure)}</text>`;
    const { median, min, max } = figure;
    const at = (value: number) => (LABEL_WIDTH + value * scale).toFixed(1);
    return `${name}
  <rect x="${LABEL_WIDTH}" y="${top}" width="${(median * scale).toFixed(1)}" height="${BAR_HEIGHT}" rx="3" class="${isOurs ? "ours" : "other"}"/>
  <path d="M${at(min)} ${middle}H${at(max)}M${at(min)} ${middle - 5}v10M${at(max)} ${middle - 5}v10" class="range"/>
  <text x="${(LABEL_WIDTH + max * scale + 10).toFixed(1)}" y="${middle}" class="value">${written(median, digits)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}">
  <style>
    text { font: 13px system-ui, sans-serif; fill: #24292f; dominant-baseline: central }
    .title { font-weight: 600; font-size: 15px } .label { text-anchor: end } .value { font-variant-numeric: tabular-nums }
    .unit { fill: #57606a } .ours { fill: #2563eb } .other { fill: #afb8c1 } .range { stroke: #24292f; fill: none }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .unit { fill: #9198a1 } .ours { fill: #60a5fa } .other { fill: #57606a } .range { stroke: #e6edf3 }
    }
  </style>
  <text x="0" y="16" class="title">${escaped(title)}</text>
  <text x="${WIDTH}" y="16" text-anchor="end" class="unit">${escaped(unit)}</text>
${rows.join("\n")}
</svg>
`;
}

function written(value: number, digits: number): string {
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
