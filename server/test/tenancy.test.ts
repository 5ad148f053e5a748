/**
 * Resources of another workspace look missing. Each operation is called with a name of another workspace's resource,
 * and with a name that does not exist, at each place where it takes a name. Nothing of the other workspace is returned
 * or changed, and the two calls agree in status, body, and the work in the store.
 */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import type { KyselyPlugin, PluginTransformQueryArgs } from "kysely";
import { alphanumeric } from "../../engine/src/random/random.ts";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { formatKey } from "../../engine/src/rules/key-string.ts";
import { namesOf } from "../src/platform/rpc/operation.ts";
import type { Procedure } from "../src/platform/store/store.ts";
import { operations, replicaOperations } from "../src/service/operations.ts";
import { type StoreKind, stores, TestServer } from "./harness.ts";
import { createResources, type Resources, samples } from "./samples.ts";

type Kind = keyof Resources;

/** A workspace that calls: its administrator, and its resources. */
interface Own {
  as: string;
  mine: Resources;
}

/** Names that do not exist, each similar to an existing one, so that it is next to it in every list. */
function missingNames(like: Resources, seed: number): Resources {
  const random = seededRandom(seed);
  const similar = (text: string) => `${text.slice(0, -2)}${alphanumeric(random, 2)}`;
  const names = Object.entries(like).map(([kind, name]) => [kind, similar(name)]);
  return {
    ...(Object.fromEntries(names) as Record<keyof Resources, string>),
    key: formatKey(
      null,
      Uint8Array.from({ length: 16 }, () => random.below(256)),
    ).key,
    hash: createHash("sha256").update(String(seed)).digest("hex"),
    // A pattern stays a pattern.
    identifier: `${similar(like.identifier)}*`,
  };
}

for (const store of stores) {
  describe(`two workspaces on ${store}`, () => defineTests(store));
}

function defineTests(store: StoreKind): void {
  /** The work since the last call: procedures, and on SQLite their statements. */
  let work: string[] = [];
  const watch = (name: string, procedure: Procedure): Procedure => {
    return (sql, argument, ask) => {
      const statement = ({ node }: PluginTransformQueryArgs) => {
        work.push(`${name}: ${node.kind}`);
        return node;
      };
      const plugin: KyselyPlugin = { transformQuery: statement, transformResult: async ({ result }) => result };
      return procedure({ ...sql, db: sql.db.withPlugin(plugin), each: undefined }, argument, ask);
    };
  };
  const server = new TestServer({
    store,
    settings: { VAULT_KEY: randomBytes(32).toString("base64") },
    ...(store === "sqlite" && { watch }),
  });
  let theirs: Resources;
  let seed = 0;

  before(async () => {
    await server.open();
    const { workspaceId, key } = await server.workspace("theirs");
    theirs = await createResources(server, key, workspaceId, "theirs");
    // The first look-up of a key makes the text of its query.
    const first = await server.workspace("first");
    const { key: anyKey } = await createResources(server, first.key, first.workspaceId, "first");
    await server.verify(anyKey, {}, { as: first.key });
    server.store.interception = (name, proceed) => {
      if (name !== "readChanges") work.push(name);
      return proceed();
    };
  });
  after(() => server.close());

  /**
   * Calls the operation. Returns the reply and the work in the store, without values that differ between calls and
   * without the given names, which an answer may repeat.
   */
  async function observe(
    name: string,
    bodyOf: (things: Resources) => object,
    kinds: readonly Kind[],
    others: Resources,
    { as, mine }: Own,
  ) {
    const given = Object.fromEntries(kinds.map((kind) => [kind, others[kind]]));
    work = [];
    const { status, body } = await server.call(name, bodyOf({ ...mine, ...given }), { as });
    // A report of a leaked key is handled after its answer.
    await server.store.settled();
    const returned = JSON.stringify(body.data ?? body.error);
    let text = returned;
    for (const word of Object.values(given)) text = text.replaceAll(JSON.stringify(word).slice(1, -1), "<name>");
    text = text
      .replaceAll(/\b[a-z]+_[0-9A-Za-z]{16}\b/g, "<id>")
      .replaceAll(/"(key|start|plaintext|position)":"[^"]*"/g, '"$1":"…"')
      .replaceAll(/lk_portal_[0-9A-Za-z]+/g, "<token>");
    return { reply: { status, text, work: [...work] }, returned, given: new Set<string>(Object.values(given)) };
  }

  /** Workspaces that are as they were: what was called there changed nothing, and cached nothing. */
  const unused: Own[] = [];

  async function ownWorkspace(): Promise<Own> {
    const kept = unused.pop();
    if (kept !== undefined) return kept;
    // Through the service, which invalidates its caches at once.
    const { workspaceId, key: as } = await server.ok("workspaces.createWorkspace", { name: "mine" });
    const mine = await createResources(server, as, workspaceId, "mine");
    // The first call reads the root key and the workspace.
    await server.verify("never", {}, { as });
    return { as, mine };
  }

  /** The rows of the other workspace. */
  const theirRows = () => server.rows(theirs.workspaceId);
  let unchanged: Awaited<ReturnType<typeof theirRows>>;
  before(async () => {
    unchanged = await theirRows();
  });

  for (const operation of [...operations, ...replicaOperations]) {
    it(`are isolated from each other in ${operation.name}`, async () => {
      const bodiesOf = samples[operation.name].named;
      for (let i = 0; i < bodiesOf(theirs).length; i++) {
        const bodyOf = (things: Resources) => bodiesOf(things)[i]!;
        const named = (Object.keys(theirs) as Kind[]).filter(
          (kind) => JSON.stringify(bodyOf({ ...theirs, [kind]: "…" })) !== JSON.stringify(bodyOf(theirs)),
        );
        // Each name alone, with own resources at the other places; and all names together, which suffices for the
        // second store.
        const single = store === "sqlite" && named.length > 1 ? named.map((kind) => [kind]) : [];
        for (const kinds of [...single, named]) {
          const first = await ownWorkspace();
          const foreign = await observe(operation.name, bodyOf, kinds, theirs, first);
          // A change needs a workspace without the first change, and what reads caches one without the first read. A list
          // needs the same one, because its cursors contain ids.
          const isRepeatable = operation.kind === "query" && operation.answer === undefined;
          const second = isRepeatable ? first : await ownWorkspace();
          const missing = await observe(operation.name, bodyOf, kinds, missingNames(theirs, ++seed), second);
          // A rejected mutation changes nothing, and reads from the database only.
          const isRejected = [foreign, missing].every(({ reply }) => reply.status >= 400);
          if (isRepeatable) unused.push(first);
          else if (operation.kind === "mutation" && isRejected) unused.push(first, second);
          const at = `${operation.name} with ${kinds.join(", ")} of the other workspace`;
          assert.deepEqual(foreign.reply, missing.reply, at);
          for (const [kind, name] of Object.entries(theirs)) {
            const isReturned = !foreign.given.has(name) && foreign.returned.includes(name);
            assert(!isReturned, `${at} returned ${kind} ${name}: ${foreign.returned}`);
          }
        }
        for (const alias of namesOf(operation).slice(1)) {
          await server.call(alias, bodyOf(theirs), { as: (await server.workspace("mine")).key });
        }
      }
      const before = unchanged;
      unchanged = await theirRows();
      assert.deepEqual(unchanged, before, `${operation.name} changed something of the other workspace`);
    });
  }
}
