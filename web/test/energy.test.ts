// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LeaseEnergy } from "../src/api/reports.ts";
import {
  carbonOf,
  energyInWords,
  energyNotes,
  sciInWords,
  sumUnbooked,
  unbookedInWords,
  unbookedNotes,
} from "../src/words/energy.ts";

const KNOWN: LeaseEnergy = {
  computed_through: "2030-04-26T13:00:00Z",
  resource_seconds: 7200,
  energy_wh: 12_500,
  source: "measured",
  unknown_seconds: 0,
  carbon: {
    gco2: 4200,
    embodied_gco2: 0,
    sci_mg: 2_100_000,
    estimated: false,
    complete: true,
    embodied_complete: true,
  },
};

test("energy and carbon are in units that one can read", () => {
  assert.equal(energyInWords(12_500, 4200), "12.5 kWh, 4.2 kg CO₂e");
  assert.equal(energyInWords(80, null), "0.1 kWh");
  assert.equal(carbonOf(999), "999 g CO₂e");
});

test("notes say how it is known and what is not in it", () => {
  assert.deepEqual(energyNotes(KNOWN), ["The energy is measured."]);
  const carbon = { ...KNOWN.carbon!, estimated: true, complete: false, embodied_complete: false };
  assert.equal(energyNotes({ ...KNOWN, source: "rated", unknown_seconds: 1800, carbon }).length, 5);
  assert.match(energyNotes({ ...KNOWN, unknown_seconds: 1800 })[1] ?? "", /^Of 25 % of the hosts' time nothing/);
});

test("the carbon intensity is told where all of it is known", () => {
  assert.equal(sciInWords(KNOWN), "2.1 kg CO₂e for each hour of a host (SCI)");
  assert.equal(sciInWords({ carbon: { ...KNOWN.carbon!, complete: false } }), "");
  assert.equal(sciInWords({ carbon: null }), "");
});

const IDLE = { resource_seconds: 7200, energy_wh: 500, source: "measured", unknown_seconds: 0, gco2: null } as const;
const NONE = { resource_seconds: 0, energy_wh: null, source: null, unknown_seconds: 0, gco2: null } as const;

test("what belongs to nobody is summed over the parts of a period", () => {
  const rated = { ...IDLE, source: "rated", unknown_seconds: 3600, gco2: 200 } as const;
  const sum = sumUnbooked([
    { idle: IDLE, asleep: NONE },
    { idle: rated, asleep: NONE },
  ]);
  assert.deepEqual(sum, {
    idle: { resource_seconds: 14_400, energy_wh: 1000, source: "mixed", unknown_seconds: 3600, gco2: 200 },
    asleep: NONE,
  });
  assert.equal(sumUnbooked([{ idle: IDLE, asleep: NONE }, null]), null);
  assert.equal(sumUnbooked([]), null);
  assert.deepEqual(unbookedNotes(sum!), [
    "What idle hosts drew is measured in part, else by the data sheets of the hosts.",
    "Of 1 h of hosts nothing is known: they are not in the sums.",
  ]);
});

test("what belongs to nobody is told in hours and kilowatt-hours", () => {
  assert.equal(unbookedInWords(IDLE, "Idle"), "Idle for 2 h: 0.5 kWh");
  assert.equal(
    unbookedInWords({ ...IDLE, source: null, energy_wh: null }, "Asleep"),
    "Asleep for 2 h: what they drew is not known",
  );
  assert.equal(unbookedInWords(NONE, "Asleep"), "");
});
