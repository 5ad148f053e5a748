import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { type DumpRow, dumpRows } from "./mysql-dump.ts";

/** What mariadb-dump writes, with what surrounds rows. */
const dump = String.raw`/*M!999999\- enable the sandbox mode */ 
-- MariaDB dump 10.19  Distrib 10.11.19-MariaDB; it's a comment
/*!40101 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS ${"`colours`"};
CREATE TABLE ${"`colours`"} (
  ${"`id`"} int(11) NOT NULL AUTO_INCREMENT,
  ${"`na``me`"} varchar(20) NOT NULL DEFAULT 'a,b',
  ${"`weight`"} decimal(5,2) DEFAULT NULL,
  ${"`raw`"} varbinary(9) DEFAULT NULL,
  PRIMARY KEY (${"`id`"}),
  KEY ${"`by_weight`"} (${"`weight`"},${"`id`"})
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4;
LOCK TABLES ${"`colours`"} WRITE;
/*!40000 ALTER TABLE ${"`colours`"} DISABLE KEYS */;
/* it's a comment */ # it's one too
INSERT INTO ${"`colours`"} VALUES
(1,'it\'s \\ red',-1.50,NULL),
(2,'a\nb;\"c\"),(',NULL,_binary 'x\'\0y'),
(3,'grün ☂ ''q''',3.00,'');
UNLOCK TABLES;
INSERT INTO ${"`other`"} VALUES (1),(2);
INSERT IGNORE INTO ${"`db`.`colours`"} (${"`raw`"}, id) VALUES ("say ""it""",4) ON DUPLICATE KEY UPDATE id=(5);
-- the end`;

const expected = [
  { id: "1", "na`me": "it's \\ red", weight: "-1.50", raw: null },
  { id: "2", "na`me": 'a\nb;"c"),(', weight: null, raw: "x'\0y" },
  { id: "3", "na`me": "grün ☂ 'q'", weight: "3.00", raw: "" },
  { raw: 'say "it"', id: "4" },
];

describe("a dump of MySQL", () => {
  const folder = mkdtempSync(join(tmpdir(), "dump-"));
  after(() => rmSync(folder, { recursive: true }));

  async function rowsOf(text: string, chunkBytes?: number) {
    const file = join(folder, "dump.sql");
    writeFileSync(file, text);
    const rows: DumpRow[] = [];
    for await (const row of dumpRows(file, new Set(["colours"]), chunkBytes)) rows.push(row);
    return rows.map(({ values }) => Object.fromEntries(values));
  }

  it("has the rows of the tables that were asked for, with every escape", async () => {
    assert.deepEqual(await rowsOf(dump), expected);
  });

  it("is read the same wherever a chunk ends", async () => {
    for (const chunkBytes of [1, 2, 3, 5, 7])
      assert.deepEqual(await rowsOf(dump, chunkBytes), expected, `${chunkBytes}`);
  });

  it("is refused when it is cut, or has rows that do not fit", async () => {
    await assert.rejects(rowsOf(dump.slice(0, dump.indexOf("grün"))), /ends in the middle of a statement/);
    await assert.rejects(rowsOf(dump.slice(0, dump.indexOf(",3.00"))), /ends in the middle of a statement/);
    await assert.rejects(rowsOf("INSERT INTO colours VALUES (1);"), /without the names of its columns/);
    await assert.rejects(rowsOf("INSERT INTO colours (id) VALUES (1,2);"), /more values than columns/);
    await assert.rejects(rowsOf("INSERT INTO colours (id, b) VALUES (1);"), /1 values for 2 columns/);
    await assert.rejects(rowsOf("INSERT INTO colours (id) VALUES (f(1));"), /cannot be read/);
    await assert.rejects(rowsOf(`INSERT INTO colours (id) VALUES ('${"x".repeat(2 ** 20 + 1)}`), /longer than/);
  });
});
