import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { Button, IconButton } from "../button.tsx";
import { toast } from "../overlays/toast.tsx";

/** Copies a text. With children it is a button with that text, else an icon. */
export function CopyButton({
  text,
  label = "Copy",
  children,
  kind,
}: {
  /** The text, or what makes it when the button is pressed. */
  text: string | (() => string);
  label?: string;
  children?: string;
  kind?: "primary" | "plain" | "quiet";
}) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      setCopied(true);
    } catch {
      toast({ text: "The browser does not allow copying here. Select the text and copy it.", kind: "error" });
    }
  };
  const icon = isCopied ? <Check aria-hidden className="text-good" /> : <Copy aria-hidden />;
  if (children === undefined) {
    return (
      <IconButton label={isCopied ? "Copied" : label} onPress={copy} className="!size-6 [&_svg]:!size-3.5">
        {icon}
      </IconButton>
    );
  }
  return (
    <Button onPress={copy} kind={kind ?? "plain"}>
      {icon}
      {isCopied ? "Copied" : children}
    </Button>
  );
}

/** An id in monospace that copies. */
export function Id({ id }: { id: string }) {
  return (
    <span className="inline-flex max-w-full items-center gap-0.5">
      <code className="truncate font-mono text-xs">{id}</code>
      <CopyButton text={id} label={`Copy ${id}`} />
    </span>
  );
}
