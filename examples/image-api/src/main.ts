import { randomBytes } from "node:crypto";
import { serve } from "@hono/node-server";
import { Latchkey } from "@latchkey/sdk";
import { Hono } from "hono";
import { api } from "./api.ts";
import { Customers } from "./customers.ts";
import { Sessions } from "./session.ts";
import { website } from "./website.ts";

const { PORT = "8080", SESSION_SECRET, NODE_ENV } = process.env;

// The address of the service and the root key are LATCHKEY_URL and LATCHKEY_ROOT_KEY.
const latchkey = new Latchkey({ retryWaitMax: 0 });
const apiId = await findApi("images");

// Without a secret in the environment, a restart ends all sessions.
const secret = SESSION_SECRET ?? randomBytes(32).toString("hex");
if (secret.length < 32) throw new Error("SESSION_SECRET is too short: set it to 32 random characters or more.");
const sessions = new Sessions({ secret, isSecure: NODE_ENV === "production" });

const app = new Hono();
app.route("/v1", api({ latchkey, apiId }));
app.route("/", website({ latchkey, customers: new Customers(latchkey, apiId), sessions }));

serve({ fetch: app.fetch, port: Number(PORT) }, ({ port }) => console.log(`Listening on http://localhost:${port}`));

async function findApi(name: string): Promise<string> {
  for await (const found of latchkey.apis.listApis.all({ search: name })) {
    if (found.name === name) return found.id;
  }
  throw new Error(`The service has no API "${name}": run \`latchkey apply -f latchkey.yaml\` first.`);
}
