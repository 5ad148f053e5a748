/**
 * How tests wait. What a page shows, and where its focus is, follows an action a moment later, and the moment is long on a
 * busy machine. So a test reads a value until it is the expected one, and presses a key once the focus is where it belongs.
 */
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { eventually } from "../../server/test/process.ts";

/** Waits until a value equals another. */
export function eventuallyEqual<T>(read: () => T | Promise<T>, expected: NoInfer<T>, message?: string): Promise<void> {
  return eventuallyPasses(read, (found) => assert.deepEqual(found, expected, message));
}

/** Waits until a text matches a pattern. */
export function eventuallyMatch(read: () => Promise<string | null>, pattern: RegExp): Promise<void> {
  return eventuallyPasses(read, (found) => assert.match(found ?? "", pattern));
}

/** Waits until a text is nowhere in a page. */
export function eventuallyWithout(page: Page, text: string): Promise<void> {
  return eventuallyEqual(async () => (await page.content()).includes(text), false, `The page has ${text}`);
}

/** Waits until a value meets an assertion. */
export async function eventuallyPasses<T>(read: () => T | Promise<T>, check: (found: T) => void): Promise<void> {
  let error: unknown;
  const passes = async () => {
    const found = await read();
    try {
      check(found);
      return true;
    } catch (cause) {
      error = cause;
      return false;
    }
  };
  await eventually("the value", passes).catch((timeout) => {
    throw error ?? timeout;
  });
}

/** Waits until an element, or one inside of it, has the focus. */
export function hasFocus(place: Locator): Promise<void> {
  const read = () =>
    place.evaluate((element) => element.contains((element.getRootNode() as Document | ShadowRoot).activeElement));
  return eventuallyEqual(read, true, "The focus is elsewhere");
}

/** Presses a key once the focus is in a place. */
export async function pressIn(place: Locator, key: string): Promise<void> {
  await hasFocus(place);
  await place.page().keyboard.press(key);
}

/** Enters a text as a whole, as a paste does, once the focus is in a place. */
export async function typeIn(place: Locator, text: string): Promise<void> {
  await hasFocus(place);
  await place.page().keyboard.insertText(text);
}

/** Opens the palette with its shortcut, and types into it. Returns its results. */
export async function openPalette(page: Page, text: string): Promise<Locator> {
  await page.getByRole("button", { name: "Search or run a command" }).waitFor();
  await page.keyboard.press("Control+k");
  const field = page.getByRole("textbox", { name: "Search" });
  await hasFocus(field);
  await page.keyboard.type(text);
  return page.getByRole("menu", { name: "Results" });
}

/** Presses Enter once a result of the palette is the chosen one, which follows a moment after it is shown. */
export async function enterResult(result: Locator): Promise<void> {
  const page = result.page();
  await result.and(page.locator("[data-focused]")).waitFor();
  await page.keyboard.press("Enter");
}
