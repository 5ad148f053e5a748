import { hashSecret } from "../../../engine/src/crypto/hash.ts";
import { applyOwnChange } from "../../../engine/src/directory/directories.ts";
import { startOf } from "../../../engine/src/rules/imported-keys.ts";
import type { ImportedAttributes } from "../features/keys/insert-imported.ts";
import { readUpstreamAnswer } from "../features/upstreams/key.ts";
import { UnusableAnswer, Upstreams } from "../features/upstreams/upstreams.ts";
import { OutboundClient } from "../platform/outbound/client.ts";
import type { QuotaCounts } from "../platform/rpc/quota-counts.ts";
import type { Parts, Start } from "./open.ts";

/** An answer has at most this many bytes: its `meta` may have 64 KiB. */
const ANSWER_BYTES_MAX = 256 * 1024;
/** The longest timeout of a verifier. */
const TIMEOUT_MAX = 10_000;
/** Open questions. Workspaces share them: one alone has half of them at most. */
const QUESTIONS_PER_HOST_MAX = 128;
const QUESTIONS_MAX = 256;

/** Opens what asks the upstream verifiers of APIs. */
export function openUpstreams(
  { config, clock, events, opened }: Start,
  { store, directories, outbound }: Pick<Parts, "store" | "directories" | "outbound">,
  quotas: QuotaCounts,
): Upstreams<ImportedAttributes> {
  const client = new OutboundClient({
    clock,
    transport: outbound,
    allowPrivate: config.upstreamAllowPrivate,
    timeout: TIMEOUT_MAX,
    answerBytesMax: ANSWER_BYTES_MAX,
    requestsPerHost: QUESTIONS_PER_HOST_MAX,
    requestsMax: QUESTIONS_MAX,
  });
  opened.defer(() => client.close());
  return new Upstreams({
    clock,
    directories,
    requireCapacity: (workspaceId) => quotas.requireRoom(workspaceId, "keys", config.perWorkspace.keys),
    find: (apiId, workspaceId) => store.read("upstreamVerifier", { apiId, workspaceId }),
    async send({ url, headers, timeout }, question, owner) {
      const { status, body, isComplete } = await client.send({
        url,
        method: "POST",
        owner,
        timeout,
        body: JSON.stringify(question),
        headers: {
          ...Object.fromEntries(headers.map(({ name, value }) => [name.toLowerCase(), value])),
          "content-type": "application/json",
          accept: "application/json",
          "user-agent": "latchkey",
        },
      });
      if (status !== 200) throw new Error(`The upstream verifier answered with status ${status}`);
      if (!isComplete) throw new Error("The answer of the upstream verifier is too long or incomplete");
      return readUpstreamAnswer(body.toString());
    },
    async create({ key, workspaceId, apiId, attributes }) {
      const hash = hashSecret(key);
      const plan = { workspaceId, apiId, hash, start: startOf(key), attributes, now: clock.now() };
      const { change, exists, taken, refused } = await store.transact("createUpstreamKey", plan);
      // Also if another node created it: this one may have cached that it is missing.
      applyOwnChange(directories, change ?? { tags: [hash] });
      if (taken) quotas.note(workspaceId, taken);
      if (refused !== undefined) throw new UnusableAnswer(refused);
      return exists;
    },
    onOutage: events.upstreamFailed,
  });
}
