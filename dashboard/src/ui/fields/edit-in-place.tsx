import { Pencil } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState, useTransition } from "react";
import { IconButton, type Needs } from "../button.tsx";

/**
 * A value with a button that replaces it by its editor. The value stays in view while the code of the editor is loaded.
 * The editor begins with the focus, and after it the focus is where it was.
 */
export function EditInPlace({
  label,
  display,
  editor,
  needs,
}: {
  /** What is edited, for readers of the screen: `name`. */
  label: string;
  display: ReactNode;
  editor: (onClose: () => void) => ReactNode;
  needs: Needs;
}) {
  const [isEditing, setEditing] = useState(false);
  const [isLoading, startLoading] = useTransition();
  const place = useRef<HTMLDivElement>(null);
  const wasEditing = useRef(false);
  useEffect(() => {
    if (isEditing) place.current?.querySelector<HTMLElement>("input, textarea, select, button")?.focus();
    else if (wasEditing.current) place.current?.querySelector<HTMLElement>("button[data-edit]")?.focus();
    wasEditing.current = isEditing;
  }, [isEditing]);
  if (isEditing) return <div ref={place}>{editor(() => setEditing(false))}</div>;
  return (
    <div ref={place} className="flex items-start justify-between gap-2" aria-busy={isLoading}>
      <div className="min-w-0 flex-1">{display}</div>
      <IconButton
        label={`Edit ${label}`}
        data-edit
        needs={needs}
        className="!size-6 [&_svg]:!size-3.5"
        onPress={() => startLoading(() => setEditing(true))}
      >
        <Pencil aria-hidden />
      </IconButton>
    </div>
  );
}
