/** What happens to a key or a caller while a call waits, and the answer to the call. */
import type { TestServer } from "./harness.ts";

/** What a test has made. */
interface Made {
  apiId: string;
  keyId: string;
  rootKeyId: string;
}

export interface Change {
  how: string;
  change(server: TestServer, made: Made): Promise<unknown>;
  answer: string;
}

/** Of a key with the permission `documents.read`, which expires in a minute. */
export const changesOfKeys: readonly Change[] = [
  {
    how: "the key is disabled",
    change: (server, { keyId }) => server.ok("keys.updateKey", { keyId, enabled: false }),
    answer: "DISABLED",
  },
  {
    how: "the key is deleted",
    change: (server, { keyId }) => server.ok("keys.deleteKey", { keyId }),
    answer: "NOT_FOUND",
  },
  {
    how: "the key expires",
    change: async (server) => server.clock.step(60_000),
    answer: "EXPIRED",
  },
  {
    how: "the key loses the permission of the query",
    change: (server, { keyId }) => server.ok("keys.removePermissions", { keyId, permissions: ["documents.read"] }),
    answer: "INSUFFICIENT_PERMISSIONS",
  },
];

/** `lost`: the answer to a caller whose root key has lost its permissions. */
export const changesOfRootKeys = (lost: string): readonly Change[] => [
  {
    how: "the root key is deleted",
    change: (server, { rootKeyId }) => server.ok("rootKeys.deleteRootKey", { rootKeyId }),
    answer: "authentication_failed",
  },
  {
    how: "the root key is disabled",
    change: (server, { rootKeyId }) => server.ok("rootKeys.updateRootKey", { rootKeyId, enabled: false }),
    answer: "root_key_disabled",
  },
  {
    how: "the root key loses its permissions",
    change: (server, { rootKeyId }) =>
      server.ok("rootKeys.updateRootKey", { rootKeyId, permissions: ["apis.api_other.verify_key"] }),
    answer: lost,
  },
];
