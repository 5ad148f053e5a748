import type { Api } from "@latchkey/sdk";
import { type Input, useCall } from "../../api/client.ts";

/** What every edit of a member of an API needs. `value` of a save: null removes the member. */
export function useSetting({ apiId }: Api) {
  const { mutateAsync } = useCall("apis.updateApi");
  return (field: keyof Input<"apis.updateApi">) => ({
    field,
    needs: `apis.${apiId}.update_api`,
    save: (value: unknown) => mutateAsync({ apiId, [field]: value }),
  });
}
