import { fileURLToPath } from "node:url";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compress } from "./build/compress.ts";
import { operationDeclarations } from "./build/operation-declarations.ts";

const SERVICE = process.env.LATCHKEY_URL ?? "http://127.0.0.1:3000";

/** Modules of few pages, and those that a page loads when they are shown. */
const CHARTS_AND_WINDOWS = new RegExp(
  [
    "/(?:chart|verification-chart|code-ranking|data-table|listing|panel|dialog-window|confirm-window|new-secret-dialog|checks)",
    "/(?:menu-popover|palette|selection-bar|row-link|use-still|use-media)",
  ]
    .map((names) => `${names}\\.tsx?$`)
    .join("|"),
);
const FORMS =
  /\/ui\/(?:fields|expiry-field|json-field|ratelimits-field|select|overlap-field|inline-edit|form-dialog)\.tsx$/;

/** What is in one file, because most pages need it: in files of its own, each small module would cost its headers. */
function isBase(id: string): boolean {
  if (/lucide-react\/.*\/icons\//.test(id)) return true;
  if (/\/pages\/keys\/key-state\.tsx$/.test(id)) return true;
  return /dashboard\/src\/(?:api|layout|ui)\//.test(id) && !CHARTS_AND_WINDOWS.test(id) && !FORMS.test(id);
}

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
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "base", test: isBase, priority: 1 },
            { name: "forms", test: FORMS },
          ],
        },
      },
    },
  },
  server: {
    port: 5173,
    proxy: Object.fromEntries(
      ["/dashboard/", "/reference", "/openapi.json", "/errors", "/health"].map((path) => [path, SERVICE]),
    ),
  },
});
