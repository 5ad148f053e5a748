import type { z } from "zod";
import type { Clock, Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { SecretSource } from "../../../../engine/src/crypto/secret.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import type { EventContent } from "../store/events/events.ts";
import type { StoreReader, StoreWriter } from "../store/workspace-store.ts";
import type { IdempotentCall } from "./idempotency.ts";
import type { Invalidation } from "./invalidation.ts";
import type { Principal } from "./principal.ts";
import { commonProblems, idempotencyProblems, type ProblemCode } from "./problems.ts";

/**
 * An example call for the reference. The tests run every example. Identifiers, key strings and times stand for those that
 * a service generates.
 */
export type Example<Input = unknown, Output = unknown, Code = ProblemCode> = {
  /** One line. */
  readonly summary: string;
  /** The request body. */
  readonly input: Input;
} & (
  | {
      /** The `data` of the answer; for a list, its only page. */
      readonly output: Output;
    }
  | {
      readonly problem: Code;
      /** The detail of this answer. Omitted: the default detail of the problem. */
      readonly detail?: string;
    }
);

/** The declaration of an operation. The router, the document, the clients and many tests are derived from it. */
export interface Declaration<
  Input extends z.ZodType = z.ZodType,
  Output extends z.ZodType = z.ZodType,
  Code extends ProblemCode = ProblemCode,
> {
  /** Other names of the operation, for existing clients. They are not documented. */
  readonly aliases?: readonly string[];
  /** One line. */
  readonly summary: string;
  /** Details beyond the fields, in Markdown. */
  readonly description: string;
  /** Whether a call with an `Idempotency-Key` can be retried safely. */
  readonly idempotent?: boolean;
  /** Whether a call can be repeated as it is: a repetition has no further effect. Every query can. */
  readonly repeatable?: boolean;
  /** Only sessions with this audience call it. Omitted: root keys, and sessions without an audience. */
  readonly audience?: string;
  /**
   * The bytes of a body, of a metered operation that takes longer ones than the others. Only the main thread answers it, and
   * only with a root key it reads more than the first part.
   */
  readonly bodyBytesMax?: number;
  /** The root-key permissions that a call may need. `{apiId}` stands for the id of the resource. */
  readonly permissions: readonly string[];
  readonly input: Input;
  /** The `data` of a success. */
  readonly output: Output;
  /** The problems of the operation besides `commonProblems`. */
  readonly problems: readonly Code[];
  /** The first one is a success. The quick start uses it. */
  readonly examples: readonly Example<
    NoInfer<z.input<Input>>,
    NoInfer<z.input<Output>>,
    NoInfer<Code> | (typeof commonProblems)[number]
  >[];
}

/** One page of a list. */
export interface Page<Item> {
  items: Item[];
  hasMore: boolean;
  /** The start of the next page; present if there is one. */
  cursor?: string;
}

/** The context of every handler. */
interface CallContext<Code extends ProblemCode> {
  readonly now: Instant;
  readonly principal: Principal;
  /** Ends the call with a problem that the operation declares. All writes are rolled back. */
  fail(code: Code | "invalid_input" | "insufficient_permissions", detail?: string): never;
}

/** The context of a query. */
export interface QueryContext<Code extends ProblemCode> extends CallContext<Code> {
  readonly store: StoreReader;
  /** Prefix of addresses in answers; empty: they are relative. */
  readonly publicUrl: string;
  readonly vault: {
    /** Whether this process has the master key. */
    readonly isOpen: boolean;
    /** The stored key strings, by key id. The audit log records each reveal before the answer is sent. */
    reveal(keyIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
  };
}

/** The context of the second step of a query, on the main thread. */
export interface AnswerContext<Code extends ProblemCode> extends CallContext<Code> {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  /** The workspace of the caller. */
  readonly workspaceId: string;
  /** The caller's address, from trusted headers only. */
  readonly address: string;
}

/** The context of a mutation: one transaction, which includes its audit entry and its invalidation. */
export interface MutationContext<Code extends ProblemCode> extends CallContext<Code> {
  readonly store: StoreWriter;
  readonly random: Random;
  readonly secrets: SecretSource;
  /** Prefix of addresses in answers; empty: they are relative. */
  readonly publicUrl: string;
  readonly vault: {
    /** Whether this process has the master key. */
    readonly isOpen: boolean;
    /** Stores a key string so that it can be revealed later. */
    save(keyId: string, plaintext: string): Promise<void>;
    /** Encrypts the headers of an API's upstream verifier for its row. */
    sealHeaders(apiId: string, headers: string): Promise<string>;
    /** Encrypts the secret of a webhook for its row. */
    sealWebhookSecret(webhookId: string, secret: string): Promise<string>;
  };
  /** Invalidates what changed in every node's caches. A handler that writes must call it, at least with `nothing`. */
  readonly invalidate: Invalidation;
  /**
   * Sets the entry in the audit log: the ids acted upon, and what changed; and the events of the change. Never a secret.
   * Required if it writes.
   */
  audit(targets: readonly string[], meta: Readonly<Record<string, unknown>>, events: readonly EventContent[]): void;
}

/** The context of one chunk of a bulk operation. */
export interface BulkContext<Code extends ProblemCode> extends MutationContext<Code> {
  readonly vault: MutationContext<Code>["vault"] & {
    /** Encrypts the pepper of a migration for its row. */
    sealPepper(migrationId: string, pepper: Uint8Array): Promise<string>;
    openPepper(migrationId: string, sealed: string): Promise<Uint8Array>;
  };
}

/** The context of a metered operation. */
export interface MeteredContext<Code extends ProblemCode> {
  readonly now: Instant;
  readonly clock: Pick<Clock, "now">;
  /** Monotonic time of the start of the call. */
  readonly startedAt: Milliseconds;
  /** Null if the caller sent no root key and the operation does not require one. */
  readonly principal: Principal | null;
  /** The principal's workspace, or the default one. */
  readonly workspaceId: string;
  /** The caller's address, from trusted headers only. */
  readonly address: string;
  /** Identifies the call in its answer. */
  readonly requestId: string;
  /** Set when the caller sent an Idempotency-Key. */
  readonly idempotent: IdempotentCall | undefined;
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

export interface Query<D extends Declaration = Declaration, Name extends string = string> {
  readonly kind: "query";
  readonly name: Name;
  readonly declaration: D;
  /** A list answers with `data` and `pagination`. */
  readonly paged: boolean;
  /** Name of the list inside `data`, next to `cursor`. Undefined: `data` is the list. */
  readonly listName: string | undefined;
  /** Runs beside the database. With `answer` it gives the subject of the second step. */
  handle(input: HandlerInput<D>, context: QueryContext<CodeOf<D>>): Promise<unknown>;
  /** The second step, on the main thread, with its services. Undefined: the handler gives the answer. */
  readonly answer: Answerer<unknown, never, D> | PageAnswerer<unknown, never, D> | undefined;
}

/** Finds and authorizes what a call is about. */
type Authorizer<Subject, D extends Declaration> = (
  input: HandlerInput<D>,
  context: QueryContext<CodeOf<D>>,
) => Promise<Subject>;

/** Gives the answer, or its JSON text. */
export type Answerer<Subject, Services, D extends Declaration> = (
  subject: Subject,
  services: Services,
  context: AnswerContext<CodeOf<D>>,
) => Promise<HandlerOutput<D> | string>;

/** Gives one page of a list, with its entries as JSON texts. */
export type PageAnswerer<Subject, Services, D extends Declaration> = (
  subject: Subject,
  services: Services,
  context: AnswerContext<CodeOf<D>>,
) => Promise<Page<string>>;

export interface Mutation<D extends Declaration = Declaration, Name extends string = string> {
  readonly kind: "mutation";
  readonly name: Name;
  readonly declaration: D;
  /** Counts the call against a limit of its own, on the main thread before the transaction. Undefined: it has none. */
  readonly admit: Admitter<never> | undefined;
  /** The id of the key or root key whose string is in the answer. Its stored answer is erased with it. */
  readonly issues: ((output: HandlerOutput<D>) => string) | undefined;
  /** Whether it may reduce the grants of root keys. It then excludes every other change of the workspace. */
  readonly narrowsAccess: boolean;
  /** `services`: what the program gives mutations beside the store. */
  handle(input: HandlerInput<D>, context: MutationContext<CodeOf<D>>, services?: never): Promise<unknown>;
}

/** Throws or rejects with a problem if the caller may not make the call now. */
export type Admitter<Services> = (caller: Principal, services: Services) => Promise<void>;

/** A problem as answers show it. */
export interface ProblemRecord {
  readonly status: number;
  readonly title: string;
  readonly type: string;
  readonly detail: string;
}

/** A part of the input of a bulk operation, and the number of rows that it writes. */
export interface Chunk<Input> {
  readonly input: Input;
  readonly rows: number;
}

/** The handler of a bulk operation. */
export interface BulkHandler<D extends Declaration> {
  /** The member of the input that is the list. It is validated in chunks. */
  readonly list: keyof HandlerInput<D> & string;
  /** Splits the input into at least one chunk, each of which is an input itself. `size`: the rows that a chunk should write. */
  split(input: HandlerInput<D>, size: () => number): Iterable<Chunk<HandlerInput<D>>>;
  /** Runs one chunk in one transaction. */
  handle(chunk: HandlerInput<D>, context: BulkContext<CodeOf<D>>, services?: never): Promise<HandlerOutput<D>>;
  /** Joins the answers of the chunks. `left` are the chunks from the first failure on, `reason` is why it failed. */
  join(
    answers: readonly HandlerOutput<D>[],
    left: readonly HandlerInput<D>[],
    reason: ProblemRecord | undefined,
  ): HandlerOutput<D>;
}

export interface Bulk<D extends Declaration = Declaration, Name extends string = string> extends BulkHandler<D> {
  readonly kind: "bulk";
  readonly name: Name;
  readonly declaration: D;
}

export interface Metered<D extends Declaration = Declaration, Name extends string = string> {
  readonly kind: "metered";
  readonly name: Name;
  readonly declaration: D;
  /**
   * What identifies a caller without a root key: the hash of the key in its input. Undefined: every caller needs a root
   * key. The configuration may require one in any case.
   */
  readonly anonymousCaller: ((input: HandlerInput<D>) => string) | undefined;
  /** Whether no caller needs a root key, whatever the configuration says. */
  readonly isPublic: boolean;
  readonly handle: MeteredHandler<never, D>;
}

/** Answers with the services of the thread that serves the call. */
export type MeteredHandler<Services, D extends Declaration> = (
  input: HandlerInput<D>,
  services: Services,
  context: MeteredContext<CodeOf<D>>,
) => MeteredAnswer | Promise<MeteredAnswer>;

/** The JSON text of `data`, with headers if the answer has any. */
export type MeteredAnswer = string | { readonly data: string; readonly headers: Readonly<Record<string, string>> };

/** Every problem of an operation. */
export function problemsOf({ declaration }: Operation): readonly ProblemCode[] {
  return [...commonProblems, ...declaration.problems, ...(declaration.idempotent ? idempotencyProblems : [])];
}

/** Whether a client can repeat a call whose answer was lost: always, with an `Idempotency-Key`, or never. */
export function repetitionOf({ kind, declaration }: Operation): "always" | "idempotent" | "never" {
  if (kind === "query" || declaration.repeatable) return "always";
  return declaration.idempotent ? "idempotent" : "never";
}

/** The path of an operation under one of its names. */
export function pathOf(name: string): string {
  return `/v2/${name}`;
}

/** Every name of an operation, its own first. */
export function namesOf({ name, declaration }: Operation): readonly string[] {
  return [name, ...(declaration.aliases ?? [])];
}

export type Operation<Name extends string = string> =
  // biome-ignore lint/suspicious/noExplicitAny: a list of operations cannot keep the input type of each one.
  Query<any, Name> | Mutation<any, Name> | Bulk<any, Name> | Metered<any, Name>;

// The declaration and the handler are separate calls. In one object literal TypeScript would widen the result of the
// handler before it compares it with the declared output.

/** Declares an operation that only reads. */
export function query<N extends string, I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
  name: N,
  declaration: Declaration<I, O, C>,
) {
  type D = Declaration<I, O, C>;
  return {
    handle: (handle: (input: HandlerInput<D>, context: QueryContext<C>) => Promise<HandlerOutput<D>>): Query<D, N> => ({
      kind: "query",
      name,
      declaration,
      paged: false,
      listName: undefined,
      handle: handle as never,
      answer: undefined,
    }),
  };
}

/**
 * Declares a paged list; `output` describes the list of one page. With a `listName`, `data` is an object with the list
 * under this name and the `cursor`. Under an alias, `data` is always the list.
 */
export function pagedQuery<N extends string, I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
  name: N,
  declaration: Declaration<I, O, C> & { readonly listName?: string },
) {
  type D = Declaration<I, O, C>;
  return {
    handle: (
      handle: (input: HandlerInput<D>, context: QueryContext<C>) => Promise<Page<ItemOf<z.input<O>>>>,
    ): Query<D, N> => ({
      kind: "query",
      name,
      declaration,
      paged: true,
      listName: declaration.listName,
      handle: handle as never,
      answer: undefined,
    }),
  };
}

/** What a mutation declares besides. */
interface MutationTraits<Output> {
  readonly narrowsAccess?: boolean;
  readonly issues?: (output: Output) => string;
}

/** Declares an operation that changes data in one transaction. */
export function mutation<N extends string, I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
  name: N,
  declaration: Declaration<I, O, C> & MutationTraits<NoInfer<z.input<O>>>,
) {
  return mutationWith(name, declaration, undefined);
}

function mutationWith<N extends string, I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
  name: N,
  declaration: Declaration<I, O, C> & MutationTraits<NoInfer<z.input<O>>>,
  admit: Admitter<never> | undefined,
) {
  type D = Declaration<I, O, C>;
  return {
    handle: (
      handle: (input: HandlerInput<D>, context: MutationContext<C>, services: never) => Promise<HandlerOutput<D>>,
    ): Mutation<D, N> => ({
      kind: "mutation",
      name,
      declaration,
      admit,
      issues: declaration.issues,
      narrowsAccess: declaration.narrowsAccess ?? false,
      handle: handle as never,
    }),
  };
}

/**
 * Declares an operation that processes a long list in chunks, so that other calls do not wait for the whole list. Each
 * chunk is atomic; the list is not. If the first chunk fails, the call fails.
 */
export function bulk<N extends string, I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
  name: N,
  declaration: Declaration<I, O, C>,
) {
  type D = Declaration<I, O, C>;
  return {
    handle: (handler: BulkHandler<D>): Bulk<D, N> => ({ kind: "bulk", name, declaration, ...handler }),
  };
}

function inTwoSteps<D extends Declaration, N extends string, Subject, Services>(
  name: N,
  declaration: D,
  paged: boolean,
  authorize: Authorizer<Subject, D>,
  answer: Answerer<Subject, Services, D> | PageAnswerer<Subject, Services, D>,
): Query<D, N> {
  return {
    kind: "query",
    name,
    declaration,
    paged,
    listName: undefined,
    handle: authorize as never,
    answer: answer as never,
  };
}

/** Declares operations that run on the main thread, and so can use services of it. `Services`: what the program has. */
export function usingServices<Services>() {
  return {
    /**
     * Declares a query with a second step: `authorize` runs beside the database and finds and authorizes what the call is
     * about. `answer` gets its result, which is copied to the main thread, and answers.
     */
    analysis<N extends string, I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
      name: N,
      declaration: Declaration<I, O, C>,
    ) {
      type D = Declaration<I, O, C>;
      return {
        authorize: <Subject>(authorize: Authorizer<Subject, D>) => ({
          answer: (answer: Answerer<Subject, Services, D>) => inTwoSteps(name, declaration, false, authorize, answer),
        }),
      };
    },
    /** The same for a paged list: `page` gives the JSON texts of the entries of one page. */
    pagedAnalysis<N extends string, I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
      name: N,
      declaration: Declaration<I, O, C>,
    ) {
      type D = Declaration<I, O, C>;
      return {
        authorize: <Subject>(authorize: Authorizer<Subject, D>) => ({
          page: (page: PageAnswerer<Subject, Services, D>) => inTwoSteps(name, declaration, true, authorize, page),
        }),
      };
    },
    /** Declares a mutation whose calls count against a limit of its own. */
    limitedMutation<N extends string, I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
      name: N,
      declaration: Declaration<I, O, C> & MutationTraits<NoInfer<z.input<O>>>,
    ) {
      return { admit: (admit: Admitter<Services>) => mutationWith(name, declaration, admit) };
    },
    /** Declares an operation of the hot path. */
    metered<N extends string, I extends z.ZodType, O extends z.ZodType, C extends ProblemCode>(
      name: N,
      declaration: Declaration<I, O, C> & {
        readonly anonymousCaller?: (input: z.output<I>) => string;
        readonly isPublic?: boolean;
      },
    ) {
      type D = Declaration<I, O, C>;
      return {
        handle: (handle: MeteredHandler<Services, D>): Metered<D, N> => ({
          kind: "metered",
          name,
          declaration,
          anonymousCaller: declaration.anonymousCaller,
          isPublic: declaration.isPublic ?? false,
          handle: handle as never,
        }),
      };
    },
  };
}
