/** The names of all options of a type. The compiler compares them. */
export type Names<Options> = Readonly<Record<keyof Options, true>>;

/**
 * A misspelled option must not be ignored: without `permissions`, every key passes.
 *
 * @param place what the names of the options begin with, such as `hold.`.
 * @throws {TypeError} for an option that does not exist. It names those that do.
 */
export function checkNames(options: object, names: object, place = ""): void {
  if (Object(options) !== options) throw new TypeError("The options are missing: give an object.");
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(names, name)) continue;
    const known = Object.keys(names).map((each) => `\`${place}${each}\``);
    throw new TypeError(`There is no option \`${place}${name}\`. The options are ${known.join(", ")}.`);
  }
}
