import { type Procedures, Rollback, type Store } from "../store.ts";
import { FileClaim } from "./claim.ts";
import { openSqliteConnection } from "./connection.ts";

/** Opens the embedded database on the calling thread, for tests and for simulations that control every step. */
export function openSqliteStoreHere<P extends Procedures>(file: string, procedures: P): Store<P> {
  const connection = openSqliteConnection(file, "write", { functions: procedures.functions });
  let previous: Promise<unknown> = Promise.resolve();
  let writesInFlight = 0;
  const serialize = <T>(work: () => Promise<T>): Promise<T> => {
    const result = previous.then(work);
    previous = result.catch(() => {});
    return result;
  };
  return {
    isEmbedded: true,
    monthlyTables: [],
    read: (name, argument) =>
      serialize(() => procedures.reading[name]!(connection.sql, argument, rejectQuestion)) as never,
    transact: (name, argument, answer) => {
      writesInFlight++;
      const done = serialize(async () => {
        const ask = async (question: unknown) => (answer as (question: unknown) => unknown)(question);
        const result = await connection.transaction((sql) => procedures.writing[name]!(sql, argument, ask));
        return result instanceof Rollback ? result.value : result;
      });
      return done.finally(() => writesInFlight--) as never;
    },
    get writesInFlight() {
      return writesInFlight;
    },
    claim: async () => FileClaim.take(file),
    listen: () => {},
    close: () => serialize(async () => connection.close()),
  };
}

const rejectQuestion = () => Promise.reject(new Error("A reading procedure cannot ask its caller"));
