import type { Milliseconds } from "../clock/clock.ts";
import { faultOfChanges, faultOfCharge, faultOfLeases, faultOfRecords, faultOfReport } from "./answer-shapes.ts";
import {
  type ChangesAnswer,
  type ChangesQuestion,
  type ChargeAnswer,
  type ChargeQuestion,
  type Home,
  type LeaseAnswer,
  type LeaseQuestion,
  type RecordsAnswer,
  type RecordsQuestion,
  UnusableAnswer,
  unusableAnswer,
} from "./home.ts";
import type { CountReport, ReportAnswer, ReportTaker } from "./report.ts";

/** Home, whose operations are asked by their names. Each answer is checked here: what uses it finds the members of its type. */
export abstract class AskedHome implements Home, ReportTaker {
  readonly #onUnusable: (error: UnusableAnswer) => void;

  /** @param onUnusable told of each answer that is none of its operation. */
  constructor(onUnusable: (error: UnusableAnswer) => void = () => {}) {
    this.#onUnusable = onUnusable;
  }

  /**
   * Resolves with the `data` of an answer, whatever it is, or rejects as `rejectAnswer` does.
   *
   * @param wait how long home may wait with its answer.
   */
  protected abstract ask(operation: string, question: object, wait: Milliseconds): Promise<unknown>;

  listChanges(question: ChangesQuestion): Promise<ChangesAnswer> {
    return this.#ask("replica.listChanges", question, faultOfChanges, question.wait);
  }

  resolveKeys(question: RecordsQuestion): Promise<RecordsAnswer> {
    return this.#ask("replica.resolveKeys", question, faultOfRecords);
  }

  charge(question: ChargeQuestion): Promise<ChargeAnswer> {
    return this.#ask("replica.charge", question, faultOfCharge);
  }

  lease(question: LeaseQuestion): Promise<LeaseAnswer> {
    return this.#ask("replica.lease", question, faultOfLeases);
  }

  report(question: CountReport): Promise<ReportAnswer> {
    return this.#ask("replica.report", question, faultOfReport);
  }

  async #ask<Question extends object, Answer>(
    operation: string,
    question: Question,
    faultOf: (answer: unknown, question: Question) => string | undefined,
    wait: Milliseconds = 0,
  ): Promise<Answer> {
    const answer = await this.ask(operation, question, wait).catch((error) => this.#reject(error));
    this.requireUsable(operation, faultOf(answer, question));
    return answer as Answer;
  }

  /** @throws {UnusableAnswer} if something is wrong with the data of an answer to an operation. */
  protected requireUsable(operation: string, fault: string | undefined): void {
    if (fault === undefined) return;
    this.#reject(unusableAnswer(operation, `Home answered ${operation} with another answer: data${fault}`));
  }

  #reject(error: Error): never {
    const unusable = [error, error.cause].find((one) => one instanceof UnusableAnswer);
    if (unusable !== undefined) this.#onUnusable(unusable);
    throw error;
  }
}
