// Verifies API keys with better-auth's plugin behind bare `node:http`, with its default settings and node:sqlite:
// `better-auth-server.js <folder with its packages> <number of keys>`. The keys are sent over IPC before the address.
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";

const [packages, count] = process.argv.slice(2);
const { resolve } = createRequire(join(packages, "package.json"));
const load = (name) => import(pathToFileURL(resolve(name)).href);
const { betterAuth } = await load("better-auth");
const { getMigrations } = await load("better-auth/db/migration");
const { apiKey } = await load("@better-auth/api-key");

const folder = mkdtempSync(join(tmpdir(), "latchkey-peer-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const database = new DatabaseSync(join(folder, "auth.db"));
const options = {
  database,
  secret: "a secret of a bench that is over in a minute",
  baseURL: "http://127.0.0.1",
  emailAndPassword: { enabled: true },
  telemetry: { enabled: false },
  // Each key would have a limit of 10 calls a day.
  plugins: [apiKey({ rateLimit: { enabled: false } })],
};
const auth = betterAuth(options);
await (await getMigrations(options)).runMigrations();
const { user } = await auth.api.signUpEmail({
  body: { email: "bench@example.com", password: "a long password", name: "bench" },
});
const keys = [];
// A commit of each key on the disk would take minutes. The verifications run with the default again.
database.exec("pragma synchronous = off");
while (keys.length < Number(count)) {
  const { key } = await auth.api.createApiKey({ body: { userId: user.id, name: "bench" } });
  keys.push(key);
}
database.exec("pragma synchronous = full");

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (chunk) => {
    body += chunk;
  });
  request.on("end", async () => {
    const { valid } = await auth.api.verifyApiKey({ body: JSON.parse(body) });
    const text = JSON.stringify({ data: { valid } });
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": text.length });
    response.end(text);
  });
});
server.listen(0, "127.0.0.1", () => {
  process.send?.({ url: `http://127.0.0.1:${server.address().port}`, keys });
});
