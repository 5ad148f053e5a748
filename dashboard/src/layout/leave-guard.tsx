import { useRouter } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { ConfirmDialog } from "../ui/overlays/dialog.tsx";
import { hasUnsaved } from "../ui/unsaved.ts";

/** Asks before a page is left on which something was entered and not saved. */
export function LeaveGuard() {
  const { history } = useRouter();
  const [answer, setAnswer] = useState<{ stay: (isStaying: boolean) => void }>();
  useEffect(
    () =>
      history.block({
        enableBeforeUnload: hasUnsaved,
        blockerFn: ({ currentLocation, nextLocation }) => {
          if (!hasUnsaved() || placeOf(currentLocation) === placeOf(nextLocation)) return false;
          return new Promise<boolean>((stay) => setAnswer({ stay }));
        },
      }),
    [history],
  );
  return (
    <ConfirmDialog
      title="Leave without saving"
      action="Discard and leave"
      isOpen={answer !== undefined}
      onClose={() => {
        answer?.stay(true);
        setAnswer(undefined);
      }}
      onConfirm={async () => answer?.stay(false)}
    >
      What you entered on this page is not saved.
    </ConfirmDialog>
  );
}

/** What is edited at an address: its page, and the row whose panel is open. Filters leave both. */
function placeOf({ pathname, search }: { pathname: string; search: string }): string {
  const members = new URLSearchParams(search);
  return [pathname, members.get("key"), members.get("open")].join(" ");
}
