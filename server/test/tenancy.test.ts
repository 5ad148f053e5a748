/**
 * What another workspace owns does not exist: each operation is called with a name of something that is
 * another workspace's, and with one of nothing, in each place where it takes a name. Nothing of the other workspace is
 * seen or changed, and the two calls agree: in status and body, and in what the store had to do for them.
 */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import type { KyselyPlugin, PluginTransformQueryArgs } from "kysely";
import { operations } from "../src/operations/index.ts";
import { alphanumeric } from "../src/random/random.ts";
import { seededRandom } from "../src/random/seeded.ts";
import { namesOf } from "../src/rpc/operation.ts";
import { formatKey } from "../src/rules/key-string.ts";
import type { Procedure } from "../src/store/store.ts";
import { type StoreKind, stores, TestServer } from "./harness.ts";
import { createResources, type Resources, samples } from "./samples.ts";

type Kind = keyof Resources;

/** Names of nothing, each as like the one of something as can be: a neighbour of it in every list. */
function nothing(like: Resources, seed: number): Resources {
  const random = seededRandom(seed);
  const beside = (text: string) => `${text.slice(0, -2)}${alphanumeric(random, 2)}`;
  const names = Object.entries(like).map(([kind, name]) => [kind, beside(name)]);
  return {
    ...(Object.fromEntries(names) as Record<keyof Resources, string>),
    key: formatKey(
      null,
      Uint8Array.from({ length: 16 }, () => random.below(256)),
    ).key,
    hash: createHash("sha256").update(String(seed)).digest("hex"),
    // What was given as a pattern is one.
    identifier: `${beside(like.identifier)}*`,
  };
}

for (const store of stores) {
  describe(`two workspaces on ${store}`, () => tell(store));
}

function tell(store: StoreKind): void {
  /** What the database was asked since it was last forgotten: procedures, and on SQLite their statements. */
  let work: string[] = [];
  const watch = (name: string, procedure: Procedure): Procedure => {
    return (sql, argument, ask) => {
      const statement = ({ node }: PluginTransformQueryArgs) => {
        work.push(`${name}: ${node.kind}`);
        return node;
      };
      const plugin: KyselyPlugin = { transformQuery: statement, transformResult: async ({ result }) => result };
      return procedure({ ...sql, db: sql.db.withPlugin(plugin) }, argument, ask);
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
    server.store.interception = (name, proceed) => {
      if (name !== "readChanges") work.push(name);
      return proceed();
    };
  });
  after(() => server.close());

  /**
   * The reply to a body, and the work that it made; without what differs from call to call, and without the names that
   * were given, which may be told back.
   */
  async function observe(
    name: string,
    bodyOf: (things: Resources) => object,
    kinds: readonly Kind[],
    others: Resources,
    { as, mine }: { as: string; mine: Resources },
  ) {
    const given = Object.fromEntries(kinds.map((kind) => [kind, others[kind]]));
    work = [];
    const { status, body } = await server.call(name, bodyOf({ ...mine, ...given }), { as });
    const told = JSON.stringify(body.data ?? body.error);
    let text = told;
    for (const word of Object.values(given)) text = text.replaceAll(JSON.stringify(word).slice(1, -1), "<name>");
    text = text
      .replaceAll(/\b[a-z]+_[0-9A-Za-z]{16}\b/g, "<id>")
      .replaceAll(/"(key|start|plaintext)":"[^"]*"/g, '"$1":"…"');
    return { reply: { status, text, work: [...work] }, told, given: new Set<string>(Object.values(given)) };
  }

  async function ownWorkspace() {
    // Through the service, which knows of its own changes at once.
    const { workspaceId, key: as } = await server.ok("workspaces.createWorkspace", { name: "mine" });
    const mine = await createResources(server, as, workspaceId, "mine");
    // The first call of all reads the root key and the workspace.
    await server.verify("never", {}, { as });
    return { as, mine };
  }

  /** What the other workspace has, as rows. */
  async function theirRows() {
    const rows = await server.rows();
    const own = ([table, list]: [string, unknown[]]) =>
      [table, list.filter((row) => String(row).includes(theirs.workspaceId))] as const;
    return Object.fromEntries(Object.entries(rows).map(own));
  }

  for (const operation of operations) {
    it(`know nothing of each other in ${operation.name}`, async () => {
      const unchanged = await theirRows();
      const bodiesOf = samples[operation.name].named;
      for (let i = 0; i < bodiesOf(theirs).length; i++) {
        const bodyOf = (things: Resources) => bodiesOf(things)[i]!;
        const named = (Object.keys(theirs) as Kind[]).filter(
          (kind) => JSON.stringify(bodyOf({ ...theirs, [kind]: "…" })) !== JSON.stringify(bodyOf(theirs)),
        );
        // Every name for itself, the others being one's own; and all of them together, which will do for the second store.
        const single = store === "sqlite" && named.length > 1 ? named.map((kind) => [kind]) : [];
        for (const kinds of [...single, named]) {
          const first = await ownWorkspace();
          const foreign = await observe(operation.name, bodyOf, kinds, theirs, first);
          // A change is made in another workspace just like the first; a list has places, which its ids decide.
          const second = operation.kind === "query" ? first : await ownWorkspace();
          const missing = await observe(operation.name, bodyOf, kinds, nothing(theirs, ++seed), second);
          const at = `${operation.name} with ${kinds.join(", ")} of the other workspace`;
          assert.deepEqual(foreign.reply, missing.reply, at);
          for (const [kind, name] of Object.entries(theirs)) {
            const isTold = !foreign.given.has(name) && foreign.told.includes(name);
            assert(!isTold, `${at} told ${kind} ${name}: ${foreign.told}`);
          }
        }
        for (const alias of namesOf(operation).slice(1)) {
          await server.call(alias, bodyOf(theirs), { as: (await server.workspace("mine")).key });
        }
      }
      assert.deepEqual(await theirRows(), unchanged, `${operation.name} changed something of the other workspace`);
    });
  }
}
