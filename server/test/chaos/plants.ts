/** Faults that are planted into the nodes, the edges or the database, to see whether the books notice them. */
export interface Plant {
  what: string;
  /** The book that must notice it. */
  book: RegExp;
  /** A file that nodes and edges load before the program: it changes a module when it is loaded. */
  preload?: string;
  /** What is done to the database before the load begins. */
  statements?: readonly string[];
  /** A query with a row if the fault has happened. */
  happened?: string;
}

/** Counts how often it is asked, and says yes once, from the twentieth time on: whether the present row is spoiled. */
const chooseOnce = [
  "create sequence planted_count",
  "create table planted (number bigint primary key)",
  `create function is_planted() returns boolean language plpgsql as $$
   begin
     if nextval('planted_count') < 20 then return false; end if;
     insert into planted values (1) on conflict do nothing;
     return found;
   end $$`,
];

export const plants: Readonly<Record<string, Plant>> = {
  "spends-given-back": {
    what: "one of a hundred spends is given back twice",
    book: /^credits minted/,
    preload: preload("spends-given-back.ts"),
  },
  "credit-given-back": {
    what: "one credit is given back in a hundred spends",
    book: /^credits minted/,
    preload: preload("credit-given-back.ts"),
  },
  "budget-forgotten": {
    what: "one of a hundred spends is not subtracted from its budgets",
    book: /^credits of budgets minted/,
    preload: preload("budget-forgotten.ts"),
  },
  "budget-book": {
    what: "the book of a budget has one credit granted too many",
    book: /^books of budgets/,
    statements: [
      ...chooseOnce,
      `create function plant() returns trigger language plpgsql as $$
       begin
         if new.spent > old.spent and is_planted() then new.granted := new.granted + 1; end if;
         return new;
       end $$`,
      "create trigger planted before update on balances for each row execute function plant()",
    ],
    happened: "select from planted",
  },
  "settlement-applied-twice": {
    what: "one of a hundred settlements is applied twice",
    book: /^held credits/,
    preload: preload("settlement-applied-twice.ts"),
  },
  "expiry-forgotten": {
    what: "one of a hundred holds does not expire",
    book: /^holds that are never given back/,
    preload: preload("expiry-forgotten.ts"),
  },
  "invalidations-skipped": {
    what: "30 % of all invalidations are skipped",
    book: /^revoked keys accepted after/,
    preload: preload("invalidations-skipped.ts"),
  },
  "limit-admits-one-more": {
    what: "limits admit one too many in one of a hundred windows",
    book: /^admissions over limits/,
    preload: preload("limit-admits-one-more.ts"),
  },
  "edge-age-from-answer": {
    what: "edges count the age of their records from the arrival of an answer",
    book: /^revoked keys accepted by edges/,
    preload: preload("edge-age-from-answer.ts"),
  },
  "edge-stale-node-believed": {
    what: "edges believe a node that has not read the changes for up to a second",
    book: /^revoked keys accepted by edges/,
    preload: preload("edge-stale-node-believed.ts"),
  },
  "edge-tags-left-out": {
    what: "edges leave out 10 % of the tags in the stream",
    book: /^revoked keys accepted by edges/,
    preload: preload("edge-tags-left-out.ts"),
  },
  "edge-record-older": {
    what: "edges keep a record that is older than the stream",
    book: /^revoked keys accepted by edges/,
    preload: preload("edge-record-older.ts"),
  },
  "edge-need-ignored": {
    what: "edges do not know that a key can have a balance, and ignore that",
    book: /^credits spent at edges/,
    preload: preload("edge-need-ignored.ts"),
  },
  "edge-charge-repeated": {
    what: "edges repeat a charge whose answer was lost",
    book: /^credits spent at edges/,
    preload: preload("edge-charge-repeated.ts"),
  },
  "edge-report-repeated": {
    what: "edges deliver one of twenty reports twice",
    book: /^verifications of edges counted twice/,
    preload: preload("edge-report-repeated.ts"),
  },
  "lease-not-subtracted": {
    what: "home subtracts 1 for each lease, whatever it grants",
    book: /^admissions over limits/,
    preload: preload("lease-not-subtracted.ts"),
  },
  "return-applied-twice": {
    what: "home gives back twice what an edge returns of a lease",
    book: /^admissions over limits/,
    preload: preload("return-applied-twice.ts"),
  },
  "event-dropped": {
    what: "one event is not written",
    book: /^changes without their event/,
    statements: [
      ...chooseOnce,
      `create function plant() returns trigger language plpgsql as $$
       begin
         if new.type = 'key.updated' and is_planted() then return null; end if;
         return new;
       end $$`,
      "create trigger planted before insert on events for each row execute function plant()",
    ],
    happened: "select from planted",
  },
  "event-out-of-order": {
    what: "two events of one key change places",
    book: /^events (out of order|that a follower)/,
    statements: [
      ...chooseOnce,
      "alter table events alter column number set generated by default",
      // The two events must differ in more than their ids, and no other transaction can write events of a locked key.
      `create function plant() returns trigger language plpgsql as $$
       declare
         previous bigint;
       begin
         select max(number) into previous from events where object_id = new.object_id and number < new.number
           and type in ('key.created', 'key.updated') and (type, data) <> (new.type, new.data);
         if new.type = 'key.updated' and previous is not null and is_planted() then
           update events set number = -1 where number = previous;
           update events set number = previous where number = new.number;
           update events set number = new.number where number = -1;
         end if;
         return null;
       end $$`,
      "create trigger planted after insert on events for each row execute function plant()",
    ],
    happened: "select from planted",
  },
};

function preload(file: string): string {
  return new URL(`plants/${file}`, import.meta.url).href;
}
