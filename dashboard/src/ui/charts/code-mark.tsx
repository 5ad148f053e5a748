import { codeColors } from "./series.ts";

const limits: Record<string, `--${string}`> = { passed: codeColors.VALID, denied: codeColors.RATE_LIMITED };

/** A code of verifications, or `passed` and `denied`, with its colour of the charts. */
export function CodeMark({ code }: { code: string }) {
  const color = (codeColors as Record<string, string>)[code] ?? limits[code];
  return (
    <span className="inline-flex items-center gap-2 whitespace-nowrap">
      <span aria-hidden className="size-2 rounded-[2px]" style={{ background: color && `var(${color})` }} />
      <code className="font-mono text-xs">{code}</code>
    </span>
  );
}
