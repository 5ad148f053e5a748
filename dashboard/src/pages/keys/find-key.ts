import { useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { latchkey } from "../../api/client.ts";
import type { KeysSearch } from "../../layout/searches.ts";
import { toast, toastError } from "../../ui/overlays/toast.tsx";
import { keyName } from "./key-state.tsx";

/**
 * Opens the key of a text that looks like a key string, and says whether it looks like one. A key string must stay out of
 * the address: the service looks it up by its hash. An owner's id and a name can have the form of one.
 */
export function useFindKey(apiId: string, set: (change: KeysSearch) => void): (text: string) => boolean {
  const navigate = useNavigate();
  return useCallback(
    (text) => {
      if (!looksLikeKey(text)) return false;
      latchkey.keys
        .whoami({ key: text })
        .then(({ data }) => {
          if (data.apiId === apiId) set({ key: data.keyId });
          else void navigate({ to: "/apis/$apiId", params: { apiId: data.apiId }, search: { key: data.keyId } });
          toast({ text: `This is the key ${keyName(data)}.` });
        })
        .catch(async (error) => {
          const finds = async (filter: { externalId: string } | { search: string }) =>
            (await latchkey.apis.listKeys({ apiId, ...filter, limit: 1 })).data.length > 0;
          if (await finds({ externalId: text })) return set({ owner: text });
          if (!(await finds({ search: text }))) throw error;
          set({ q: text });
        })
        .catch(toastError);
      return true;
    },
    [apiId, navigate, set],
  );
}

/** Whether a text is a key string rather than something to search for. Ids have a known beginning. */
function looksLikeKey(text: string): boolean {
  return /^[\w.-]{20,}$/.test(text) && !/^(key|api|id|identity|root|ws|req)_[A-Za-z0-9]{1,24}$/.test(text);
}
