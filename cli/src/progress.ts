/** A line about progress on the standard error stream. It appears on a terminal only. */
export class ProgressLine {
  readonly #isShown = process.stderr.isTTY === true;

  /** Replaces the line. */
  show(text: string): void {
    if (this.#isShown) process.stderr.write(`\r\u001b[K${text.slice(0, (process.stderr.columns ?? 80) - 1)}`);
  }

  /** Removes the line. */
  clear(): void {
    if (this.#isShown) process.stderr.write("\r\u001b[K");
  }
}
