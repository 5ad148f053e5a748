import { ReportFailed, ReportRejected } from "./home.ts";
import { type CountReport, deliver, type Loss, type ReportTaker, verificationsOf } from "./report.ts";

/** How often home may fail at a report before it is divided. */
const REFUSALS_MAX = 10;
/** How often it may fail at one count while it takes nothing else: for an hour and more. */
const REFUSALS_ALONE_MAX = 3_600;
/** Parts into which a report is divided while home takes nothing. */
const PARTS_ALONE_MAX = 8;
/** Divided reports at a time. The next one keeps others waiting. */
const DIVIDED_MAX = 5;

/** The bounds of the parts of a report. */
interface Bounds {
  /** How often home may fail at a single one while it takes others. */
  readonly refusals: number;
  /** Those that are sent in one attempt, and while home takes nothing. */
  readonly atOnce: number;
  readonly atOnceAlone: number;
}

const COUNTS: Bounds = { refusals: REFUSALS_MAX, atOnce: 64, atOnceAlone: 1 };
/** Of uses alone, which an attempt sends all or not at all. The next use of the same key is reported again. */
const USES: Bounds = { refusals: 1, atOnce: Number.POSITIVE_INFINITY, atOnceAlone: PARTS_ALONE_MAX };

/** A part of a report, with a number of its own: home may have counted others that were sent later. */
interface Part {
  readonly report: CountReport;
  /** Its place in the tree of halves. The whole is 1, and the halves of n are 2 n and 2 n + 1. */
  readonly place: number;
  refusals: number;
}

/** A report that home fails at. */
interface Trouble {
  refusals: number;
  /** How many others home had taken when the report was divided; undefined: it is still whole. */
  takenBefore: number | undefined;
  parts: Part[];
}

/**
 * Delivers reports. One that home fails at again and again, while it may take others, must not keep them waiting: it is
 * divided until only the counts are left that home fails at, and these are lost.
 *
 * Whether the fault is in the report or in home is seen by what home takes meanwhile: other reports, or the other half.
 */
export class Deliveries {
  readonly #home: ReportTaker;
  readonly #onLoss: (verifications: number, cause: Error) => void;
  readonly #troubles = new Map<string, Trouble>();
  /** Reports and parts of which home has counted something, and those of uses alone, which it keeps elsewhere. */
  #counted = 0;
  #ofUses = 0;
  /** How often home may fail. After a loss once: the next reports may have the same fault. */
  #patience = REFUSALS_MAX;

  constructor(home: ReportTaker, onLoss: (verifications: number, cause: Error) => void) {
    this.#home = home;
    this.#onLoss = onLoss;
  }

  /** Whether later reports of the recorder can be sent before this one, whose parts have numbers of their own. */
  isDivided(report: CountReport): boolean {
    return this.#troubles.get(nameOf(report))?.takenBefore !== undefined;
  }

  /** Resolves when home has judged the report, or never will. Rejects if it must be sent again. */
  async deliver(report: CountReport): Promise<void> {
    const name = nameOf(report);
    const trouble = this.#troubles.get(name) ?? { refusals: 0, takenBefore: undefined, parts: [] };
    const { takenBefore } = trouble;
    if (takenBefore !== undefined) {
      // Uses are not numbered: those of later calls are added until home has taken all.
      if (isOfUses(report)) trouble.parts = partsOf(report);
      await this.#deliverParts(trouble, () => this.#takenLike(report) > takenBefore, isOfUses(report) ? USES : COUNTS);
    } else {
      try {
        await this.#send(report);
        if (trouble.refusals === 0) this.#patience = REFUSALS_MAX;
      } catch (error) {
        if (!(error instanceof ReportFailed)) throw error;
        this.#troubles.set(name, trouble);
        if (++trouble.refusals >= this.#patience && this.#divided < DIVIDED_MAX) {
          trouble.takenBefore = this.#takenLike(report);
          trouble.parts = partsOf(report);
        }
        throw error;
      }
    }
    this.#troubles.delete(name);
  }

  /** Sends the parts of a report, and divides those that home fails at. Rejects if some are left. */
  async #deliverParts(trouble: Trouble, takesOthers: () => boolean, bounds: Bounds): Promise<void> {
    /** Those that this attempt has sent in vain. */
    const failed: Part[] = [];
    let failure: ReportFailed | undefined;
    const mayContinue = (sent: number) => sent < (takesOthers() ? bounds.atOnce : bounds.atOnceAlone);
    for (let sent = 0; trouble.parts.length > 0 && mayContinue(sent); sent++) {
      const [part, ...others] = trouble.parts as [Part, ...Part[]];
      try {
        await this.#send(partReport(part));
        trouble.parts = others;
      } catch (error) {
        if (!(error instanceof ReportFailed)) {
          trouble.parts.push(...failed);
          throw error;
        }
        failure = error;
        part.refusals++;
        const mayDivide = takesOthers() || trouble.parts.length + failed.length < PARTS_ALONE_MAX;
        const halves = mayDivide ? halvesOf(part) : [];
        trouble.parts = [...others, ...halves];
        if (halves.length > 0) continue;
        const refusalsMax = takesOthers() ? Math.min(bounds.refusals, this.#patience) : REFUSALS_ALONE_MAX;
        if (part.refusals < refusalsMax) failed.push(part);
        else {
          if (takesOthers()) this.#patience = 1;
          this.#lose({ verifications: verificationsOf(part.report.verifications), cause: lossOf(part, error) });
        }
      }
    }
    trouble.parts.push(...failed);
    if (trouble.parts.length > 0) throw failure ?? new ReportFailed("Parts of a report are still to be sent");
  }

  /** What shows that home takes such reports. That it takes uses says nothing about counts. */
  #takenLike(report: CountReport): number {
    return isOfUses(report) ? this.#counted + this.#ofUses : this.#counted;
  }

  get #divided(): number {
    let divided = 0;
    for (const { takenBefore } of this.#troubles.values()) if (takenBefore !== undefined) divided++;
    return divided;
  }

  async #send(report: CountReport): Promise<void> {
    const loss = await deliver(this.#home, report);
    if (isOfUses(report)) this.#ofUses++;
    else if (verificationsOf(report.verifications) > (loss?.verifications ?? 0)) this.#counted++;
    if (loss !== undefined) this.#lose(loss);
  }

  #lose({ verifications, cause }: Loss): void {
    this.#onLoss(verifications, cause);
  }
}

function isOfUses({ verifications }: CountReport): boolean {
  return verifications.length === 0;
}

function nameOf(report: CountReport): string {
  return isOfUses(report) ? report.recorder : `${report.recorder} ${report.sequence}`;
}

/** The first parts of a report: its halves. */
function partsOf(report: CountReport): Part[] {
  const whole = { report, place: 1, refusals: 0 };
  const halves = halvesOf(whole);
  return halves.length > 0 ? halves : [whole];
}

/** Each part has a recorder of its own, which is the same after a restart, so that home counts it once. */
function partReport({ report, place }: Part): CountReport {
  return { ...report, recorder: `${report.recorder}_${report.sequence}_${place}`, sequence: 1 };
}

/** The halves of a part; none of a single count. */
function halvesOf({ report, place }: Part): Part[] {
  const { verifications, uses, rootKeyUses = [] } = report;
  const size = verifications.length + uses.length + rootKeyUses.length;
  if (size < 2) return [];
  let room = size >> 1;
  const divided = <T>(list: readonly T[]): [T[], T[]] => {
    const first = list.slice(0, room);
    room -= first.length;
    return [first, list.slice(first.length)];
  };
  const lists = [divided(verifications), divided(uses), divided(rootKeyUses)] as const;
  return ([0, 1] as const).map((half) => ({
    report: {
      ...report,
      verifications: lists[0][half],
      uses: lists[1][half],
      ...(report.rootKeyUses && { rootKeyUses: lists[2][half] }),
    },
    place: 2 * place + half,
    refusals: 0,
  }));
}

function lossOf({ report: { verifications, uses, rootKeyUses = [] }, refusals }: Part, cause: Error): ReportRejected {
  const [minute, , keyId] = verifications[0] ?? [];
  const what =
    minute === undefined
      ? `the last use of ${uses[0]?.keyId ?? rootKeyUses[0]?.rootKeyId}`
      : `the counts of ${keyId ?? "unknown keys"} in the minute of ${new Date(minute).toISOString()}`;
  return new ReportRejected(`The service has failed ${refusals} times at ${what}: ${cause.message}`);
}
