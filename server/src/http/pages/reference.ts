import { fastify } from "fastify";

/** The page of the reference. Everything that it loads has an address beside its own. */
export const referencePage = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>API reference · Latchkey</title>
    <link rel="icon" href="data:,">
  </head>
  <body>
    <div id="reference"></div>
    <noscript>The reference needs JavaScript. The same is in <a href="openapi.json">openapi.json</a>.</noscript>
    <script src="reference/scalar.js"></script>
    <script src="reference/start.js"></script>
  </body>
</html>
`;

const configuration = {
  url: "openapi.json",
  // Whatever would be fetched from elsewhere, or tell elsewhere who reads.
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: "never",
  documentDownloadType: "json",
  defaultOpenAllTags: true,
  orderSchemaPropertiesBy: "preserve",
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
};

/** Starts the reference. A file of its own, because the page may run no script that stands in it. */
export const startScript = `Scalar.createApiReference("#reference", ${JSON.stringify(configuration, null, 2)});\n`;

/**
 * Scalar's script as its package carries it. The package gives it away only as a route, so a framework that
 * listens nowhere is asked for it, once; it is loaded when the first reader comes, since no caller needs it.
 */
export async function referenceScript(): Promise<Buffer> {
  const { default: scalar } = await import("@scalar/fastify-api-reference");
  const app = fastify();
  try {
    await app.register(scalar, { routePrefix: "/reference", configuration: { url: "/" } });
    const { statusCode, rawPayload } = await app.inject("/reference/js/scalar.js");
    if (statusCode !== 200) throw new Error(`The script of the reference is not where it was: ${statusCode}`);
    return rawPayload;
  } finally {
    await app.close();
  }
}
