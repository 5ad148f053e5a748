/** The texts and the colors of the portal. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { accentVariables } from "../src/portal/colors.ts";
import { Language, type Texts } from "../src/portal/texts.ts";

const DAY = 86_400_000;

describe("the texts of the portal", () => {
  const english = new Language(["en"]).texts;
  const names = Object.keys(english) as (keyof Texts)[];
  const placeholders = (text: string) => [...new Set(text.match(/\{\w+\}/g))].sort();

  for (const code of ["de", "fr", "es", "pt", "ja", "ar"]) {
    it(`are complete in ${code}, with the values of the English ones`, () => {
      const { texts } = new Language([code]);
      assert.deepEqual(Object.keys(texts).sort(), [...names].sort());
      for (const name of names) {
        assert.notEqual(texts[name].trim(), "", name);
        for (const form of texts[name].split("|")) {
          assert.deepEqual(placeholders(form), placeholders(english[name]), name);
        }
      }
    });
  }

  it("are in the first language that is available", () => {
    const codeOf = (...wanted: (string | null)[]) => new Language(wanted).code;
    assert.equal(codeOf(null, "it", "fr-CA", "de"), "fr");
    assert.equal(codeOf("de-CH", "fr"), "de");
    assert.equal(codeOf("toString", "", "__proto__"), "en");
  });

  it("have numbers, dates and durations of the language", () => {
    const german = new Language(["de"]);
    assert.equal(german.say("credits", { n: 1 }), "1 Guthabenpunkt übrig");
    assert.equal(german.say("credits", { n: 12_500 }), "12.500 Guthabenpunkte übrig");
    assert.equal(german.duration(30 * DAY), "30 Tage");
    assert.equal(german.amount(12_500, undefined), "12.500");
    assert.equal(german.amount(12_500, "usd_micro"), "12.500 \u2068usd_micro\u2069");
    const english = new Language(["en"]);
    assert.equal(english.duration(3_600_000), "1 hour");
    assert.equal(english.duration(90_000), "90 seconds");
  });

  for (const code of ["en", "de", "fr", "es", "pt", "ja", "ar"]) {
    it(`isolate a name, whatever its direction is (${code})`, () => {
      const language = new Language([code]);
      for (const text of ["replaceTitle", "deleteTitle", "back"] as const) {
        for (const name of ["CI deploy 2!", "مفتاح 2", "{n} a|b"]) {
          assert.equal(language.say(text, { name }), language.texts[text].replace("{name}", `\u2068${name}\u2069`));
        }
      }
    });
  }
});

describe("the color of the portal", () => {
  const luminance = (color: string) => {
    const [red, green, blue] = color.match(/\d+/g)!.map((part) => {
      const value = Number(part) / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
  };
  const contrast = (a: string, b: string) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high! + 0.05) / (low! + 0.05);
  };

  it("can be read on buttons and on both themes, for every color", () => {
    for (let step = 0; step < 4_096; step++) {
      const color = `#${[8, 4, 0].map((shift) => (((step >> shift) & 15) * 17).toString(16).padStart(2, "0")).join("")}`;
      const variables = accentVariables(color);
      const pairs = [
        [variables["--accent"], variables["--on-accent"]],
        [variables["--accent-light"], "rgb(255 255 255)"],
        [variables["--accent-dark"], "rgb(29 32 38)"],
      ];
      for (const [a, b] of pairs) assert(contrast(a!, b!) >= 4.5, `${color}: ${a} on ${b}`);
    }
  });

  it("stays as it is where it can be read", () => {
    assert.equal(accentVariables("#246bce")["--accent-light"], "rgb(36 107 206)");
  });
});
