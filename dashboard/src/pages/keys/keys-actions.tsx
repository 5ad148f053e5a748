import { useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { loadCode } from "../../api/connection.ts";
import { Button } from "../../ui/button.tsx";
import { MoreMenu } from "../../ui/overlays/menu.tsx";
import { useDensity } from "../../ui/theme.ts";
import type { KeysFilter } from "./key-list.ts";
import type { KeysDialog } from "./keys-dialogs.tsx";

/** What can be done with an API and its keys: buttons beside the title. */
export function KeysActions({
  apiId,
  apiName,
  filter,
  onDialog,
}: {
  apiId: string;
  apiName: string | undefined;
  /** Which keys are exported. */
  filter: KeysFilter;
  onDialog: (dialog: KeysDialog) => void;
}) {
  const navigate = useNavigate();
  const [density, setDensity] = useDensity();
  const exportList = async (format: "csv" | "json") => {
    const { exportKeys } = await loadCode(() => import("./export.ts"));
    await exportKeys(filter, format, apiName);
  };
  return (
    <>
      <MoreMenu
        label="More"
        entries={[
          {
            label: "Settings of the API",
            onAction: () => void navigate({ to: "/apis/$apiId/settings", params: { apiId } }),
          },
          {
            label: "Portal session…",
            needs: `apis.${apiId}.create_portal_session`,
            onAction: () => onDialog("portal"),
          },
          { label: "Export these keys as CSV", onAction: () => void exportList("csv") },
          { label: "Export these keys as JSON", onAction: () => void exportList("json") },
          {
            label: density === "compact" ? "Comfortable rows" : "Compact rows",
            onAction: () => setDensity(density === "compact" ? "comfortable" : "compact"),
          },
          "line",
          {
            label: "Delete the API…",
            isDanger: true,
            needs: `apis.${apiId}.delete_api`,
            onAction: () => onDialog("delete"),
          },
        ]}
      />
      <Button needs={`apis.${apiId}.create_key`} onPress={() => onDialog("import")}>
        Import…
      </Button>
      <Button kind="primary" needs={`apis.${apiId}.create_key`} onPress={() => onDialog("create")}>
        <Plus aria-hidden />
        Create key
      </Button>
    </>
  );
}
