type Child = Node | string | false | null | undefined;

/**
 * Creates an element. A property that is a function is a listener of that event, `true` and `false` set an attribute or
 * leave it out, and texts are never read as HTML.
 */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Readonly<Record<string, unknown>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children.filter((child): child is Node | string => child instanceof Node || typeof child === "string"),
  );
  return element;
}

/** A bar for each value, as a picture without a text of its own. */
export function bars(values: readonly number[]): SVGSVGElement {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  const highest = Math.max(1, ...values);
  const set = (element: Element, attributes: object) => {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  };
  set(svg, { viewBox: `0 0 ${values.length * 4} 40`, preserveAspectRatio: "none", "aria-hidden": true });
  for (const [i, value] of values.entries()) {
    const height = value === 0 ? 0 : Math.max(2, (value / highest) * 40);
    const bar = document.createElementNS(namespace, "rect");
    set(bar, { x: i * 4 + 0.5, y: 40 - height, width: 3, height });
    svg.append(bar);
  }
  return svg;
}
