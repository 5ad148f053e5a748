import { useState } from "react";
import type { OperationName } from "../../api/client.ts";
import { type Snippets, snippetsOf } from "../../api/snippets.ts";
import { Segments } from "../fields/segments.tsx";
import { CopyButton } from "./copy-button.tsx";

/** A text in monospace with a button that copies it. */
export function Code({ text, label = "Copy the text" }: { text: string; label?: string }) {
  return (
    <div className="relative rounded-md border border-line bg-field">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard must be able to scroll it. */}
      <pre tabIndex={0} className="overflow-x-auto p-3 pr-10 font-mono text-xs leading-5">
        {text}
      </pre>
      <div className="absolute top-1.5 right-1.5 rounded-md bg-field">
        <CopyButton text={text} label={label} />
      </div>
    </div>
  );
}

const languages = {
  curl: "curl",
  TypeScript: "TypeScript",
  Python: "Python",
  Go: "Go",
} as const satisfies Record<keyof Snippets, string>;

/** A call of an operation in the languages of the clients. */
export function CodeSnippet({ operation, input }: { operation: OperationName; input: object }) {
  const [language, setLanguage] = useState<keyof Snippets>("curl");
  return (
    <div className="space-y-2">
      <Segments label="Language" options={languages} value={language} onChange={setLanguage} />
      <Code text={snippetsOf(operation, input)[language]} label={`Copy as ${language}`} />
    </div>
  );
}
