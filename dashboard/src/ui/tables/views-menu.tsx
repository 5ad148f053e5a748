import { defaultStringifySearch, useLocation, useRouter } from "@tanstack/react-router";
import { Bookmark } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { Button as AriaButton } from "react-aria-components";
import { loadCode } from "../../api/connection.ts";
import { useViews, type View } from "../../api/views.ts";
import { Menu } from "../overlays/menu.tsx";
import { toast, toastError } from "../overlays/toast.tsx";

const SaveView = lazy(() => loadCode(() => import("./save-view.tsx")));

/** The views of this table that are kept under a name, and what keeps the one that is shown. */
export function ViewsMenu() {
  const { views, save, remove } = useViews();
  const [isSaving, setSaving] = useState(false);
  const { history } = useRouter();
  const address = useViewAddress();
  const [path] = address.split("?");
  const current = views.find((view) => view.address === address);
  const deleteView = (view: View) => {
    try {
      remove(view);
      toast({ text: `Deleted the view ${view.name}.`, undo: async () => save(view) });
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <div className="inline-flex h-8 items-center rounded-md border border-line hover:bg-hover">
      <Menu
        label="Views"
        placement="bottom start"
        entries={[
          ...views
            .filter((view) => view.address.split("?")[0] === path)
            .map((view) => ({
              label: view.name,
              isChosen: view === current,
              onAction: () => history.push(view.address),
            })),
          { label: "Save this view…", onAction: () => setSaving(true) },
          ...(current ? [{ label: `Delete the view “${current.name}”`, onAction: () => deleteView(current) }] : []),
        ]}
        trigger={(opener) => (
          <AriaButton {...opener} className="flex h-full items-center gap-1.5 rounded-md px-2.5 whitespace-nowrap">
            <Bookmark aria-hidden className="size-4 text-quiet" />
            {current ? (
              <span>
                View: <bdi className="font-medium">{current.name}</bdi>
              </span>
            ) : (
              "Views"
            )}
          </AriaButton>
        )}
      />
      <Suspense>{isSaving && <SaveView address={address} onClose={() => setSaving(false)} />}</Suspense>
    </div>
  );
}

/** The address of what the table shows: without the row that is open and the dialog. */
function useViewAddress(): string {
  return useLocation({
    select: ({ pathname, search }) => {
      const { open: _, create: __, report: ___, ...shown } = search as Record<string, unknown>;
      // The key whose panel is open; elsewhere it is a filter.
      if (pathname.startsWith("/apis/")) delete shown.key;
      return pathname + defaultStringifySearch(shown);
    },
  });
}
