/** This thread cannot answer a call alone. At most the request limit of the workspace has been charged. */
export class Elsewhere extends Error {
  constructor() {
    super("Another thread answers this call");
    this.name = "Elsewhere";
  }
}

/** The status of the result of a call that another thread must answer. Its headers are those of the admission. */
export const ELSEWHERE = 0;
