import type { z } from "zod";
import type { Recorder } from "../analytics/recorder.ts";
import type { StatsQuery } from "../analytics/rollups.ts";
import type { Instant, Milliseconds } from "../clock/clock.ts";
import type { SecretSource } from "../crypto/secret.ts";
import type { Limiter } from "../limits/limiter.ts";
import type { ReplayStore } from "../limits/replay-store.ts";
import type { Random } from "../random/random.ts";
import type { StoreReader, StoreWriter } from "../store/workspace-store.ts";
import type { Namespaces } from "../verification/namespaces.ts";
import type { Verification } from "../verification/verification.ts";
import type { IdempotentCall } from "./idempotency.ts";
import type { Invalidation } from "./invalidation.ts";
import type { Principal } from "./principal.ts";
import { commonProblems, idempotencyProblems, type ProblemCode } from "./problems.ts";

/**
 * A call as a reader would try it, and what comes of it. The tests make every one of them. Identifiers, key strings and
 * times stand for those that a service makes up.
 */
export type Example<Input = unknown, Output = unknown, Code = ProblemCode> = {
  /** One line. */
  readonly summary: string;
  /** The request body. */
  readonly input: Input;
} & (
  | {
      /** The `data` of the answer; of a list, its only page. */
      readonly output: Output;
    }
  | {
      readonly problem: Code;
      /** What this call is told in particular; the problem's own detail when omitted. */
      readonly detail?: string;
    }
);

/** What an operation says of itself: everything that is printed, checked and documented comes from here. */
export interface Declaration<
  Input extends z.ZodType = z.ZodType,
  Output extends z.ZodType = z.ZodType,
  Code extends ProblemCode = ProblemCode,
> {
  /** Other names that it answers to, for clients that know it by those. They are not documented. */
  readonly aliases?: readonly string[];
  /** One line. */
  readonly summary: string;
  /** What a caller needs to know beyond the fields, in Markdown. */
  readonly description: string;
  /** Whether an `Idempotency-Key` makes a repetition of the call safe. */
  readonly idempotent?: boolean;
  /** The root-key permissions it may ask for, `{apiId}` standing for the resource's own id. */
  readonly permissions: readonly string[];
  readonly input: Input;
  /** The `data` of a success. */
  readonly output: Output;
  /** What it may answer besides `commonProblems`. */
  readonly problems: readonly Code[];
  /** The first is a success, and the one to begin with. */
  readonly examples: readonly Example<
    NoInfer<z.input<Input>>,
    NoInfer<z.input<Output>>,
    NoInfer<Code> | (typeof commonProblems)[number]
  >[];
}

/** The page of a list: what `pagination` says. */
export interface Page<Item> {
  items: Item[];
  hasMore: boolean;
  /** Where the next page begins; present when there is one. */
  cursor?: string;
}

/** What every handler has. */
interface CallContext<Code extends ProblemCode> {
  readonly now: Instant;
  readonly principal: Principal;
  /** Ends the call with a problem that the operation declares. Everything it wrote is undone. */
  fail(code: Code | "invalid_input" | "insufficient_permissions", detail?: string): never;
}

/** For looking. */
export interface QueryContext<Code extends ProblemCode> extends CallContext<Code> {
  readonly store: StoreReader;
  readonly vault: {
    /** Whether the vault has a master key here. */
    readonly isOpen: boolean;
    /** The key strings that are kept, by key id. The caller gets them only with an audit entry that says so. */
    reveal(keyIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
  };
}

/** For changing: one transaction, with what it changed told to every node and to the audit log in the same one. */
export interface MutationContext<Code extends ProblemCode> extends CallContext<Code> {
  readonly store: StoreWriter;
  readonly random: Random;
  readonly secrets: SecretSource;
  readonly vault: {
    /** Whether the vault has a master key here. */
    readonly isOpen: boolean;
    /** Keeps a key string so that it can be revealed again. */
    save(keyId: string, plaintext: string): Promise<void>;
  };
  /** Invalidates what changed in every node's caches. A handler that writes must call it, at least with `nothing`. */
  readonly invalidate: Invalidation;
  /** Sets the entry in the audit log: the ids acted upon, and what changed. Never a secret. Required if it writes. */
  audit(targets: readonly string[], meta?: Readonly<Record<string, unknown>>): void;
}

/** For taking in a piece of a long list: as for changing. */
export interface BulkContext<Code extends ProblemCode> extends MutationContext<Code> {
  readonly vault: MutationContext<Code>["vault"] & {
    /** Seals what the hashes of a migration are keyed with, to be kept in its row. */
    sealPepper(migrationId: string, pepper: Uint8Array): Promise<string>;
    openPepper(migrationId: string, sealed: string): Promise<Uint8Array>;
  };
}

/** For answering from memory: verification and limits. */
export interface MeteredContext<Code extends ProblemCode> {
  readonly now: Instant;
  /** Monotonic time at which the call began. */
  readonly startedAt: Milliseconds;
  /** Counts what is decided; null: nobody asks. */
  readonly recorder: Recorder | null;
  /** Null when the caller sent no root key and the operation does without. */
  readonly principal: Principal | null;
  /** The principal's workspace, or the default one. */
  readonly workspaceId: string;
  /** The caller's address, as far as it can be trusted. */
  readonly address: string;
  readonly verification: Verification;
  readonly limiter: Limiter;
  readonly replays: ReplayStore;
  /** Set when the caller sent an Idempotency-Key. */
  readonly idempotent: IdempotentCall | undefined;
  readonly namespaces: Namespaces<Principal>;
  fail(
    code: Code | "invalid_input" | "authentication_missing" | (typeof idempotencyProblems)[number],
    detail?: string,
  ): never;
}

type HandlerInput<D> = D extends Declaration<infer I> ? z.output<I> : never;
type HandlerOutput<D> = D extends Declaration<z.ZodType, infer O> ? z.input<O> : never;
type ItemOf<List> = List extends readonly (infer Item)[]
  ? Item
  : { [Name in keyof List]-?: List[Name] extends readonly (infer Item)[] ? Item : never }[keyof List];
type CodeOf<D> = D extends Declaration<z.ZodType, z.ZodType, infer C> ? C : never;

export interface Query<D extends Declaration = Declaration> {
  readonly kind: "query";
  readonly name: string;
  readonly declaration: D;
  /** A list answers with `data` and `pagination`. */
  readonly paged: boolean;
  /** Whether its handler only says what to ask the analytics, which are not in the same database. */
  readonly analyzed: boolean;
  /** Where a list does not make up `data` by itself: the member under which it is, beside the `cursor`. */
  readonly listName: string | undefined;
  handle(input: HandlerInput<D>, context: QueryContext<CodeOf<D>>): Promise<unknown>;
}

export interface Mutation<D extends Declaration = Declaration> {
  readonly kind: "mutation";
  readonly name: string;
  readonly declaration: D;
  /** Whether it makes a key, of which a workspace may have so many. */
  readonly createsKey: boolean;
  /** The id of the key or root key whose string is in the answer. Its stored answer is erased with it. */
  readonly issues: ((output: HandlerOutput<D>) => string) | undefined;
  /** Whether it may take something from what root keys may do: no other change of the workspace runs at the same time. */
  readonly narrowsAccess: boolean;
  handle(input: HandlerInput<D>, context: MutationContext<CodeOf<D>>): Promise<unknown>;
}

/** How a long list is taken in. */
export interface BulkHandler<D extends Declaration> {
  /** The member of the input that is the list: it is validated in chunks. */
  readonly list: keyof HandlerInput<D> & string;
  /** The input in pieces, each in the form of an input. There is at least one. */
  split(input: HandlerInput<D>): readonly HandlerInput<D>[];
  /** Takes in one piece, in one transaction. */
  handle(piece: HandlerInput<D>, context: BulkContext<CodeOf<D>>): Promise<HandlerOutput<D>>;
  /** The answer, from those of the pieces. `left` are pieces that could not be taken in after others had been. */
  join(answers: readonly HandlerOutput<D>[], left: readonly HandlerInput<D>[]): HandlerOutput<D>;
}

export interface Bulk<D extends Declaration = Declaration> extends BulkHandler<D> {
  readonly kind: "bulk";
  readonly name: string;
  readonly declaration: D;
}

export interface Metered<D extends Declaration = Declaration> {
  readonly kind: "metered";
  readonly name: string;
  readonly declaration: D;
  /**
   * What identifies a caller without a root key: the hash of the key in its input. Undefined: every caller needs a root
   * key. The configuration may require one in any case.
   */
  readonly anonymousCaller: ((input: HandlerInput<D>) => string) | undefined;
  handle(input: HandlerInput<D>, context: MeteredContext<CodeOf<D>>): MeteredAnswer | Promise<MeteredAnswer>;
}

/** The JSON text of `data`, ready-made, with headers where the answer has any. */
export type MeteredAnswer = string | { readonly data: string; readonly headers: Readonly<Record<string, string>> };

/** Everything that an operation may answer besides success. */
export function problemsOf({ declaration }: Operation): readonly ProblemCode[] {
  return [...commonProblems, ...declaration.problems, ...(declaration.idempotent ? idempotencyProblems : [])];
}

/** Where an operation answers under one of its names. */
export function pathOf(name: string): string {
  return `/v2/${name}`;
}

/** Every name that an operation answers to, its own first. */
export function namesOf({ name, declaration }: Operation): readonly string[] {
  return [name, ...(declaration.aliases ?? [])];
}

// biome-ignore lint/suspicious/noExplicitAny: a list of operations forgets what each one takes.
export type Operation = Query<any> | Mutation<any> | Bulk<any> | Metered<any>;

// Declared in one call, handled in the next: in a single object literal TypeScript would widen what the handler
// returns before it knows the output it is compared with.

/** Declares an operation that only looks. */
export function query<I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
  name: string,
  declaration: Declaration<I, O, C>,
) {
  type D = Declaration<I, O, C>;
  return {
    handle: (handle: (input: HandlerInput<D>, context: QueryContext<C>) => Promise<HandlerOutput<D>>): Query<D> => ({
      kind: "query",
      name,
      declaration,
      paged: false,
      analyzed: false,
      listName: undefined,
      handle: handle as never,
    }),
  };
}

/**
 * Declares an operation that gives a list by pages; `output` describes the whole list of one page. With a `listName` it
 * is an object with the list under this name and the `cursor`; under an alias `data` is the list itself all the same.
 */
export function pagedQuery<I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
  name: string,
  declaration: Declaration<I, O, C> & { readonly listName?: string },
) {
  type D = Declaration<I, O, C>;
  return {
    handle: (
      handle: (input: HandlerInput<D>, context: QueryContext<C>) => Promise<Page<ItemOf<z.input<O>>>>,
    ): Query<D> => ({
      kind: "query",
      name,
      declaration,
      paged: true,
      analyzed: false,
      listName: declaration.listName,
      handle: handle as never,
    }),
  };
}

/** What an operation wants to know of the analytics, and what it answers beside that. */
export interface Analyzed {
  readonly echo: Readonly<Record<string, string | number | readonly string[]>>;
  readonly question: StatsQuery;
}

/**
 * Declares an operation that asks the analytics. The handler finds out what is asked about and whether the caller may
 * know; the counts join what it echoes.
 */
export function analysis<I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
  name: string,
  declaration: Declaration<I, O, C>,
) {
  type D = Declaration<I, O, C>;
  return {
    handle: (handle: (input: HandlerInput<D>, context: QueryContext<C>) => Promise<Analyzed>): Query<D> => ({
      kind: "query",
      name,
      declaration,
      paged: false,
      analyzed: true,
      listName: undefined,
      handle: handle as never,
    }),
  };
}

/** Declares an operation that changes something, all or nothing. */
export function mutation<I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
  name: string,
  declaration: Declaration<I, O, C> & {
    readonly narrowsAccess?: boolean;
    readonly createsKey?: boolean;
    readonly issues?: (output: NoInfer<z.input<O>>) => string;
  },
) {
  type D = Declaration<I, O, C>;
  return {
    handle: (
      handle: (input: HandlerInput<D>, context: MutationContext<C>) => Promise<HandlerOutput<D>>,
    ): Mutation<D> => ({
      kind: "mutation",
      name,
      declaration,
      createsKey: declaration.createsKey ?? false,
      issues: declaration.issues,
      narrowsAccess: declaration.narrowsAccess ?? false,
      handle: handle as never,
    }),
  };
}

/**
 * Declares an operation that takes in a long list by pieces, so that nobody waits behind it for long. Each piece is all
 * or nothing; the list is not. What refuses the first piece refuses the call.
 */
export function bulk<I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
  name: string,
  declaration: Declaration<I, O, C>,
) {
  type D = Declaration<I, O, C>;
  return {
    handle: (handler: BulkHandler<D>): Bulk<D> => ({ kind: "bulk", name, declaration, ...handler }),
  };
}

/** Declares an operation of the hot path. */
export function metered<I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
  name: string,
  declaration: Declaration<I, O, C> & { readonly anonymousCaller?: (input: z.output<I>) => string },
) {
  type D = Declaration<I, O, C>;
  return {
    handle: (
      handle: (input: HandlerInput<D>, context: MeteredContext<C>) => MeteredAnswer | Promise<MeteredAnswer>,
    ): Metered<D> => ({
      kind: "metered",
      name,
      declaration,
      anonymousCaller: declaration.anonymousCaller,
      handle: handle as never,
    }),
  };
}
