import { holds, type Permissions } from "./permissions.ts";

/** A parsed permission query, such as `documents.read AND (team:a OR team:b)`. */
export interface PermissionQuery {
  readonly kind: "query";
  /** Slugs and operators in order. `AND` is omitted: two adjacent operands imply it. */
  readonly tokens: readonly string[];
}

/** Why a text is not a permission query. */
export interface PermissionQueryError {
  readonly kind:
    | "unexpected_end"
    | "unclosed_parenthesis"
    | "empty_parentheses"
    | "unexpected_token"
    | "trailing_content"
    | "illegal_character";
  /** Start of the error, in characters from 0. */
  readonly position: number;
  /** The error, its position and its remedy, for the caller. */
  readonly message: string;
}

// No slug contains these characters, so no token is both an operator and a slug.
const OPEN = "(";
const CLOSE = ")";
const OR = "|";

/** A word, or one other character except white space. */
const lexemes = /[a-zA-Z0-9._*:/-]+|[^ \t\r\n]/gu;
const word = /^[a-zA-Z0-9._*:/-]/;

/**
 * Parses a permission query: slugs, `AND` and `OR` in any letter case, and parentheses. `AND` binds tighter. Reports the
 * first error from the left.
 */
export function parsePermissionQuery(text: string): PermissionQuery | PermissionQueryError {
  const tokens: string[] = [];
  // A list instead of recursion, because the caller chooses the depth.
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

/** Whether the permissions satisfy the query. */
export function satisfies(query: PermissionQuery, permissions: Permissions): boolean {
  // In the current group: whether an operand of `OR` was met, and whether every slug since the last `OR` was.
  let any = false;
  let all = true;
  // The same two values of the enclosing groups.
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

/**
 * The parts of a query that must all be satisfied: the operands of its outermost `AND`, without parentheses around the
 * whole. A query that is not an `AND` is its only part.
 */
export function conjunctsOf(query: PermissionQuery): PermissionQuery[] {
  const { tokens } = query;
  const parts: string[][] = [];
  let depth = 0;
  for (const token of tokens) {
    if (depth === 0 && token === OR) return [query];
    if (depth === 0) parts.push([]);
    parts.at(-1)!.push(token);
    if (token === OPEN) depth++;
    if (token === CLOSE) depth--;
  }
  const only = parts.length === 1 ? parts[0]! : [];
  if (only.length > 1) return conjunctsOf({ kind: "query", tokens: only.slice(1, -1) });
  return parts.map((part) => ({ kind: "query", tokens: part }));
}

/** The slugs of a query, each once, in the order of the query. */
export function slugsOf({ tokens }: PermissionQuery): string[] {
  return [...new Set(tokens.filter((token) => token !== OPEN && token !== CLOSE && token !== OR))];
}

/** A query as text, with its operators in capitals. */
export function queryText({ tokens }: PermissionQuery): string {
  let text = "";
  let isAfterOperand = false;
  for (const token of tokens) {
    if (token === OR) {
      text += " OR ";
      isAfterOperand = false;
    } else if (token === CLOSE) {
      text += CLOSE;
      isAfterOperand = true;
    } else {
      text += (isAfterOperand ? " AND " : "") + token;
      isAfterOperand = token !== OPEN;
    }
  }
  return text;
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
  // JSON escapes control characters and unpaired surrogates.
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
