import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { CommandLine } from "./command-line.ts";
import type { TestServer } from "./harness.ts";

/** A service that listens, with a command line, while the tests of a suite run, for `latchkey import`. */
export class Importing {
  readonly #server: TestServer;
  #commandLine: CommandLine | undefined;
  url = "";

  constructor(server: TestServer) {
    this.#server = server;
    before(async () => {
      await server.open();
      const { address, port } = await server.service.listen();
      this.url = `http://${address}:${port}`;
      this.#commandLine = new CommandLine();
    });
    after(async () => {
      await this.#commandLine?.close();
      await server.close();
    });
  }

  /** An empty API in a workspace of its own, and imports into it from files in a folder. */
  async open(directory: string) {
    const { key: as } = await this.#server.workspace("import");
    const { apiId } = await this.#server.ok("apis.createApi", { name: "imported" }, { as });
    const environment = { HOME: directory, LATCHKEY_URL: this.url, LATCHKEY_ROOT_KEY: as };
    const run = (...args: string[]) => {
      if (this.#commandLine === undefined) throw new Error("The suite has not started.");
      return this.#commandLine.run({ args: ["import", "--api-id", apiId, ...args], environment, directory });
    };
    const linesOf = (file: string) =>
      readFileSync(join(directory, file), "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
    const keys = () => this.#server.ok("apis.listKeys", { apiId }, { as }) as Promise<{ [name: string]: unknown }[]>;
    const count = async () => (await keys()).length;
    return { as, apiId, directory, environment, run, linesOf, keys, count };
  }
}
