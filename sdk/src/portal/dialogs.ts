import type { NewKey, OwnKey, PortalSession } from "./calls.ts";
import { h } from "./dom.ts";
import type { Language } from "./texts.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Lives of a new key that a person can choose, if the session allows them. */
const LIVES = [DAY, 7 * DAY, 30 * DAY, 90 * DAY, 365 * DAY];
/** How long an old key can stay valid. */
const OVERLAPS = [0, HOUR, DAY, 7 * DAY];

/** What a dialog needs of the element that opens it. */
export interface DialogParts {
  readonly root: ShadowRoot;
  readonly language: Language;
  /** The text for an error. */
  explain(error: unknown): string;
}

interface FormOptions<Result> {
  title: string;
  fields: readonly Node[];
  /** The label of the button that sends the form. */
  submit: string;
  isDangerous?: boolean;
  send(): Promise<Result>;
}

/** Opens a dialog with a form. Resolves with the result of `send`, or undefined if the person cancels. */
function openForm<Result>(
  { root, language, explain }: DialogParts,
  { title, fields, submit, isDangerous = false, send }: FormOptions<Result>,
): Promise<{ result: Result } | undefined> {
  const { promise, resolve } = deferred<{ result: Result } | undefined>();
  const error = h("p", { class: "error", role: "alert" });
  const button = h("button", { class: isDangerous ? "danger" : "primary" }, submit);
  let isSending = false;
  const onSubmit = async (event: Event) => {
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    button.setAttribute("aria-disabled", "true");
    try {
      const result = await send();
      resolve({ result });
      dialog.close();
    } catch (problem) {
      error.textContent = explain(problem);
    } finally {
      isSending = false;
      button.removeAttribute("aria-disabled");
    }
  };
  const cancel = h("button", { type: "button", click: () => dialog.close() }, language.texts.cancel);
  const form = h("form", { submit: onSubmit }, h("h3", { id: "dialog" }, title), ...fields, error);
  form.append(h("div", { class: "end" }, cancel, button));
  const dialog = show(root, form, () => resolve(undefined));
  return promise;
}

function show(root: ShadowRoot, content: Node, onClose: () => void): HTMLDialogElement {
  const dialog = h("dialog", { "aria-labelledby": "dialog" }, content);
  dialog.addEventListener("close", () => {
    dialog.remove();
    onClose();
  });
  root.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Asks for the settings of a new key, and creates it. */
export async function createKey(
  parts: DialogParts,
  { keys }: PortalSession,
  create: (input: { name?: string; prefix?: string; expiresIn?: number; roles?: string[] }) => Promise<NewKey>,
): Promise<NewKey | undefined> {
  const { language } = parts;
  const { texts } = language;
  const name = nameField(language, "");
  const fields: Node[] = [name.field];
  const prefix = choice(
    texts.prefix,
    (keys.prefixes ?? []).map((one) => [one, `${one}_`]),
  );
  const longest = keys.expiresInMax;
  const lives = [...LIVES.filter((life) => longest === null || life < longest), ...(longest === null ? [] : [longest])];
  const expiry = choice(texts.expiry, [
    ...(longest === null ? [["", texts.never] as const] : []),
    ...lives.map((life) => [String(life), language.say("after", { duration: language.duration(life) })] as const),
  ]);
  if (longest !== null) expiry.select.value = String(longest);
  for (const one of [prefix, expiry]) if (one.select.options.length > 1) fields.push(one.field);
  const boxes = keys.roles.map((role) => h("input", { type: "checkbox", value: role, checked: true }));
  if (boxes.length > 0) {
    const choices = boxes.map((box) => h("label", { class: "choice" }, box, box.value));
    fields.push(h("fieldset", {}, h("legend", {}, texts.roles), ...choices));
  }
  const done = await openForm(parts, {
    title: texts.create,
    fields,
    submit: texts.create,
    send: () =>
      create({
        ...(name.input.value.trim() !== "" && { name: name.input.value.trim() }),
        ...(prefix.select.value !== "" && { prefix: prefix.select.value }),
        ...(expiry.select.value !== "" && { expiresIn: Number(expiry.select.value) }),
        ...(boxes.length > 0 && { roles: boxes.filter(({ checked }) => checked).map(({ value }) => value) }),
      }),
  });
  return done?.result;
}

/** Asks how long the old key stays valid, and replaces it. */
export async function replaceKey(
  parts: DialogParts,
  key: OwnKey,
  replace: (expiration: number) => Promise<NewKey>,
): Promise<NewKey | undefined> {
  const { language } = parts;
  const { texts } = language;
  const radios = OVERLAPS.map((overlap) =>
    h("input", { type: "radio", name: "overlap", value: overlap, checked: overlap === DAY }),
  );
  const choices = radios.map((radio, i) => {
    const overlap = OVERLAPS[i]!;
    const text = overlap === 0 ? texts.oldNow : language.say("oldLater", { duration: language.duration(overlap) });
    return h("label", { class: "choice" }, radio, text);
  });
  const done = await openForm(parts, {
    title: language.say("replaceTitle", { name: titleOf(key, language) }),
    fields: [h("p", {}, texts.replaceText), h("fieldset", {}, h("legend", {}, texts.old), ...choices)],
    submit: texts.replace,
    send: () => replace(Number(radios.find(({ checked }) => checked)!.value)),
  });
  return done?.result;
}

/** Asks for a new name; whether it was changed. */
export async function renameKey(
  parts: DialogParts,
  key: OwnKey,
  rename: (name: string | null) => Promise<void>,
): Promise<boolean> {
  const { texts } = parts.language;
  const { field, input } = nameField(parts.language, key.name ?? "");
  const form = { title: texts.rename, fields: [field], submit: texts.save };
  return (await openForm(parts, { ...form, send: () => rename(input.value.trim() || null) })) !== undefined;
}

/** Asks whether to delete a key; whether it was deleted. */
export async function deleteKey(
  parts: DialogParts,
  key: Pick<OwnKey, "name" | "start">,
  remove: () => Promise<void>,
): Promise<boolean> {
  const { language } = parts;
  const { texts } = language;
  const done = await openForm(parts, {
    title: language.say("deleteTitle", { name: titleOf(key, language) }),
    fields: [h("p", {}, texts.deleteText)],
    submit: texts.delete,
    isDangerous: true,
    send: remove,
  });
  return done !== undefined;
}

/** Shows a new key once, until the person says that it is saved. */
export function showKey({ root, language: { texts } }: DialogParts, key: string): Promise<void> {
  const { promise, resolve } = deferred<void>();
  const field = { class: "secret", dir: "ltr", rows: 1, readonly: true, spellcheck: "false" };
  const input = h("textarea", { ...field, "aria-label": texts.newKey });
  input.value = key;
  const status = h("span", { role: "status" });
  const copy = async () => {
    input.select();
    try {
      await navigator.clipboard.writeText(key);
      status.textContent = texts.copied;
    } catch {
      // Without permission, or on a page without HTTPS: the key is selected, so that the person can copy it.
    }
  };
  const dialog = show(
    root,
    h(
      "form",
      { submit: (event: Event) => event.preventDefault() },
      h("h3", { id: "dialog" }, texts.newKey),
      h("p", {}, texts.once),
      h("div", { class: "once" }, input, h("button", { type: "button", class: "primary", click: copy }, texts.copy)),
      h("div", { class: "end" }, status, h("button", { type: "button", click: () => dialog.close() }, texts.done)),
    ),
    () => {
      input.value = "";
      resolve();
    },
  );
  // As high as the key, which is shown whole.
  input.style.height = `${input.scrollHeight + input.offsetHeight - input.clientHeight}px`;
  // The key cannot be shown again, so a stray Escape does not close the dialog.
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  return promise;
}

/** What a person calls a key. */
export function titleOf({ name, start }: Pick<OwnKey, "name" | "start">, { texts }: Language): string {
  return name ?? (start === "" ? texts.unnamed : `${start}…`);
}

function nameField({ texts }: Language, value: string) {
  const input = h("input", { id: "name", maxlength: "255", autocomplete: "off", "aria-describedby": "hint" });
  input.value = value;
  const hint = h("span", { class: "hint", id: "hint" }, texts.nameHint);
  return { input, field: h("div", { class: "field" }, h("label", { for: "name" }, texts.name), input, hint) };
}

function choice(label: string, options: readonly (readonly [value: string, text: string])[]) {
  const select = h("select", {}, ...options.map(([value, text]) => h("option", { value }, text)));
  return { select, field: h("label", { class: "field" }, label, select) };
}

function deferred<Value>() {
  let resolve!: (value: Value) => void;
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
