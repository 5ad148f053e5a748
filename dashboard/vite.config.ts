import { fileURLToPath } from "node:url";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compress } from "./build/compress.ts";
import { operationDeclarations } from "./build/operation-declarations.ts";
import { pages } from "./build/pages.ts";
import { site } from "./build/site.ts";

const SERVICE = process.env.LATCHKEY_URL ?? "http://127.0.0.1:3000";

/** Modules of few pages, and those that a page loads when they are shown. */
const CHARTS_AND_WINDOWS = new RegExp(
  [
    "/(?:chart|verification-chart|code-ranking|data-table|listing|panel|dialog-window|confirm-window|new-secret-dialog|checks|searched-listing|listing-with-panel|save-view)",
    "/(?:menu-popover|tooltip-window|sign-in-again|shortcuts|palette(?:-\\w+)?|selection-bar|row-link|use-still|use-return|table-order|table-header|use-media|csv)",
  ]
    .map((names) => `${names}\\.tsx?$`)
    .join("|"),
);
const FORMS =
  /\/ui\/\w+\/(?:fields|concurrency-field|expiry-field|json-field|metadata-editor|ratelimits-field|refill-field|select|overlap-field|inline-edit|form-dialog)\.tsx$/;

/** The line of filters above a list. */
const FILTERS = /\/(?:ui\/tables\/(?:filters|views-menu)|api\/views)\.tsx?$/;

/** What pages with refills show, without forms. */
const REFILLS = /\/dashboard\/src\/api\/refill\.ts$/;

const HISTORY = /\/pages\/(?:audit\/(?:actor|activity)|decisions\/(?:decision|refusal-list))\.tsx?$/;

/** What is in one file, because most pages need it: in files of its own, each small module would cost its headers. */
function isBase(id: string): boolean {
  // Those that the entry loads too would otherwise make it load what is below.
  if (/lucide-react\/.*\/icons\/|react-router\/dist\/esm\/use\w+\.js$/.test(id)) return true;
  if (/\/pages\/keys\/key-state\.tsx$/.test(id)) return true;
  return (
    /dashboard\/src\/(?:api|layout|ui)\//.test(id) &&
    ![CHARTS_AND_WINDOWS, FORMS, FILTERS, REFILLS].some((names) => names.test(id))
  );
}

export default defineConfig({
  plugins: [react(), tailwind(), operationDeclarations(), pages(), site(), compress()],
  resolve: { alias: { "@latchkey/sdk": fileURLToPath(new URL("../sdk/src/index.ts", import.meta.url)) } },
  // Scripts find their files from their own address: the pages can be below a path of a proxy.
  experimental: { renderBuiltUrl: (_, { hostType }) => (hostType === "js" ? { relative: true } : undefined) },
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
            // In the base, the printed pages would load all of it.
            { name: "runtime", test: /vite\/preload-helper|rolldown\/runtime/, priority: 2 },
            { name: "base", test: isBase, priority: 1 },
            // In the forms, pages that show a refill would load these.
            { name: "refills", test: REFILLS, priority: 1 },
            { name: "forms", test: FORMS },
            { name: "filters", test: FILTERS },
            // Small files that the same pages load.
            { name: "history", test: HISTORY },
          ],
        },
      },
    },
  },
  server: {
    port: 5173,
    proxy: Object.fromEntries(
      ["/dashboard/", "/docs", "/reference", "/openapi.json", "/errors", "/health"].map((path) => [path, SERVICE]),
    ),
  },
});
