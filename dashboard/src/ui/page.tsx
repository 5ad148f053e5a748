import { type ReactNode, useEffect } from "react";

/** A page: its title, what matters about it in one line, and its actions at the right. */
export function Page({
  title,
  tabTitle,
  above,
  summary,
  actions,
  children,
}: {
  title: ReactNode;
  /** The title of the browser's tab, if `title` is not a text. */
  tabTitle?: string;
  /** Where the page belongs: links above the title. */
  above?: ReactNode;
  summary?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  useTabTitle(tabTitle ?? (typeof title === "string" ? title : undefined));
  return (
    <div className="mx-auto w-full max-w-7xl px-4 pt-5 pb-16 sm:px-6">
      <header className="mb-4 flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0 grow basis-72">
          {above && <div className="text-xs text-quiet">{above}</div>}
          <h1 className="text-xl font-semibold tracking-tight">{title}</h1>
          {summary && <div className="mt-1 text-quiet">{summary}</div>}
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** Sets the title of the browser's tab. */
export function useTabTitle(title: string | undefined): void {
  useEffect(() => {
    document.title = title === undefined ? "Latchkey" : `${title} · Latchkey`;
  }, [title]);
}

/** A part of a page with a heading. */
export function Section({
  title,
  id,
  actions,
  children,
}: {
  title: string;
  id?: string;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section id={id} className="scroll-mt-14 border-t border-line py-5">
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-lg font-medium">{title}</h2>
        {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
      </div>
      {children}
    </section>
  );
}

/** Links to the sections of a long page, which stay at its top. `sections`: the `id` and the title of each. */
export function SectionLinks({ label, sections }: { label: string; sections: readonly (readonly [string, string])[] }) {
  return (
    <nav
      aria-label={label}
      className="sticky top-12 z-10 -mx-4 flex gap-4 overflow-x-auto border-b border-line bg-paper px-4 sm:-mx-6 sm:px-6"
    >
      {sections.map(([id, title]) => (
        <a key={id} href={`#${id}`} className="shrink-0 py-2 text-quiet hover:text-ink hover:underline">
          {title}
        </a>
      ))}
    </nav>
  );
}

/** Names with their values, one pair per line. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className="grid grid-cols-1 gap-x-6 sm:grid-cols-[12rem_1fr]">{children}</dl>;
}

/** One pair of `Facts`. */
export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="label pt-2 sm:py-2 sm:text-sm">{name}</dt>
      <dd className="min-w-0 border-b border-line pb-2 sm:py-2">{children}</dd>
    </>
  );
}

/** In the place of a value that is not set. */
export function None({ text = "none" }: { text?: string }) {
  return <span className="text-quiet">{text}</span>;
}
