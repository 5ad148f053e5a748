interface Waiting<Value> {
  readonly id: string;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

/** A function that reads one value by its id: ids that are asked for in the same turn are read together, at most `max` at once. */
export function inBatches<Value>(
  max: number,
  readAll: (ids: readonly string[]) => Promise<ReadonlyMap<string, Value>>,
): (id: string) => Promise<Value> {
  let waiting: Waiting<Value>[] = [];
  const send = async (batch: readonly Waiting<Value>[]) => {
    try {
      const values = await readAll(batch.map(({ id }) => id));
      for (const { id, resolve, reject } of batch) {
        const value = values.get(id);
        if (value === undefined) reject(new Error(`There is no ${id}.`));
        else resolve(value);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };
  return (id) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) {
        setTimeout(() => {
          const all = waiting;
          waiting = [];
          for (let i = 0; i < all.length; i += max) void send(all.slice(i, i + max));
        });
      }
      waiting.push({ id, resolve, reject });
    });
}
