import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type PermissionQueryError, parsePermissionQuery, satisfies } from "./permission-query.ts";
import { compilePermissions } from "./permissions.ts";

function answer(text: string, granted: readonly string[]): boolean {
  const query = parsePermissionQuery(text);
  assert.equal(query.kind, "query", text);
  assert.ok(query.kind === "query");
  return satisfies(query, compilePermissions(granted));
}

describe("satisfies", () => {
  const table: [text: string, granted: string[], satisfied: boolean][] = [
    ["a", ["a"], true],
    ["a", ["b"], false],
    ["a", [], false],
    ["a AND b", ["a", "b"], true],
    ["a AND b", ["a"], false],
    ["a AND b", ["b"], false],
    ["a OR b", ["b"], true],
    ["a OR b", ["c"], false],

    // AND binds tighter than OR.
    ["a OR b AND c", ["a"], true],
    ["a OR b AND c", ["b"], false],
    ["a AND b OR c", ["c"], true],
    ["(a OR b) AND c", ["a"], false],
    ["a AND (b OR c)", ["c"], false],
    ["a AND (b OR c)", ["a", "c"], true],
    ["a OR b AND c OR d", ["d"], true],

    ["(a OR b) AND (c OR d)", ["b", "c"], true],
    ["(a OR b) AND (c OR d)", ["a", "b"], false],
    ["((a))", ["a"], true],
    ["(a AND (b OR (c AND d))) OR e", ["a", "c", "d"], true],
    ["(a AND (b OR (c AND d))) OR e", ["a", "c"], false],

    ["a aNd b oR c", ["c"], true],
    ["a\tand\r\nb", ["a", "b"], true],
    ["  a  ", ["a"], true],
    ["(a)or(b)and(c)", ["a"], true],

    ["order.read AND android", ["order.read", "android"], true],
    ["or.and OR and-or", ["and-or"], true],
    ["AND. OR x", ["AND."], true],
    ["team:a/b_c-d.*", ["team:a/b_c-d.*"], true],

    ["documents.read.own", ["documents.*"], true],
    ["documents.*", ["documents.read"], false],
    ["A", ["a"], false],
  ];
  for (const [text, granted, satisfied] of table) {
    it(`${JSON.stringify(text)} is ${satisfied} for ${JSON.stringify(granted)}`, () => {
      assert.equal(answer(text, granted), satisfied);
    });
  }

  it("equals an evaluation of the tree", () => {
    fc.assert(
      fc.property(tree, fc.subarray(slugs), fc.infiniteStream(fc.nat(11)), (tree, granted, choices) => {
        assert.equal(answer(print(tree, choices), granted), evaluate(tree, granted));
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("parsePermissionQuery", () => {
  const table: [text: string, kind: PermissionQueryError["kind"], position: number][] = [
    ["", "unexpected_end", 0],
    [" \t", "unexpected_end", 2],
    ["a AND", "unexpected_end", 5],
    ["a OR ", "unexpected_end", 5],
    ["(", "unexpected_end", 1],
    ["(a AND", "unexpected_end", 6],

    ["(a", "unclosed_parenthesis", 0],
    ["a AND ((b OR c)", "unclosed_parenthesis", 6],
    ["(a AND (b", "unclosed_parenthesis", 7],

    ["()", "empty_parentheses", 0],
    ["a AND ( \n )", "empty_parentheses", 6],
    ["(())", "empty_parentheses", 1],

    ["AND", "unexpected_token", 0],
    ["or a", "unexpected_token", 0],
    ["a AND OR b", "unexpected_token", 6],
    ["a AND  AND b", "unexpected_token", 7],
    ["(OR a)", "unexpected_token", 1],
    [")", "unexpected_token", 0],
    ["a)", "unexpected_token", 1],
    ["(a))", "unexpected_token", 3],
    ["(a AND )", "unexpected_token", 7],

    ["a b", "trailing_content", 2],
    ["a (b)", "trailing_content", 2],
    ["(a) b", "trailing_content", 4],
    ["(a)(b)", "trailing_content", 3],
    ["a AND b c", "trailing_content", 8],
    ["a()", "trailing_content", 1],

    ["a AND b@c", "illegal_character", 7],
    ["a & b", "illegal_character", 2],
    ["a | b", "illegal_character", 2],
    ["a,b", "illegal_character", 1],
    ["é", "illegal_character", 0],
    ["a AND 😀", "illegal_character", 6],
    ["\ud800", "illegal_character", 0],
    ["a\u00a0AND b", "illegal_character", 1],
    ["a\vAND b", "illegal_character", 1],
    ["a\0", "illegal_character", 1],
  ];
  for (const [text, kind, position] of table) {
    it(`rejects ${JSON.stringify(text)}: ${kind} at ${position}`, () => {
      const error = parsePermissionQuery(text);
      assert.ok(error.kind !== "query");
      assert.deepEqual({ kind: error.kind, position: error.position }, { kind, position });
      const words = kind.replace("_", " ");
      assert.match(
        error.message,
        new RegExp(`^${words}.* at position ${position} of the permission query: .+\\.$`, "i"),
      );
    });
  }

  it("reports the error, its position and the remedy", () => {
    const message = (text: string) => {
      const error = parsePermissionQuery(text);
      return error.kind === "query" ? null : error.message;
    };
    assert.equal(
      message("a AND AND b"),
      'Unexpected token "AND" at position 6 of the permission query: put a permission before it or remove it.',
    );
    assert.match(message("a AND 😀")!, /^Illegal character "😀" at position 6 /);
    assert.equal(
      message("a\0"),
      'Illegal character "\\u0000" at position 1 of the permission query: ' +
        "a permission has only letters, digits and . _ - * : /.",
    );
  });

  it("accepts 500 nested parentheses, and a depth beyond any call stack", () => {
    for (const depth of [499, 200_000]) {
      assert.ok(answer(`${"(".repeat(depth)}a${")".repeat(depth)}`, ["a"]));
      assert.ok(!answer(`${"(".repeat(depth)}a${")".repeat(depth)}`, ["b"]));
      assert.equal(parsePermissionQuery("(".repeat(depth)).kind, "unexpected_end");
    }
    assert.ok(answer(`${"a OR(b AND(".repeat(50_000)}c${"))".repeat(50_000)}`, ["b", "c"]));
  });

  it("accepts exactly what the grammar generates", () => {
    fc.assert(
      fc.property(lexemes, (lexemes) => {
        const text = lexemes.join(" ");
        assert.equal(parsePermissionQuery(text).kind === "query", isDerivable(lexemes), text);
      }),
      { numRuns: 5_000 },
    );
  });

  it("reports the first position after which no continuation is valid", () => {
    fc.assert(
      fc.property(lexemes, (lexemes) => {
        const text = lexemes.join(" ");
        const error = parsePermissionQuery(text);
        fc.pre(!["query", "unexpected_end", "unclosed_parenthesis", "empty_parentheses"].includes(error.kind));
        assert.ok(error.kind !== "query");
        const before = parsePermissionQuery(text.slice(0, error.position)).kind;
        assert.ok(["query", "unexpected_end", "unclosed_parenthesis"].includes(before), text);
      }),
      { numRuns: 5_000 },
    );
  });

  it("never throws, and returns a position within the text", () => {
    const character = fc.oneof(
      fc.constantFrom(..."ab().*ANDORandor \t\n|"),
      fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    );
    fc.assert(
      fc.property(fc.string({ unit: character, maxLength: 40 }), (text) => {
        const result = parsePermissionQuery(text);
        if (result.kind !== "query") assert.ok(result.position >= 0 && result.position <= text.length);
      }),
      { numRuns: 2_000 },
    );
  });
});

type Tree = string | { operator: "AND" | "OR"; left: Tree; right: Tree };

const slugs = ["a", "b", "c", "or.and", "d:e/f"];

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(...slugs),
    fc.record({ operator: fc.constantFrom("AND", "OR"), left: tie("tree"), right: tie("tree") }),
  ),
}));

const lexemes = fc.array(fc.constantFrom("(", ")", "(", ")", "AND", "or", "a", "b.c", "a", "#"), { maxLength: 9 });

function evaluate(tree: Tree, granted: readonly string[]): boolean {
  if (typeof tree === "string") return granted.includes(tree);
  const left = evaluate(tree.left, granted);
  const right = evaluate(tree.right, granted);
  return tree.operator === "AND" ? left && right : left || right;
}

/** Writes a tree with the necessary parentheses and some others, in mixed white space and letter case. */
function print(tree: Tree, choices: Iterator<number>): string {
  const choose = () => choices.next().value as number;
  const blank = () => [" ", "\t", "\r\n", "  "][choose() % 4];
  const text = (tree: Tree, within: "AND" | "OR" | null): string => {
    const needed = typeof tree !== "string" && tree.operator === "OR" && within === "AND";
    if (needed || choose() === 0) return `(${text(tree, null)})`;
    if (typeof tree === "string") return tree;
    const operator = choose() % 2 === 0 ? tree.operator : tree.operator.toLowerCase();
    return text(tree.left, tree.operator) + blank() + operator + blank() + text(tree.right, tree.operator);
  };
  return text(tree, null);
}

/** Whether a sequence of words reduces to a single value by the rules `(v)`, `v and v` and `v or v`. */
function isDerivable(lexemes: readonly string[]): boolean {
  let form = lexemes.map((lexeme) => ({ "(": "(", ")": ")", "#": "#", AND: "&", or: "&" })[lexeme] ?? "v").join("");
  for (let before = ""; before !== form; ) {
    before = form;
    form = form.replace("(v)", "v").replace("v&v", "v");
  }
  return form === "v";
}
