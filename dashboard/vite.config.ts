import { fileURLToPath } from "node:url";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compress } from "./build/compress.ts";
import { operationDeclarations } from "./build/operation-declarations.ts";

const SERVICE = process.env.LATCHKEY_URL ?? "http://127.0.0.1:3000";

export default defineConfig({
  plugins: [react(), tailwind(), operationDeclarations(), compress()],
  resolve: { alias: { "@latchkey/sdk": fileURLToPath(new URL("../sdk/src/index.ts", import.meta.url)) } },
  build: {
    target: "es2023",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // The policy of the page allows no data URLs.
    assetsInlineLimit: 0,
    // The polyfill is an inline script.
    modulePreload: { polyfill: false },
  },
  server: {
    port: 5173,
    proxy: Object.fromEntries(
      ["/dashboard/", "/reference", "/openapi.json", "/errors", "/health"].map((path) => [path, SERVICE]),
    ),
  },
});
