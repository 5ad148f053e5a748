import type { KeyRecord } from "../directory/records.ts";
import type { LimitDecision } from "../limits/counters.ts";
import { limitsText, limitsValues, type SelectedLimits } from "./limits.ts";
import { type VerificationCode, verificationCodes } from "./request.ts";

/** Limits that a call has charged. */
export interface ChargedLimits {
  readonly selected: SelectedLimits;
  readonly decided: LimitDecision;
}

/** How answers are made. */
export interface AnswerForm<Answer> {
  notFound(): Answer;
  /**
   * The answer for a key.
   *
   * @param seesAll whether the caller has a root key.
   * @param more further members: their JSON, each with a comma before it, or the limits that they are about.
   */
  answer(key: KeyRecord, code: VerificationCode, seesAll: boolean, more: string | ChargedLimits): Answer;
  /** The answer that another service has given: the parsed JSON. */
  of(data: object): Answer;
  isValid(answer: Answer): boolean;
}

/** The starts of answers. Each part of a text that is put together costs as much as a look-up in a table. */
const starts = Object.fromEntries(
  verificationCodes.map((code) => [code, `{"valid":${code === "VALID"},"code":"${code}",`]),
) as Record<VerificationCode, string>;

/** Answers as JSON, for programs that send them on. */
export const jsonAnswers: AnswerForm<string> = {
  notFound: () => '{"valid":false,"code":"NOT_FOUND"}',
  answer(key, code, seesAll, more) {
    const text = typeof more === "string" ? more : limitsText(more.selected, more.decided);
    return `${starts[code]}${seesAll ? key.members : key.anonymousMembers}${text}}`;
  },
  of: (data) => JSON.stringify(data),
  isValid: (answer) => answer.startsWith(starts.VALID),
};

/** An answer as an object. */
export interface AnswerValue {
  readonly valid: boolean;
  readonly code: VerificationCode;
  readonly [member: string]: unknown;
}

/**
 * Answers as objects, for the program that asks: the same as their parsed JSON, and in a known key's most frequent case without the
 * parser, which takes longer than the verification. Each is the caller's own: nothing of it is shared with another answer.
 */
export const valueAnswers: AnswerForm<AnswerValue> = {
  notFound: () => ({ valid: false, code: "NOT_FOUND" }),
  answer(key, code, seesAll, more) {
    const valid = code === "VALID";
    const members = key.memberValues(seesAll);
    if (more === "") return { valid, code, ...members };
    const further =
      typeof more === "string" ? JSON.parse(`{${more.slice(1)}}`) : limitsValues(more.selected, more.decided);
    return { valid, code, ...members, ...further };
  },
  of: (data) => data as AnswerValue,
  isValid: ({ valid }) => valid,
};
