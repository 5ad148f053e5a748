import { useState } from "react";
import { Tab, TabList, TabPanel, Tabs } from "react-aria-components";
import type { OperationName } from "../api/client.ts";
import { type Snippets, snippetsOf } from "../api/snippets.ts";
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

const languages = ["curl", "TypeScript", "Python", "Go"] as const satisfies (keyof Snippets)[];

/** A call of an operation in the languages of the clients. */
export function CodeSnippet({ operation, input }: { operation: OperationName; input: object }) {
  const [language, setLanguage] = useState<keyof Snippets>("curl");
  const snippets = snippetsOf(operation, input);
  return (
    <Tabs selectedKey={language} onSelectionChange={(key) => setLanguage(key as keyof Snippets)}>
      <TabList aria-label="Language" className="mb-2 flex gap-1">
        {languages.map((name) => (
          <Tab
            key={name}
            id={name}
            className="cursor-pointer rounded-md px-2.5 py-1 text-quiet hover:bg-hover data-selected:bg-field data-selected:font-medium data-selected:text-ink"
          >
            {name}
          </Tab>
        ))}
      </TabList>
      {languages.map((name) => (
        <TabPanel key={name} id={name}>
          <Code text={snippets[name]} label={`Copy as ${name}`} />
        </TabPanel>
      ))}
    </Tabs>
  );
}
