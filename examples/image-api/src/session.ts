import type { Context } from "hono";
import { deleteCookie, getSignedCookie, setSignedCookie } from "hono/cookie";

const COOKIE = "session";
const LIFETIME_S = 30 * 86_400;

/** Sessions in a signed cookie: the id of the customer, and the time when the session ends. */
export class Sessions {
  readonly #secret: string;
  readonly #isSecure: boolean;

  /** `isSecure`: browsers send the cookie over HTTPS only. */
  constructor({ secret, isSecure }: { secret: string; isSecure: boolean }) {
    this.#secret = secret;
    this.#isSecure = isSecure;
  }

  async begin(c: Context, customerId: string): Promise<void> {
    const ends = Date.now() + LIFETIME_S * 1_000;
    await setSignedCookie(c, COOKIE, `${customerId}.${ends}`, this.#secret, {
      path: "/",
      httpOnly: true,
      sameSite: "Lax",
      secure: this.#isSecure,
      maxAge: LIFETIME_S,
    });
  }

  /** The id of the customer; undefined without a valid session. */
  async customerOf(c: Context): Promise<string | undefined> {
    const value = await getSignedCookie(c, this.#secret, COOKIE);
    const [customerId, ends] = value ? value.split(".") : [];
    return Number(ends) > Date.now() ? customerId : undefined;
  }

  end(c: Context): void {
    deleteCookie(c, COOKIE, { path: "/" });
  }
}
