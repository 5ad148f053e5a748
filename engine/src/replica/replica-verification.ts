import { hashSecret } from "../crypto/hash.ts";
import { keyLocation } from "../directory/directories.ts";
import type { RecordCache } from "../directory/record-cache.ts";
import type { KeyRecord } from "../directory/records.ts";
import { DecidedElsewhere, decideByCall } from "../errors/decided-elsewhere.ts";
import type { AnswerForm } from "../verification/answers.ts";
import { codeOfVisibility } from "../verification/checks.ts";
import { selectLimits } from "../verification/limits.ts";
import type { Caller, VerificationAnswer, VerificationRequest } from "../verification/request.ts";
import type { Verification } from "../verification/verification.ts";
import type { Charges } from "./charges.ts";
import { type ChargeCall, type ChargeCaller, type ChargeProblem, type ChargeResult, HomeUnavailable } from "./home.ts";
import type { Leases } from "./leases.ts";

/** Home has rejected a charge with a problem of its API. */
export class ChargeRejected extends Error {
  readonly code: string;
  readonly type: string;
  readonly status: number;
  /** Milliseconds; undefined if home gave no time. */
  readonly retryAfter: number | undefined;

  constructor({ code, type, status, detail, headers }: ChargeProblem) {
    super(detail);
    this.name = "ChargeRejected";
    this.code = code;
    this.type = type;
    this.status = status;
    const seconds = Number(headers?.["retry-after"]);
    this.retryAfter = Number.isFinite(seconds) ? seconds * 1_000 : undefined;
  }
}

/** What home has answered to a charge. @throws {ChargeRejected} or `HomeUnavailable`, if it has charged nothing. */
export function charged(result: ChargeResult): Extract<ChargeResult, { data: object }> {
  if ("problem" in result) throw new ChargeRejected(result.problem);
  if (!("data" in result)) throw new HomeUnavailable("Home has answered a charge with neither data nor a problem");
  return result;
}

export interface ReplicaVerificationParts<Answer> {
  form: AnswerForm<Answer>;
  verification: Pick<Verification<Answer>, "verify">;
  charges: Charges;
  /** Learns which limits are busy. */
  leases: Pick<Leases, "note"> | null;
  keys: Pick<RecordCache<KeyRecord>, "get">;
  workspaceId(): string;
}

/**
 * Verifies keys as `Verification` does. Calls that charge something are decided at home, by the hash of the key.
 *
 * @throws {DecidedElsewhere} or rejects with it, if home must get the call as it is.
 */
export class ReplicaVerification<Answer = string> {
  readonly #form: AnswerForm<Answer>;
  readonly #verification: Pick<Verification<Answer>, "verify">;
  readonly #charges: Charges;
  readonly #leases: Pick<Leases, "note"> | null;
  readonly #keys: Pick<RecordCache<KeyRecord>, "get">;
  readonly #workspaceId: () => string;

  constructor({ form, verification, charges, leases, keys, workspaceId }: ReplicaVerificationParts<Answer>) {
    this.#form = form;
    this.#verification = verification;
    this.#charges = charges;
    this.#leases = leases;
    this.#keys = keys;
    this.#workspaceId = workspaceId;
  }

  verify(request: VerificationRequest): VerificationAnswer<Answer> | Promise<VerificationAnswer<Answer>> {
    if (mustPass(request) || request.workspaceId !== this.#workspaceId()) decideByCall();
    try {
      const answer = this.#verification.verify(request);
      return answer instanceof Promise ? answer.catch((error) => this.#decideElsewhere(error, request)) : answer;
    } catch (error) {
      return this.#decideElsewhere(error, request);
    }
  }

  #decideElsewhere(error: unknown, request: VerificationRequest): Promise<VerificationAnswer<Answer>> {
    if (!(error instanceof DecidedElsewhere) || error.by === "call") throw error;
    const hash = hashSecret(request.key);
    const key = this.#keys.get(keyLocation(hash, request.workspaceId));
    // Home charges the key by the authority of this replica, so that of the caller is judged here, also where no other check was made.
    if (key === undefined || key === null || codeOfVisibility(key, request) !== undefined) decideByCall();
    const selected = this.#leases && selectLimits(key, request.ratelimits);
    if (selected && "charges" in selected) this.#leases?.note(hash, key, selected);
    return this.#charge(hash, request);
  }

  async #charge(hash: string, request: VerificationRequest): Promise<VerificationAnswer<Answer>> {
    return this.#form.of(charged(await this.#charges.charge(chargeCall(hash, request))).data);
  }
}

/** Whether a call is home's whatever its key is. */
function mustPass({ hold, idempotent, migrationId }: VerificationRequest): boolean {
  return hold !== undefined || idempotent !== undefined || migrationId !== undefined;
}

/** Names the caller of a call to home. */
export function chargeCaller(caller: Pick<Caller, "rootKeyHash"> | null): ChargeCaller {
  return caller?.rootKeyHash === undefined ? {} : { rootKey: caller.rootKeyHash };
}

function chargeCall(hash: string, request: VerificationRequest): ChargeCall {
  const { principal, apiId, keyspaces, permissions, ratelimits, credits, tags, address } = request;
  return {
    hash,
    isAnonymous: principal === null,
    address,
    ...chargeCaller(principal),
    ...(apiId !== undefined && { apiId }),
    ...(keyspaces !== undefined && { keyspaces }),
    ...(permissions !== undefined && { permissions }),
    ...(ratelimits !== undefined && { ratelimits }),
    ...(credits !== undefined && { credits }),
    ...(tags !== undefined && { tags }),
  };
}
