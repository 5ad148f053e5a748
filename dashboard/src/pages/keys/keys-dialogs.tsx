import type { Api } from "@latchkey/sdk";
import { lazyRouteComponent } from "@tanstack/react-router";
import { loadCode } from "../../api/connection.ts";

// What is not shown at first is loaded when it is.
const DeleteApi = lazyRouteComponent(() => loadCode(() => import("../apis/delete-api.tsx")), "DeleteApi");
const CreateSession = lazyRouteComponent(() => loadCode(() => import("../portal/create-session.tsx")), "CreateSession");
const CreateKey = lazyRouteComponent(() => loadCode(() => import("./create-key.tsx")), "CreateKey");
const ImportKeys = lazyRouteComponent(() => loadCode(() => import("./import-keys.tsx")), "ImportKeys");

/** The dialogs of the page of an API's keys. */
export type KeysDialog = "create" | "import" | "portal" | "delete";

/** The dialog that is open. The dialogs that need the API wait for it. */
export function KeysDialogs({
  apiId,
  api,
  open,
  onClose,
}: {
  apiId: string;
  api: Api | undefined;
  open: KeysDialog | undefined;
  onClose: () => void;
}) {
  if (open === "import") return <ImportKeys apiId={apiId} onClose={onClose} />;
  if (open === "portal") return <CreateSession apiId={apiId} onClose={onClose} />;
  if (open === "create" && api) return <CreateKey apiId={apiId} prefix={api.prefix} onClose={onClose} />;
  if (open === "delete" && api) return <DeleteApi api={api} isOpen onClose={onClose} />;
  return undefined;
}
