/** A text of the service: what it has between two backticks is shown as code, everything else as it is. */
export function TextWithCode({ text }: { text: string }) {
  return text.split(/`([^`]+)`/).map((part, index) =>
    index % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text do not move.
      <code key={index} className="rounded-sm bg-field px-1 text-ink">
        {part}
      </code>
    ) : (
      part
    ),
  );
}
