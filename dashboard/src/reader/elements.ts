/**
 * The first element for a selector.
 *
 * @throws {Error} if there is none: the build printed another page than the scripts expect.
 */
export function one<Kind extends HTMLElement = HTMLElement>(selector: string, inside: ParentNode = document): Kind {
  const found = inside.querySelector<Kind>(selector);
  if (!found) throw new Error(`The page has no ${selector}.`);
  return found;
}

/** All elements for a selector. */
export function all<Kind extends HTMLElement = HTMLElement>(selector: string, inside: ParentNode = document): Kind[] {
  return [...inside.querySelectorAll<Kind>(selector)];
}
