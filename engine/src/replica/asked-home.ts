import type { Milliseconds } from "../clock/clock.ts";
import type {
  ChangesAnswer,
  ChangesQuestion,
  ChargeAnswer,
  ChargeQuestion,
  Home,
  LeaseAnswer,
  LeaseQuestion,
  RecordsAnswer,
  RecordsQuestion,
} from "./home.ts";
import type { CountReport, ReportAnswer, ReportTaker } from "./report.ts";

/** Home, whose operations are asked by their names. */
export abstract class AskedHome implements Home, ReportTaker {
  /**
   * Resolves with the `data` of an answer, or rejects as `rejectAnswer` does.
   *
   * @param wait how long home may wait with its answer.
   */
  protected abstract ask<Answer>(operation: string, question: object, wait: Milliseconds): Promise<Answer>;

  listChanges(question: ChangesQuestion): Promise<ChangesAnswer> {
    return this.ask("replica.listChanges", question, question.wait);
  }

  resolveKeys(question: RecordsQuestion): Promise<RecordsAnswer> {
    return this.ask("replica.resolveKeys", question, 0);
  }

  charge(question: ChargeQuestion): Promise<ChargeAnswer> {
    return this.ask("replica.charge", question, 0);
  }

  lease(question: LeaseQuestion): Promise<LeaseAnswer> {
    return this.ask("replica.lease", question, 0);
  }

  report(question: CountReport): Promise<ReportAnswer> {
    return this.ask("replica.report", question, 0);
  }
}
