import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { dumpRows } from "./dump.ts";
import type { DumpTable } from "./statements.ts";

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
DELIMITER ;;
CREATE PROCEDURE p() BEGIN INSERT INTO colours VALUES (9,'no',1,NULL); SELECT 'it''s'; END ;;
DELIMITER ;
INSERT IGNORE INTO ${"`colours`"} (${"`raw`"}, id) VALUES ("say ""it""",4) ON DUPLICATE KEY UPDATE id=(5);
-- Dump completed on 2026-11-22`;

const expected = [
  { id: "1", "na`me": "it's \\ red", weight: "-1.50", raw: null },
  { id: "2", "na`me": 'a\nb;"c"),(', weight: null, raw: "x'\0y" },
  { id: "3", "na`me": "grün ☂ 'q'", weight: "3.00", raw: "" },
  { raw: 'say "it"', id: "4" },
];

const folder = mkdtempSync(join(tmpdir(), "dump-"));
after(() => rmSync(folder, { recursive: true }));

const colours: DumpTable = { name: "colours", columns: ["id"], isRequired: true };

async function rowsOf(text: string | Buffer, chunkBytes?: number) {
  const file = join(mkdtempSync(join(folder, "one-")), "dump.sql");
  writeFileSync(file, text);
  const rows: Record<string, string | null>[] = [];
  for await (const { values } of dumpRows(file, [colours], chunkBytes)) rows.push(Object.fromEntries(values));
  return rows;
}

/** The rows of a dump whose first 8 KiB, which are read at once, have its first lines and no statement. */
function rowsInChunks(text: string, chunkBytes: number) {
  return rowsOf(text.replace(/^(?:.*\n){3}/, `$&${"-- padding\n".repeat(745)}`), chunkBytes);
}

describe("a dump of MySQL", () => {
  it("has the rows of the tables that were asked for, with every escape", async () => {
    assert.deepEqual(await rowsOf(dump), expected);
  });

  it("is read the same wherever a chunk ends", async () => {
    for (const chunkBytes of [1, 2, 3, 5, 7])
      assert.deepEqual(await rowsInChunks(dump, chunkBytes), expected, `${chunkBytes}`);
  });

  it("is refused when it is cut, or has rows that do not fit", async () => {
    const cut = (before: string) => rowsOf(dump.slice(0, dump.indexOf(before)));
    await assert.rejects(cut("grün"), /dump\.sql, line 19: the table colours ends in the middle of a statement/);
    await assert.rejects(cut(",3.00"), /ends in the middle of a statement/);
    await assert.rejects(cut("CREATE PROCEDURE"), /ends in the middle of stored procedures/);
    await assert.rejects(cut("-- Dump completed"), /has not the last line of a dump/);
    await assert.rejects(rowsOf("INSERT INTO colours VALUES (1);"), /without the names of its columns/);
    await assert.rejects(rowsOf("INSERT INTO colours (id) VALUES (1,2);"), /a row with more values than columns/);
    await assert.rejects(rowsOf("INSERT INTO colours (id, b) VALUES (1);"), /a row with 1 values for 2 columns/);
    await assert.rejects(rowsOf("INSERT INTO colours (id) VALUES (f(1));"), /cannot be read/);
    await assert.rejects(rowsOf(`INSERT INTO colours (id) VALUES ('${"x".repeat(2 ** 20 + 1)}`), /longer than 1 MiB/);
  });
});

/** What pg_dump writes, with what could be taken for rows. */
const postgres = String.raw`--
-- PostgreSQL database dump
--

\restrict abc

SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
/* a comment /* in a comment; */ it's one */
CREATE FUNCTION public.f() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
  BEGIN -- it's in $$ quotes
    INSERT INTO public.colours VALUES (9, 'no', NULL);
  END;
$_$;
CREATE TABLE public.colours (
    id bigint NOT NULL,
    key text DEFAULT E'it\'s; \\'::text,
    "na""me, x" text,
    CONSTRAINT positive CHECK ((id > 0))
);
CREATE TABLE auth.other (id integer);
COPY auth.other (id) FROM stdin;
1
\\.
COPY public.colours (id, key) FROM stdin;
\.
COPY public.colours (id, key, "na""me, x") FROM stdin;
1	it's \\ red\b\x41\101	\N
2	a\nb;"c"\t	
\N	grün ☂ \\.	\\N
\.


INSERT INTO public.colours VALUES (4, 'it''s \ ;', E'a\\b''c'), (-5.5e-07, DEFAULT, B'101')
  ON CONFLICT DO NOTHING;
INSERT INTO public.colours (id) OVERRIDING SYSTEM VALUE VALUES (6);
-- it's the end
--
-- PostgreSQL database dump complete
--

\unrestrict abc
`;

const postgresRows = [
  { id: "1", key: "it's \\ red\bAA", 'na"me, x': null },
  { id: "2", key: 'a\nb;"c"\t', 'na"me, x': "" },
  { id: null, key: "grün ☂ \\.", 'na"me, x': "\\N" },
  { id: "4", key: "it's \\ ;", 'na"me, x': "a\\b'c" },
  { id: "-5.5e-07", key: null, 'na"me, x': "101" },
  { id: "6" },
];

describe("a dump of PostgreSQL", () => {
  it("has the rows of COPY and of INSERT, with every escape", async () => {
    assert.deepEqual(await rowsOf(postgres), postgresRows);
    assert.deepEqual(await rowsOf(postgres.replaceAll("\n", "\r\n")), postgresRows);
    assert.deepEqual(await rowsOf(`\uFEFF${postgres}`), postgresRows);
  });

  it("is read the same wherever a chunk ends", async () => {
    for (const chunkBytes of [1, 2, 3, 5, 7])
      assert.deepEqual(await rowsInChunks(postgres, chunkBytes), postgresRows, `${chunkBytes}`);
  });

  it("escapes by backslashes in every text where standard_conforming_strings is off", async () => {
    const old = "SET standard_conforming_strings = off;\nINSERT INTO colours (id) VALUES ('it\\'s\\n');";
    assert.deepEqual(await rowsOf(old), [{ id: "it's\n" }]);
  });

  it("says which table, column and line are wrong", async () => {
    const copy = (columns: string, ...rows: string[]) =>
      rowsOf(`SET a = b;\nCREATE TABLE x (a int);\nCOPY colours (${columns}) FROM stdin;\n${rows.join("\n")}\n`);
    for (const [read, message] of [
      [() => rowsOf(postgres.replaceAll("colours", "colors")), /has no table colours\. It has colors, other\.$/],
      [() => rowsOf("SELECT 1;"), /has no tables\. Give a dump as SQL/],
      [() => rowsOf("CREATE TABLE colours (id int);"), /has tables and no rows\. Was it made with --schema-only/],
      [() => copy("key", "1", "\\."), /dump\.sql, line 3: the table colours has no column id\. It has key\.$/],
      [() => copy("id, key", "1", "\\."), /line 4: the table colours has a row with 1 values for 2 columns\.$/],
      [() => copy("id", "1"), /ends in the middle of the rows of colours, which begin at line 3\./],
      [
        () => rowsOf("COPY colours (id) FROM stdin WITH CSV;\n1\n\\.\n"),
        /line 1: the table colours has a COPY with options/,
      ],
      [
        () => rowsOf("SET client_encoding = 'LATIN1';"),
        /line 1: the dump has the encoding LATIN1\. Make it with --encoding=UTF8/,
      ],
      [() => rowsOf("INSERT INTO colours (id) VALUES ('\\x'), (E'\\x41');"), /has the escape \\x, which is not read/],
      [() => rowsOf(postgres.slice(0, postgres.lastIndexOf("--\n--"))), /has not the last line of a dump/],
      [
        () => rowsOf(`${postgres.replace("auth.other (id) FROM", "auth.colours (id) FROM")}`),
        /the table colours is there twice, in auth and in public\./,
      ],
      [
        () =>
          rowsOf(
            "\\connect a\nINSERT INTO colours (id) VALUES (1);\n\\connect b\nINSERT INTO colours (id) VALUES (1);",
          ),
        /line 4: the table colours is there twice, in a and in b\./,
      ],
    ] as const)
      await assert.rejects(read, message);
  });

  it("is refused when it is an archive", async () => {
    for (const [bytes, message] of [
      ["PGDMP\x01\x0e", /custom format of pg_dump\. Convert it: pg_restore --file=dump\.sql /],
      ["toc.dat\0\0", /tar format of pg_dump/],
      ["\x1f\x8b\x08", /is compressed\. Decompress it with gunzip/],
      ["\xff\xfe-\0-\0", /is UTF-16/],
      ["-- \0", /is not SQL/],
    ] as const) {
      await assert.rejects(rowsOf(Buffer.from(bytes, "latin1")), message);
    }
  });
});

/** Reads a dump in a process with little memory, so that keeping what is skipped would end it. */
const program = `
  import { dumpRows } from ${JSON.stringify(new URL("dump.ts", import.meta.url).href)};
  const tables = [{ name: "colours", columns: ["id"], isRequired: true }];
  let rows = 0;
  try {
    for await (const _ of dumpRows(process.argv[1], tables)) rows++;
    console.log(rows);
  } catch (error) {
    console.log(error.message.replace(/^.*dump.sql/, "dump.sql"));
  }
`;

describe("a dump that is not what pg_dump writes", () => {
  const MEBIBYTE = "x".repeat(2 ** 20);
  const last = "COPY colours (id) FROM stdin;\n1\n\\.\n";
  const cases = {
    "a line of COPY": ["COPY other (a) FROM stdin;\n", MEBIBYTE, `\n\\.\n${last}`, "1"],
    "a text": ["INSERT INTO other VALUES ('", MEBIBYTE, `');\n${last}`, "1"],
    "a word": ["SELECT ", MEBIBYTE, `;\n${last}`, "1"],
    "a comment": ["/*", MEBIBYTE, `*/${last}`, "1"],
    "dollar quotes": ["SELECT $a$", "$a ".repeat(2 ** 18), `$a$;${last}`, "1"],
    "rows of COPY without an end": [
      "COPY other (a) FROM stdin;\n",
      "row\n".repeat(2 ** 18),
      "",
      "dump.sql ends in the middle of rows, which begin at line 1. Is the dump complete?",
    ],
    "a line of the table": [
      "COPY colours (id) FROM stdin;\n",
      MEBIBYTE,
      "",
      "dump.sql, line 2: the table colours has a row longer than 1 MiB.",
    ],
    "a text of the table": [
      "INSERT INTO colours (id) VALUES ('",
      MEBIBYTE,
      "",
      "dump.sql, line 1: the table colours has a value longer than 1 MiB.",
    ],
    columns: [
      "CREATE TABLE colours (",
      "a text, ".repeat(2 ** 17),
      "",
      "dump.sql, line 1: the table colours has too many columns.",
    ],
  } as const;

  it("is read with bounded memory, or refused", async () => {
    for (const [name, [start, part, end, expected]] of Object.entries(cases)) {
      const file = join(mkdtempSync(join(folder, "long-")), "dump.sql");
      writeFileSync(file, start);
      for (let i = 0; i < 48; i++) appendFileSync(file, part);
      appendFileSync(file, end);
      // The file is larger than the heap.
      const args = ["--max-old-space-size=32", "--input-type=module", "--eval", program, file];
      const printed = execFileSync(process.execPath, args, { encoding: "utf8" });
      assert.equal(printed.trim(), expected, name);
      rmSync(file);
    }
  });
});
