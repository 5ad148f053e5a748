import { type MessagePort, parentPort } from "node:worker_threads";
import { serveRequests, type ThreadData } from "../../src/platform/store/sqlite/serve-requests.ts";

/** The only message on the port of a database that cannot be opened. */
export interface Unopened {
  unopened: unknown;
}

parentPort!.on("message", ({ data, port }: { data: ThreadData; port: MessagePort }) => {
  port.once("close", () => parentPort!.postMessage("idle"));
  serveRequests(port, data).catch((unopened: unknown) => {
    port.postMessage({ unopened } satisfies Unopened);
    port.close();
  });
});
