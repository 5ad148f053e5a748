import { serve } from "@hono/node-server";
import { Latchkey } from "@latchkey/sdk";
import { gateway } from "./gateway.ts";

const { PORT = "8080", UPSTREAM_URL = "http://localhost:8090/v1", UPSTREAM_KEY = "" } = process.env;

// The address of the service and the root key are LATCHKEY_URL and LATCHKEY_ROOT_KEY.
const latchkey = new Latchkey({ retryWaitMax: 0 });
const apiId = await findApi("models");
const app = gateway({ latchkey, apiId, upstream: { url: UPSTREAM_URL, key: UPSTREAM_KEY } });

serve({ fetch: app.fetch, port: Number(PORT) }, ({ port }) => console.log(`Listening on http://localhost:${port}`));

async function findApi(name: string): Promise<string> {
  for await (const found of latchkey.apis.listApis.all({ search: name })) {
    if (found.name === name) return found.id;
  }
  throw new Error(`The service has no API "${name}": run \`latchkey apply -f latchkey.yaml\` first.`);
}
