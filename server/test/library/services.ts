import type { Limiter } from "../../../engine/src/limits/limiter.ts";
import { usingServices } from "../../src/platform/rpc/operation.ts";

/** The services of the library, which the program does not have. */
export interface LibraryServices {
  limiter: Limiter;
  shelf: { countBooks(identityId: string): Promise<number> };
  /** Books that a reader may borrow in a minute. */
  booksPerMinute: number;
}

export const { analysis, limitedMutation } = usingServices<LibraryServices>();

/** The audience of the sessions of readers. */
export const LIBRARY = "library";
