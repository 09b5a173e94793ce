// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lease, Price } from "../src/api/types.ts";
import { loadTemporal } from "../src/time/zone.ts";
import { type Fit, cheaperOf, grantedOf, latestEndOf, offerInWords, shortened } from "../src/words/fits.ts";
import { changeOf, formOf, withOffer } from "../src/words/lease-change.ts";
import {
  cancellationSteps,
  costOf,
  estimateOf,
  differenceInWords,
  isPriceOf,
  partInWords,
  priceInWords,
} from "../src/words/price.ts";

await loadTemporal();
const BERLIN = "Europe/Berlin";
const PRICE: Price = {
  amount: "673.80",
  currency: "EUR",
  if_cancelled: [
    { until: "2030-04-25T08:00:00Z", amount: "0.00" },
    { until: "2030-05-01T08:00:00Z", amount: "168.45" },
  ],
};

test("a price says until when it is free to cancel, and then what that costs", () => {
  const told = (now: string, price = PRICE) => priceInWords(price, BERLIN, Date.parse(now));
  assert.equal(told("2030-04-18T08:00:00Z"), "Costs 673.80 EUR; free to cancel until Thu 25 Apr 10:00");
  assert.equal(told("2030-04-26T08:00:00Z"), "Costs 673.80 EUR; 168.45 EUR to cancel until Wed 1 May 10:00");
  assert.equal(told("2030-05-02T08:00:00Z"), "Costs 673.80 EUR");
  assert.equal(told("2030-04-18T08:00:00Z", { ...PRICE, if_cancelled: [] }), "Costs 673.80 EUR");
});

test("the price of an opening is not that of another part of it", () => {
  const opening = { start_date: "2030-05-02T08:00:00Z", end_date: "2030-05-04T08:00:00Z" };
  const [start, end] = [Date.parse(opening.start_date), Date.parse(opening.end_date)];
  assert.equal(isPriceOf(opening, start + 20_000, end + 20_000), true);
  assert.equal(isPriceOf(opening, start + 3_600_000, end + 3_600_000), false);
  assert.equal(isPriceOf(opening, start, end - 3_600_000), false);
});

test("how a price comes about, what a change costs, and what it costs to cancel", () => {
  const part = {
    reservation: 0,
    sku: "host",
    count: 4,
    hours: "17",
    per_hour: "3.20",
    factor: "1.25",
    amount: "272.00",
  };
  assert.equal(partInWords(part, "EUR"), "4 × host, 17 h × 3.20 EUR × 1.25 = 272.00 EUR");
  assert.deepEqual([costOf(PRICE), costOf({ ...PRICE, estimated: "6.48" })], ["673.80 EUR", "about 673.80 EUR"]);
  const about = "about 6.48 EUR of it for energy, which is charged as it is drawn";
  assert.equal(estimateOf({ ...PRICE, estimated: "6.48" }), about);
  const power = { reservation: 0, sku: "power", kwh: "14.4", per_kwh: "0.30", factor: "1.5", amount: "6.48" };
  assert.equal(partInWords(power, "EUR"), "power, about 14.4 kWh × 0.30 EUR × 1.5 = 6.48 EUR");
  const changed = (difference: string) => differenceInWords({ amount: "840.00", currency: "EUR", difference });
  assert.equal(changed("120.00"), "Then it costs 840.00 EUR in all: 120.00 EUR more.");
  assert.equal(changed("-5.00"), "Then it costs 840.00 EUR in all: 5.00 EUR less.");
  assert.equal(changed("0.00"), "Then it costs 840.00 EUR in all, as before.");
  assert.equal(differenceInWords(null), null);
  const steps = (now: string) => cancellationSteps(PRICE, BERLIN, Date.parse(now));
  assert.deepEqual(steps("2030-04-18T08:00:00Z"), [
    "until Thu 25 Apr 10:00: free",
    "until Wed 1 May 10:00: 168.45 EUR",
  ]);
  assert.deepEqual(steps("2030-05-02T08:00:00Z"), []);
});

test("what a limit would grant is an alternative of the question", () => {
  const window = { start: Date.parse("2030-05-02T08:00:00Z"), end: Date.parse("2030-05-04T08:00:00Z") };
  const fits = { duration_seconds: 86_400, amount: 3, start_date: "2030-06-01T00:00:00Z" };
  assert.deepEqual(grantedOf({ measure: "host", fits }, window, true), [
    { change: "duration", start_date: "2030-05-02T08:00:00Z", end_date: "2030-05-03T08:00:00Z" },
    {
      change: "count",
      start_date: "2030-05-02T08:00:00Z",
      end_date: "2030-05-04T08:00:00Z",
      reservations: [{ min: 3, max: 3 }],
    },
    { change: "time", start_date: "2030-06-01T00:00:00Z", end_date: "2030-06-03T00:00:00Z" },
  ]);
  assert.deepEqual(grantedOf({ measure: "vcpu", fits: { amount: 3 } }, window, true), []);
  assert.deepEqual(grantedOf({ measure: "host", fits: { amount: 3 } }, window, false), []);
  const ends = { end_date: "2030-05-03T08:00:00Z" };
  assert.equal(grantedOf({ fits: ends }, window, true)[0]?.change, "duration");
  assert.deepEqual(grantedOf(undefined, window, true), []);
  // What is free and within all limits counts, if the service has looked for it.
  const later = { change: "time", start_date: "2030-06-03T00:00:00Z", end_date: "2030-06-05T00:00:00Z", price: "9.00" };
  assert.deepEqual(grantedOf({ measure: "host", fits, alternatives: [later] }, window, true), [later]);
  assert.deepEqual(cheaperOf({ fits: [] }), []);
  const hour = { start_date: "2030-05-02T08:00:00Z", end_date: "2030-05-02T09:00:00Z" };
  assert.equal(shortened({ ...hour, change: "duration" }).end_date, "2030-05-02T08:59:00Z");
  assert.equal(shortened({ ...hour, change: "time" }).end_date, "2030-05-02T09:00:00Z");
});

test("what is offered in place of a change is said by what it changes, and is put into the form", () => {
  const lease = {
    name: "training",
    start_date: "2030-05-02T08:00:00Z",
    end_date: "2030-05-02T10:00:00Z",
    before_end_date: null,
    reminders: [],
    reservations: [{ id: "r1", resource_type: "physical:host", min: 2, max: 2, before_end: "default" }],
  } as unknown as Lease;
  const dates = { start_date: "2030-05-02T08:00:00Z", end_date: "2030-05-02T12:00:30Z" };
  const count: Fit = { ...dates, change: "count", reservations: [{ id: "r1", min: 3, max: 3 }] };
  const offers: Fit[] = [{ ...dates, change: "time" }, { ...dates, change: "duration" }, count];
  const words = offers.map((one) => offerInWords(one, lease, "UTC", Date.parse("2030-04-01T00:00:00Z")));
  assert.deepEqual(words, ["Thu 2 May 08:00 until Thu 2 May 12:00", "until Thu 2 May 12:00", "3 hosts"]);
  const form = formOf(lease);
  const changes = offers.map((one) => changeOf(withOffer(form, one), lease));
  assert.deepEqual(changes[0], { end_date: "2030-05-02T12:00:00Z" });
  assert.deepEqual(changes[2], { reservations: [{ id: "r1", min: 3, max: 3 }] });
});

test("of a later end that a limit refuses the latest that it would grant is known", () => {
  const lease = { start: Date.parse("2030-05-02T08:00:00Z"), end: Date.parse("2030-05-02T10:00:00Z") };
  const latest = (fits: Record<string, number | string>) => latestEndOf({ measure: "EUR", fits }, lease);
  assert.equal(latest({ duration_seconds: 10_830 }), Date.parse("2030-05-02T11:00:00Z"));
  assert.equal(latest({ end_date: "2030-05-02T11:30:00Z" }), Date.parse("2030-05-02T11:30:00Z"));
  // What it has is no advice, nor are fewer.
  assert.equal(latest({ duration_seconds: 7200 }), null);
  assert.equal(latest({ amount: 3 }), null);
  assert.equal(latestEndOf(undefined, lease), null);
});
