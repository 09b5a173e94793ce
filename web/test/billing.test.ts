// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import "temporal-polyfill/global";
import type { Budget, Charge, PriceListHead } from "../src/api/billing.ts";
import {
  budgetAmount,
  budgetPeriod,
  leftInWords,
  nextPeriod,
  overInWords,
  sharesOfBudget,
} from "../src/words/budget.ts";
import { digitsOf, money, moneyToHundredths } from "../src/words/money.ts";
import {
  baseOf,
  comparisonInWords,
  doubtsInWords,
  draftOf,
  fieldInWords,
  inForce,
  readDocument,
  rulesOf,
  standingOf,
  valueOfChange,
} from "../src/words/price-list.ts";
import {
  categoryInWords,
  isPriced,
  monthFirst,
  monthsOf,
  monthsToSee,
  reckoningOf,
  sizeOf,
  statementNotes,
  sumOf,
} from "../src/words/statement.ts";

const NOW = Date.parse("2030-04-15T12:00:00Z");
const list = (version: number, valid_from: string, published_at = "2030-03-01T00:00:00Z"): PriceListHead => ({
  version,
  valid_from,
  published_at,
  currency: "EUR",
  published_by: null,
});

test("amounts are read to the last digit, with commas, and without zeros that say nothing", () => {
  assert.equal(money("1234567.500000000", "EUR"), "1,234,567.50 EUR");
  assert.equal(money("-0.002433334", "EUR"), "−0.002433334 EUR");
  assert.equal(money("300", "JPY"), "300 JPY");
  assert.equal(digitsOf("1.250000"), "1.25");
  assert.equal(digitsOf("2.000000"), "2");
  assert.equal(digitsOf("no amount"), "no amount");
});

test("lines of a statement are read to the hundredth, unless that would leave nothing of them", () => {
  assert.equal(moneyToHundredths("7223.413333333", "EUR"), "7,223.41 EUR");
  assert.equal(moneyToHundredths("-1085.315", "EUR"), "−1,085.32 EUR");
  assert.equal(moneyToHundredths("1085.325", "EUR"), "1,085.32 EUR");
  assert.equal(moneyToHundredths("0.999", "EUR"), "1.00 EUR");
  assert.equal(moneyToHundredths("0.0004", "SU"), "0.0004 SU");
  assert.equal(moneyToHundredths("300", "JPY"), "300 JPY");
  assert.equal(moneyToHundredths("62.00", "EUR"), "62.00 EUR");
});

test("a statement says when its month of UTC is here, where that is another time", () => {
  const statement = { period: { start: "2030-04-01T00:00:00Z", end: "2030-05-01T00:00:00Z" } };
  assert.equal(statementNotes(statement, "UTC", NOW).length, 1);
  assert.equal(
    statementNotes(statement, "America/New_York", NOW)[0],
    "A month of UTC: Sun 31 Mar 20:00 – Tue 30 Apr 20:00.",
  );
});

test("months with a budget that something is booked for can be looked at, too", () => {
  const months = monthsToSee(["2030-02", "2030-04"], NOW);
  assert.deepEqual(months, ["2030-07", "2030-06", "2030-05", "2030-04", "2030-02"]);
  assert.deepEqual(monthsToSee([], Date.parse("2030-12-31T23:59:00Z")).at(0), "2031-03");
});

test("what lasts beyond a period touches the next one", () => {
  const month = { period: { start: "2030-04-01T00:00:00Z", end: "2030-05-01T00:00:00Z" } };
  const week = { period: { start: "2030-04-15T00:00:00Z", end: "2030-04-22T00:00:00Z" } };
  assert.equal(nextPeriod([month, week], Date.parse("2030-05-03T00:00:00Z")), Date.parse("2030-04-22T00:00:00Z"));
  assert.equal(nextPeriod([month], Date.parse("2030-05-01T00:00:00Z")), null);
  assert.equal(nextPeriod([{ period: null }], NOW), null);
});

test("sums are exact, of credits too", () => {
  assert.equal(sumOf(["0.1", "0.2", "0.000000001"]), "0.300000001");
  assert.equal(sumOf(["1.00", "-12.50"]), "-11.50");
  assert.equal(sumOf(["90071992547409.93", "0.01"]), "90071992547409.94");
  assert.equal(sumOf([]), "0");
});

test("of lists that are valid the last one holds, and one that a later one comes before never will", () => {
  const all = [list(1, "2030-01-01T00:00:00Z"), list(2, "2030-06-01T00:00:00Z"), list(3, "2030-04-01T00:00:00Z")];
  assert.deepEqual(
    all.map((one) => standingOf(one, all, NOW)),
    ["replaced", "replaced", "in force"],
  );
  const ahead = [list(1, "2030-01-01T00:00:00Z"), list(2, "2030-06-01T00:00:00Z")];
  assert.deepEqual(
    ahead.map((one) => standingOf(one, ahead, NOW)),
    ["in force", "to come"],
  );
  assert.equal(inForce([], NOW), undefined);
  assert.equal(inForce([list(1, "2030-01-01T00:00:00Z", "2030-04-16T00:00:00Z")], NOW), undefined);
});

test("a new list begins as the one in force, not as one that is still to come", () => {
  const now = list(1, "2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z");
  const toCome = list(2, "2031-01-01T00:00:00Z", "2030-01-02T00:00:00Z");
  assert.equal(baseOf([now, toCome], NOW), now);
  assert.equal(baseOf([toCome], NOW), toCome);
  assert.equal(baseOf([], NOW), undefined);
});

test("a factor of a project is said by its name where that is known", () => {
  const document = {
    ...draftOf(null, "2030-01-01T00:00:00Z", "UTC"),
    projects: [{ project_id: "71bb", factor: "0.80" }],
  };
  const [said] = rulesOf(document, (id) => (id === "71bb" ? "physics" : id)).filter(({ name }) => name === "Projects");
  assert.deepEqual(said?.says, ["physics: × 0.8"]);
});

test("the rules of a list are sentences", () => {
  const rules = rulesOf({
    currency: "EUR",
    decimals: 2,
    valid_from: "2030-04-01T00:00:00Z",
    time_zone: "Europe/Berlin",
    prices: [],
    fee: "5.00",
    hours: [{ days: ["MO", "FR"], from: "09:00", factor: "1.250000" }],
    lead: [{ below: "PT24H", factor: "1.1" }],
    cancellation: [{ before_start: "P7D", share: "0" }, { share: "0.25" }],
    late: "charge",
  });
  assert.deepEqual(Object.fromEntries(rules.map(({ name, says }) => [name, says])), {
    Fee: ["5.00 EUR for each lease, once it starts"],
    "Hours (Europe/Berlin)": ["Mon, Fri 09:00 – 24:00: × 1.25"],
    "Booked shortly before": ["less than 24 hours ahead: × 1.1"],
    Cancelled: ["more than 7 days before the start: nothing is charged", "later: 25 % is charged"],
    "Given back early": ["nothing of the rest is charged"],
    "Not kept": ["nothing is charged for the time of a missing resource"],
  });
});

test("what a list changes is read without JSON", () => {
  assert.equal(fieldInWords("prices[host-a100].per_hour"), "host-a100: by the hour");
  assert.equal(fieldInWords("valid_from"), "Valid from");
  assert.equal(fieldInWords("prices[host]"), "host");
  assert.equal(valueOfChange('"0.80"', "UTC", NOW), "0.80");
  assert.equal(valueOfChange('[{"below":"PT24H","factor":"1.1"}]', "UTC", NOW), "below: PT24H; factor: 1.1");
  assert.equal(valueOfChange(null, "UTC", NOW), "none");
  assert.equal(valueOfChange('"2030-04-30T22:00:00Z"', "Europe/Berlin", NOW), "Wed 1 May 00:00");
});

test("what the last month would have cost says of how many leases", () => {
  const found = { month: "2030-03", currency: "EUR", amount: "1280.00", new_amount: "1344.50", leases: 2 };
  const inWords = (is_whole: boolean) => comparisonInWords({ ...found, is_whole });
  assert.equal(
    inWords(true),
    "Leases cost 1,280.00 EUR in March 2030; by the new list it would have been 1,344.50 EUR.",
  );
  assert.match(inWords(false), /^The first 2 leases that were looked at cost /);
});

test("what an operator may not have meant by a list is said, and nothing else", () => {
  const none = { left_out: [], replaced: [], unmatched: [] };
  assert.deepEqual(doubtsInWords(none), []);
  const said = doubtsInWords({ left_out: ["old"], replaced: [6, 7], unmatched: ["host-a100", "host-h100"] });
  assert.deepEqual(
    said.map((sentence) => sentence.slice(0, 58)),
    [
      "It has no price for old: what is booked by these before it",
      "No resource has the price of host-a100, host-h100 now: loo",
      "Price list 6 was published ahead, and never holds for what",
      "Price list 7 was published ahead, and never holds for what",
    ],
  );
});

test("a new list begins as another one, and a text that is none says so", () => {
  const newest = { ...draftOf(null, "2030-01-01T00:00:00Z", "UTC"), fee: "1.00" };
  assert.deepEqual(draftOf(newest, "2030-05-01T00:00:00Z", "UTC"), { ...newest, valid_from: "2030-05-01T00:00:00Z" });
  assert.equal(readDocument('{"currency": "EUR"}').problem, null);
  assert.equal(readDocument('\ufeff{"currency": "EUR"}\r\n').problem, null);
  assert.match(readDocument("[]").problem ?? "", /^This is no JSON object/);
  assert.match(readDocument("{").problem ?? "", /^This is not JSON: /);
});

test("what is left of a budget is rounded down, what is used up, and its month is that of UTC", () => {
  const budget: Budget = {
    project_id: "p",
    measure: "host",
    unit: "hours",
    period: { start: "2030-04-01T00:00:00Z", end: "2030-05-01T00:00:00Z" },
    limit: "1000",
    used: "412.51",
    held: "96",
    left: "491.49",
    source: "configuration",
  };
  assert.equal(leftInWords(budget, "Europe/Berlin", NOW), "491.4 h of 1,000 h (host hours) left in April 2030");
  assert.equal(budgetAmount("412.51", budget, true), "412.6 h");
  assert.deepEqual(sharesOfBudget(budget), { used: 0.41251, held: 0.096 });
  assert.deepEqual(sharesOfBudget({ ...budget, used: "1200" }), { used: 1, held: 0 });
  const money = { ...budget, measure: "EUR", unit: "money" as const, limit: "100.00", left: "-3.50" };
  assert.equal(leftInWords(money, "UTC", NOW), "−3.50 EUR of 100 EUR left in April 2030");
  assert.equal(budgetAmount("23494.253333333", money), "23,494.25 EUR");
  assert.equal(budgetAmount("1146.946666667", money, true), "1,146.95 EUR");
  assert.equal(budgetAmount("0", budget, true), "0 h");
  assert.equal(overInWords(budget), null);
  assert.equal(overInWords({ ...money, used: "0", held: "103.5" }), "3.50 EUR more than that");
  const days = { period: { start: "2030-04-10T00:00:00Z", end: "2030-04-17T00:00:00Z" } };
  assert.equal(budgetPeriod(days, "UTC", NOW), "Wed 10 Apr 00:00 – Wed 17 Apr 00:00");
  assert.equal(leftInWords({ ...budget, limit: null, left: null }, "UTC", NOW), null);
});

test("a charge says what it is for and how it came about", () => {
  const charge = {
    category: "usage",
    status: "used",
    sku: "host",
    resource_seconds: 172_800,
    unit_price: "3.200000000",
    factor: "1.25",
    currency: "EUR",
  } as Charge;
  assert.equal(reckoningOf(charge), "48 h × 3.20 EUR × 1.25");
  assert.equal(reckoningOf({ ...charge, sku: null, category: "fee", factor: "1" }), "3.20 EUR");
  assert.equal(reckoningOf({ ...charge, category: "correction" }), "");
  const energy = { ...charge, category: "energy" as const, energy_wh: 12_500, gco2: 4200 };
  assert.equal(reckoningOf(energy), "12.5 kWh × 3.20 EUR × 1.25");
  assert.equal(reckoningOf({ ...energy, sku: null }), "12.5 kWh, 4.2 kg CO₂e");
  assert.deepEqual([isPriced(energy), isPriced({ ...energy, sku: null }), isPriced(charge)], [true, false, true]);
  const total = { status: "used" as const, count: 1, resource_seconds: 7200, amount: "1.00" };
  assert.equal(sizeOf({ ...total, category: "usage", sku: "host" }), "2");
  assert.equal(sizeOf({ ...total, category: "energy", sku: "power", energy_wh: 12_500 }), "12.5 kWh");
  assert.equal(categoryInWords({ category: "usage", status: "unused" }), "Reserved and not used");
  assert.equal(categoryInWords({ category: "free", status: "late" }), "Not charged: a late start");
  assert.deepEqual(monthsOf([{ month: "2030-03" }, { month: "2030-04" }, { month: "2030-03" }]), [
    "2030-04",
    "2030-03",
  ]);
});

test("the month that is looked at first is the present one, or the last one before it", () => {
  assert.equal(monthFirst(["2030-05", "2030-04", "2030-03"], NOW), "2030-04");
  assert.equal(monthFirst(["2030-05", "2030-02"], NOW), "2030-02");
  assert.equal(monthFirst(["2030-06", "2030-05"], NOW), "2030-05");
  assert.equal(monthFirst([], NOW), undefined);
});
