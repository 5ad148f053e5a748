import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/overlays/dialog.tsx";

const shortcuts: readonly (readonly [keys: readonly string[], what: string])[] = [
  [["Ctrl K"], "Search everything, or run a command"],
  [["/"], "Go to the search field of the page"],
  [["↑", "↓", "j", "k"], "Move between the rows of a table"],
  [["Enter"], "Open the row; save an edit"],
  [["x"], "Select the row"],
  [["Esc"], "Close the panel or the dialog; cancel an edit"],
  [["?"], "Show this list"],
];

/** The keys that do something on every page. */
export default function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog
      title="Keyboard shortcuts"
      isOpen
      onClose={onClose}
      size="sm"
      footer={
        <Button kind="primary" onPress={onClose}>
          Close
        </Button>
      }
    >
      <dl className="grid grid-cols-[8rem_minmax(0,1fr)] gap-y-2">
        {shortcuts.map(([keys, what]) => (
          <div key={what} className="contents">
            <dt className="flex flex-wrap gap-1">
              {keys.map((key) => (
                <kbd key={key} className="rounded-sm border border-edge bg-field px-1.5 font-mono text-xs">
                  {key}
                </kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
