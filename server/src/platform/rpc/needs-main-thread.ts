/** This thread cannot answer a call alone. At most the request limit of the workspace has been charged. */
export class NeedsMainThread extends Error {
  constructor() {
    super("Another thread answers this call");
    this.name = "NeedsMainThread";
  }
}

/** The status of the result of a call that another thread must answer. Its headers are those of the admission. */
export const NEEDS_MAIN_THREAD = 0;
