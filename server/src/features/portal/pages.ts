import { sendContent } from "../../platform/http/pages/send-content.ts";
import { SharedContent } from "../../platform/http/pages/shared-content.ts";
import type { AddRoutes } from "../../platform/http/routes.ts";
import { elementScript } from "./element-script.ts";
import { portalPage, portalScript, portalStyle } from "./page.ts";

/**
 * The page loads files of this service, and one image: the logo of the session. The service does not know the session
 * when it sends the page, so its script limits images to the logo as soon as it knows it.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src https: data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
/** The policy of files that are no pages. */
const closed = "default-src 'none'";

const javascript = "text/javascript; charset=utf-8";
const css = "text/css; charset=utf-8";

const MINUTES_CACHED = 10;

/** Adds the page of the portal, and the element for pages of others. */
export const addPortalPages: AddRoutes = (app) => {
  const element = new SharedContent(elementScript);
  app.get("/portal", (_request, reply) => {
    reply.headers({ "cache-control": "no-cache", "cross-origin-opener-policy": "same-origin" });
    return sendContent(reply, "text/html; charset=utf-8", portalPage, policy);
  });
  // The page loads its files relative to its address without the slash.
  app.get("/portal/", (_request, reply) => reply.redirect("../portal", 308));
  app.get("/portal/page.js", (_request, reply) =>
    sendContent(reply.header("cache-control", "no-cache"), javascript, portalScript, closed),
  );
  app.get("/portal/style.css", (_request, reply) =>
    sendContent(reply.header("cache-control", "no-cache"), css, portalStyle, closed),
  );
  app.get("/portal/latchkey-keys.js", (request, reply) => {
    reply.headers({
      // Scripts that are modules are loaded with CORS.
      "access-control-allow-origin": "*",
      "cross-origin-resource-policy": "cross-origin",
      "cache-control": `public, max-age=${MINUTES_CACHED * 60}`,
    });
    return element.send(request, reply, javascript, closed);
  });
};
