import type { Latchkey } from "@latchkey/sdk";
import { verify } from "@latchkey/sdk/hono";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { draw, isColor, paletteOf, type Size, sizes } from "./drawing.ts";
import { costs } from "./plans.ts";

const BODY_BYTES_MAX = 4_096;
const SEED_LENGTH_MAX = 64;

/** The API that is sold. `verify` answers 401, 402, 403, 429 and 503. */
export function api({ latchkey, apiId }: { latchkey: Latchkey; apiId: string }) {
  const app = new Hono();
  app.use(bodyLimit({ maxSize: BODY_BYTES_MAX, onError: (c) => problem(c, 413, "The body is too long.") }));

  app.get(
    "/palettes",
    verify({
      latchkey,
      apiId,
      permissions: "palettes.read",
      // A request that cannot be answered costs nothing.
      cost: (c) => (isColor(c.req.query("color")) ? costs.palette : 0),
    }),
    (c) => {
      const color = c.req.query("color");
      if (!isColor(color)) return problem(c, 400, "`color` must be a color such as %233b82f6, which is #3b82f6.");
      return c.json({ color, palette: paletteOf(color), credits: c.var.latchkey.credits });
    },
  );

  app.post(
    "/images",
    verify({
      latchkey,
      apiId,
      permissions: "images.create",
      cost: async (c) => {
        const order = await readOrder(c);
        return order ? costs.image[order.size] : 0;
      },
    }),
    async (c) => {
      const order = await readOrder(c);
      if (!order) {
        const detail = `The body must be JSON with \`size\` (${Object.keys(sizes).join(", ")}), \`color\` (#rrggbb) and \`seed\` (a text of up to ${SEED_LENGTH_MAX} characters).`;
        return problem(c, 400, detail);
      }
      c.header("X-Credits-Remaining", String(c.var.latchkey.credits));
      return c.body(draw(order.size, order.color, order.seed), 200, { "Content-Type": "image/svg+xml" });
    },
  );

  app.all("*", (c) => problem(c, 404, "There is no such route."));
  return app;
}

interface Order {
  readonly size: Size;
  readonly color: string;
  readonly seed: string;
}

/** The image that a request asks for; undefined if the body is not valid. Hono keeps the body, so it can be read again. */
async function readOrder(c: Context): Promise<Order | undefined> {
  const body: unknown = await c.req.json().catch(() => undefined);
  if (typeof body !== "object" || body === null) return undefined;
  const { size, color, seed } = body as Record<string, unknown>;
  if (typeof size !== "string" || !Object.hasOwn(sizes, size) || !isColor(color)) return undefined;
  if (typeof seed !== "string" || seed.length > SEED_LENGTH_MAX) return undefined;
  return { size: size as Size, color, seed };
}

/** An error in the shape in which the middleware answers. */
function problem(c: Context, status: 400 | 404 | 413, detail: string) {
  const titles = { 400: "Bad Request", 404: "Not Found", 413: "Content Too Large" };
  return c.json({ meta: {}, error: { title: titles[status], detail, status, type: "about:blank" } }, status);
}
