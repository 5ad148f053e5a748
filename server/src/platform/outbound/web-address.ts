/**
 * Whether a text is the address of something on the web that can be shown as a link: `https://` or `http://`, without
 * blanks and invisible characters, and without a user name and a password, which would be stored with it.
 */
export function isWebAddress(text: string): boolean {
  if (!/^https?:\/\/[^\s\p{C}]+$/u.test(text)) return false;
  const url = URL.parse(text);
  return url !== null && url.username === "" && url.password === "";
}
