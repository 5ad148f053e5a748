import { dumpRows } from "./dump.ts";
import { type DumpedKey, joinedRows } from "./rows.ts";

const credentials = { name: "keyauth_credentials", columns: ["consumer_id", "key"], isRequired: true } as const;
/** Credentials of the plugin key-auth-enc, whose rows say that they are encrypted. */
const encrypted = { name: "keyauth_enc_credentials", columns: ["consumer_id", "key"] };
const joinedTables = [
  { name: "consumers", columns: ["id", "username"] },
  { name: "acls", columns: ["consumer_id", "group"] },
  { name: "plugins", columns: ["name", "consumer_id", "config"] },
];

interface Consumer {
  readonly consumer: Record<string, unknown>;
  readonly acls: object[];
  readonly plugins: object[];
}

/**
 * The credentials of key-auth in a dump of Kong's database, with the consumer, its ACL groups and its plugins in the form of
 * a declarative configuration. The file is read twice: first the consumers, which are kept in memory.
 *
 * @throws {CommandError} when the dump cannot be read.
 */
export async function* kongDumpRows(file: string): AsyncGenerator<DumpedKey> {
  const consumers = await readConsumers(file);
  for await (const { values, progress } of dumpRows(file, [credentials, encrypted])) {
    const consumer = consumers.get(values.get("consumer_id") ?? "");
    yield { fields: { ...Object.fromEntries(values), ...consumer }, progress };
  }
}

async function readConsumers(file: string): Promise<ReadonlyMap<string, Consumer>> {
  const consumers = new Map<string, Consumer>();
  const consumerOf = (id: string) => {
    const known = consumers.get(id);
    if (known) return known;
    const consumer: Consumer = { consumer: { id }, acls: [], plugins: [] };
    consumers.set(id, consumer);
    return consumer;
  };
  for await (const { table, values } of joinedRows(file, joinedTables)) {
    const id = values.get(table === "consumers" ? "id" : "consumer_id");
    if (id === null || id === undefined) continue;
    const { consumer, acls, plugins } = consumerOf(id);
    if (table === "consumers") {
      consumer.username = values.get("username");
      consumer.custom_id = values.get("custom_id");
    } else if (table === "acls") acls.push({ group: values.get("group") });
    else {
      plugins.push({
        name: values.get("name"),
        enabled: !/^f(alse)?$/.test(values.get("enabled") ?? ""),
        service: values.get("service_id"),
        route: values.get("route_id"),
        config: parsed(values.get("config")),
      });
    }
  }
  return consumers;
}

function parsed(text: string | null | undefined): unknown {
  try {
    return typeof text === "string" ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}
