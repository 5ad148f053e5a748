import type { IncomingMessage } from "node:http";
import type { Replica } from "../../../engine/src/replica/replica.ts";
import { explainVerification } from "../features/keys/explainVerification.ts";
import { pathOf } from "../platform/rpc/operation.ts";
import type { Rpc } from "../platform/rpc/server.ts";
import type { Completion } from "./pass-on.ts";

const PATH = pathOf(explainVerification.name);

export interface ExplanationParts {
  readonly replica: Pick<Replica, "explain" | "stream">;
  readonly rpc: Pick<Rpc, "recognize">;
}

/** Says in the explanation of a verification what this edge knows; undefined for all other requests. */
export function explaining(
  { method, url, headers: { authorization } }: IncomingMessage,
  address: string,
  { replica, rpc }: ExplanationParts,
): Completion | undefined {
  if (method !== "POST" || authorization === undefined || url?.split("?", 1)[0] !== PATH) return undefined;
  return async (answer, request) => {
    // For others than those of its workspace, this edge does not exist.
    const workspaceId = await rpc.recognize({ credentials: { authorization }, address });
    if (workspaceId === null || workspaceId !== replica.stream.settings.workspaceId) return answer;
    try {
      const { key } = JSON.parse(request);
      const { data, ...envelope } = JSON.parse(answer);
      if (typeof data !== "object" || data === null) return answer;
      const edge = replica.explain(typeof key === "string" ? key : undefined, data.key?.keyId);
      return JSON.stringify({ ...envelope, data: { ...data, edge } });
    } catch {
      // Not the answer of a service.
      return answer;
    }
  };
}
