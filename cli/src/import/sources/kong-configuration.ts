import { isObject } from "../fields.ts";

type Entity = Record<string, unknown>;

/** The lists of a consumer whose entries may also be at the top of a configuration. */
const owned = ["keyauth_credentials", "acls", "plugins"] as const;

/**
 * The credentials of key-auth in a declarative configuration of Kong, each with its consumer: `deck gateway dump`, where
 * consumers have their credentials, or `kong config db_export`, where all lists are at the top. Undefined for a document
 * of another form.
 */
export function credentialsInConfiguration(document: unknown): Entity[] | undefined {
  if (!isObject(document)) return undefined;
  const consumers = entitiesIn(document.consumers);
  if (!Array.isArray(document.consumers) && !Array.isArray(document.keyauth_credentials)) return undefined;
  const pluginsOfGroups = new Map(entitiesIn(document.consumer_groups).map(({ name, plugins }) => [name, plugins]));
  const complete: Entity[] = consumers.map((consumer) => ({
    ...consumer,
    ...(Array.isArray(consumer.groups) && { groups: consumer.groups.map(withPlugins(pluginsOfGroups)) }),
  }));
  const byReference = new Map<unknown, Entity>();
  for (const consumer of complete) {
    for (const name of [consumer.username, consumer.id]) if (typeof name === "string") byReference.set(name, consumer);
  }
  const rows: Entity[] = [];
  const added = new Map<Entity, Record<string, unknown[]>>();
  for (const list of owned) {
    for (const { consumer: reference, ...entity } of entitiesIn(document[list])) {
      if (reference === undefined || reference === null) continue;
      const owner = byReference.get(isObject(reference) ? (reference.id ?? reference.username) : reference);
      if (owner === undefined) {
        if (list === "keyauth_credentials") rows.push({ ...entity, consumer: reference });
        continue;
      }
      const lists = added.get(owner) ?? {};
      added.set(owner, lists);
      lists[list] ??= [...entitiesIn(owner[list])];
      lists[list].push(entity);
    }
  }
  return [...complete.flatMap((consumer) => credentialsOf({ ...consumer, ...added.get(consumer) })), ...rows];
}

/** Adds to a membership in a consumer group the plugins of the group. */
function withPlugins(plugins: ReadonlyMap<unknown, unknown>) {
  return (membership: unknown): unknown => {
    const name = isObject(membership) ? membership.name : membership;
    return { name, plugins: plugins.get(name) };
  };
}

/** The credentials of a consumer, or the consumer itself if it has none. */
export function credentialsOf(row: Entity): Entity[] {
  const { keyauth_credentials: list, acls, groups, plugins, tags: _, ...consumer } = row;
  const credentials = entitiesIn(list);
  if (credentials.length === 0) return [row];
  return credentials.map((credential) => ({
    consumer,
    ...(acls !== undefined && { acls }),
    ...(groups !== undefined && { groups }),
    ...(plugins !== undefined && { plugins }),
    ...credential,
  }));
}

function entitiesIn(list: unknown): Entity[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}
