import { Overloaded } from "./overloaded.ts";

/** The table of records is full. The caller can retry later or call without the header. */
export class IdempotencyFull extends Overloaded {
  constructor() {
    super("There is no room for another idempotency record");
    this.name = "IdempotencyFull";
  }
}

/** The workspace has its maximum number of records. */
export class IdempotencyQuotaExceeded extends Overloaded {
  constructor() {
    super("The workspace has its maximum number of idempotency records", "idempotency records", 60);
    this.name = "IdempotencyQuotaExceeded";
  }
}
