// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { movesInWords, proofInWords } from "../src/words/proof.ts";

const NOW = Date.parse("2026-11-26T15:30:00Z");

test("a full instant is said in the zone of the page, and that nothing was found is said as that", () => {
  const full = { code: "full_at", at: "2026-12-04T11:00:00Z", hosts: 6, promised: 4, asked: 3 } as const;
  assert.match(
    proofInWords(full, "Europe/Berlin", NOW),
    /^4 of the 6 hosts that would do are taken .*12:00, and 3 more are needed: giving other leases other hosts does not help\.$/,
  );
  assert.match(
    proofInWords({ ...full, promised: 1, asked: 1 }, "UTC", NOW),
    /^1 of .* is taken .*, and 1 more is needed/,
  );
  assert.match(proofInWords({ code: "no_arrangement" }, "UTC", NOW), /^However other leases/);
  assert.match(proofInWords({ code: "too_many_moves", moves_others: 59 }, "UTC", NOW), /59 other leases got/);
  assert.match(proofInWords({ code: "not_proven" }, "UTC", NOW), /^No way was found/);
});

test("an opening says how many leases get other hosts", () => {
  assert.match(movesInWords(1), /^For it 1 other lease that has not started gets other hosts/);
  assert.match(movesInWords(2), /^For it 2 other leases that have not started get other hosts/);
});
