import { fastify } from "fastify";
import { withoutSchemas } from "../without-schemas.ts";

/** The page of the API reference. It loads only files of this service. */
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
    <noscript>The reference needs JavaScript. Its content is also in <a href="openapi.json">openapi.json</a>.</noscript>
    <script src="reference/scalar.js"></script>
    <script src="reference/start.js"></script>
  </body>
</html>
`;

const configuration = {
  url: "openapi.json",
  // Everything off that would load files from another origin or send data to one.
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

/** Starts the reference. A separate file, because the content security policy blocks inline scripts. */
export const startScript = `Scalar.createApiReference("#reference", ${JSON.stringify(configuration, null, 2)});\n`;

/**
 * The script of Scalar. Its package offers the script only as a Fastify route, so a Fastify instance that does not listen
 * serves it once. The package is imported for the first request, because API callers never need it.
 */
export async function referenceScript(): Promise<Buffer> {
  const { default: scalar } = await import("@scalar/fastify-api-reference");
  const app = fastify({ schemaController: withoutSchemas });
  try {
    await app.register(scalar, { routePrefix: "/reference", configuration: { url: "/" } });
    const { statusCode, rawPayload } = await app.inject("/reference/js/scalar.js");
    if (statusCode !== 200) throw new Error(`The package of Scalar does not serve its script: ${statusCode}`);
    return rawPayload;
  } finally {
    await app.close();
  }
}
