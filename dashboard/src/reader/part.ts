/**
 * Loads a part of the scripts or the texts. If that is impossible, for example because the service was restarted with
 * another build, the place says so, with a button that reloads the page; the result is undefined.
 */
export async function loadPart<Part>(load: () => Promise<Part>, place: HTMLElement): Promise<Part | undefined> {
  try {
    return await load();
  } catch (error) {
    reportError(error);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "primary";
    button.textContent = "Reload the page";
    button.addEventListener("click", () => location.reload());
    const reason = document.createElement("span");
    reason.textContent = "This could not be loaded. The service may be unreachable, or have another version now. ";
    place.replaceChildren(reason, button);
    return undefined;
  }
}
