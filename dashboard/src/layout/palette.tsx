import { useState } from "react";
import { Header, Input, Menu, MenuItem, MenuSection, TextField } from "react-aria-components";
import { Dialog } from "../ui/overlays/dialog.tsx";
import { ErrorBox } from "../ui/text/error-box.tsx";
import { type Command, useCommands } from "./palette-commands.ts";
import { FieldWithResults } from "./palette-field.tsx";
import { useResults } from "./palette-results.ts";

/** The command palette: everything of the workspace, places and commands, found while one types. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const commands = useCommands(text);
  const { exact, sections, isPending, isPartial, error } = useResults(text);
  const shown = [
    { title: "Exact match", commands: exact },
    { title: "Places and commands", commands },
    ...sections,
  ].filter((section) => section.commands.length > 0);
  const results = shown.flatMap((section) => section.commands);
  const run = (id: string) => {
    onClose();
    results.find((one) => one.id === id)?.run();
  };
  return (
    <Dialog title="Search or run a command" isOpen onClose={onClose} size="md">
      <FieldWithResults text={text} onChange={setText} results={results.map(({ id }) => id)}>
        <TextField autoFocus aria-label="Search" autoComplete="off" spellCheck="false">
          <Input
            placeholder="A name, an owner, an id, a key, a place, a command"
            className="h-9 w-full rounded-md border border-edge bg-raised px-3"
          />
        </TextField>
        <Menu
          aria-label="Results"
          onAction={(id) => run(String(id))}
          renderEmptyState={() => (
            <p className="px-3 py-1.5 text-quiet">{isPending ? "Searching…" : `Nothing matches “${text}”.`}</p>
          )}
          className="max-h-96 overflow-y-auto outline-none"
        >
          {shown.map(({ title, commands }) => (
            <MenuSection key={title} id={title} className="pb-2">
              <Header className="px-3 pt-1 pb-0.5 text-xs text-quiet">{title}</Header>
              {commands.map((command) => (
                <Entry key={command.id} of={command} />
              ))}
            </MenuSection>
          ))}
        </Menu>
      </FieldWithResults>
      {isPartial && (
        <p className="text-xs text-quiet">
          The newest objects were searched. Older ones are found by id, external id or whole name, and in their lists.
        </p>
      )}
      {error && <ErrorBox error={error} />}
    </Dialog>
  );
}

function Entry({ of: { id, label, detail } }: { of: Command }) {
  return (
    <MenuItem
      id={id}
      textValue={label}
      className="flex cursor-default justify-between gap-x-4 rounded-md px-3 py-1.5 outline-none max-sm:flex-col sm:items-center hover:bg-hover data-focused:bg-accent-soft"
    >
      <span dir="auto" className="min-w-0 truncate">
        {label}
      </span>
      <span dir="auto" className="shrink-0 truncate text-xs text-quiet sm:max-w-[60%]">
        {detail}
      </span>
    </MenuItem>
  );
}
