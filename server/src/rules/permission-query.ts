import { holds, type Permissions } from "./permissions.ts";

/** A question about permissions, such as `documents.read AND (team:a OR team:b)`, made by `parsePermissionQuery`. */
export interface PermissionQuery {
  readonly kind: "query";
  /** The slugs and operators in their order, without `AND`: it is what two neighbours mean. */
  readonly tokens: readonly string[];
}

/** Why a text is no permission query. */
export interface PermissionQueryError {
  readonly kind:
    | "unexpected_end"
    | "unclosed_parenthesis"
    | "empty_parentheses"
    | "unexpected_token"
    | "trailing_content"
    | "illegal_character";
  /** Where the mistake begins, in characters from 0. */
  readonly position: number;
  /** What is wrong, where, and how to put it right: sentences for the caller. */
  readonly message: string;
}

// No slug contains these characters, so in a list of tokens an operator cannot be taken for a slug.
const OPEN = "(";
const CLOSE = ")";
const OR = "|";

/** A word, or a single character of any other kind except the blanks. */
const lexemes = /[a-zA-Z0-9._*:/-]+|[^ \t\r\n]/gu;
const word = /^[a-zA-Z0-9._*:/-]/;

/**
 * Reads a permission query: slugs joined by `AND` and `OR` in any letter case, where `AND` binds tighter, and
 * parentheses. Of several mistakes it reports the one that a reader from the left meets first.
 */
export function parsePermissionQuery(text: string): PermissionQuery | PermissionQueryError {
  const tokens: string[] = [];
  // The open parentheses are a list rather than calls within calls, because depth is the caller's choice.
  const unclosed: number[] = [];
  let expectsSlug = true;

  for (const { 0: lexeme, index: at } of text.matchAll(lexemes)) {
    const operator = operatorOf(lexeme);
    if (lexeme === OPEN) {
      if (!expectsSlug) return trailingContent(at);
      unclosed.push(at);
      tokens.push(OPEN);
    } else if (lexeme === CLOSE) {
      if (tokens.at(-1) === OPEN) return emptyParentheses(unclosed.at(-1)!);
      if (expectsSlug) return unexpectedToken(at, lexeme, "put a permission before it");
      if (unclosed.length === 0) return unexpectedToken(at, lexeme, "remove it or add the parenthesis that it closes");
      unclosed.pop();
      tokens.push(CLOSE);
    } else if (operator) {
      if (expectsSlug) return unexpectedToken(at, lexeme, "put a permission before it or remove it");
      if (operator === "OR") tokens.push(OR);
      expectsSlug = true;
    } else if (word.test(lexeme)) {
      if (!expectsSlug) return trailingContent(at);
      tokens.push(lexeme);
      expectsSlug = false;
    } else {
      return illegalCharacter(at, lexeme);
    }
  }

  if (expectsSlug) return unexpectedEnd(text.length);
  if (unclosed.length > 0) return unclosedParenthesis(unclosed.at(-1)!);
  return { kind: "query", tokens };
}

/** Answers the query for somebody who has these permissions. */
export function satisfies(query: PermissionQuery, permissions: Permissions): boolean {
  // Within a group: whether an alternative before the last `OR` was met, and whether all since then was.
  let any = false;
  let all = true;
  // The same two of the groups around it.
  const outer: boolean[] = [];

  for (const token of query.tokens) {
    if (token === OPEN) {
      outer.push(any, all);
      any = false;
      all = true;
    } else if (token === CLOSE) {
      const met: boolean = any || all;
      all = outer.pop()! && met;
      any = outer.pop()!;
    } else if (token === OR) {
      any ||= all;
      all = true;
    } else if (all && !any) {
      all = holds(permissions, token);
    }
  }
  return any || all;
}

function operatorOf(lexeme: string): "AND" | "OR" | null {
  if (lexeme.length > 3) return null;
  const upper = lexeme.toUpperCase();
  return upper === "AND" || upper === "OR" ? upper : null;
}

function unexpectedEnd(position: number): PermissionQueryError {
  return error("unexpected_end", position, "Unexpected end", "add the permission that is missing there");
}

function unclosedParenthesis(position: number): PermissionQueryError {
  return error("unclosed_parenthesis", position, "Unclosed parenthesis", 'add the ")" that closes it or remove it');
}

function emptyParentheses(position: number): PermissionQueryError {
  return error("empty_parentheses", position, "Empty parentheses", "put a permission between them or remove them");
}

function unexpectedToken(position: number, token: string, remedy: string): PermissionQueryError {
  return error("unexpected_token", position, `Unexpected token "${token}"`, remedy);
}

function trailingContent(position: number): PermissionQueryError {
  return error("trailing_content", position, "Trailing content", "put AND or OR before it");
}

function illegalCharacter(position: number, character: string): PermissionQueryError {
  // As JSON, which shows control characters and half a surrogate pair by their number.
  const what = `Illegal character ${JSON.stringify(character)}`;
  return error("illegal_character", position, what, "a permission has only letters, digits and . _ - * : /");
}

function error(
  kind: PermissionQueryError["kind"],
  position: number,
  what: string,
  remedy: string,
): PermissionQueryError {
  return { kind, position, message: `${what} at position ${position} of the permission query: ${remedy}.` };
}
