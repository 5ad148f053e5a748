/** Reads values by name. Reads of one event loop iteration share a query. */
export class GatheredReads<V> {
  readonly #read: (names: readonly string[]) => Promise<ReadonlyMap<string, V>>;
  #gathered: { names: Set<string>; values: Promise<ReadonlyMap<string, V>> } | undefined;

  constructor(read: (names: readonly string[]) => Promise<ReadonlyMap<string, V>>) {
    this.#read = read;
  }

  /** The value; undefined if there is none. Rejects when the query does. */
  async find(name: string): Promise<V | undefined> {
    if (!this.#gathered) {
      const names = new Set<string>();
      const values = new Promise<ReadonlyMap<string, V>>((resolve, reject) => {
        setImmediate(() => {
          this.#gathered = undefined;
          this.#read([...names]).then(resolve, reject);
        });
      });
      this.#gathered = { names, values };
    }
    this.#gathered.names.add(name);
    return (await this.#gathered.values).get(name);
  }
}
