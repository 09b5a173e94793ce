// SPDX-License-Identifier: Apache-2.0
/** Says of what more is asked for than takes new leases, and until when the others take none. */
import { useMemo } from "preact/hooks";
import { useLive } from "../../api/live.ts";
import type { CalendarPage } from "../../api/types.ts";
import { present } from "../../time/now.ts";
import { toWire, zone } from "../../time/zone.ts";
import { type Want, countOf } from "../../words/question.ts";
import { type Shortage, disabledInWords, shortageInWords } from "../../words/waiting.ts";
import { requiredOf } from "./strip.tsx";

const MANY = 200;
const RANGE_MS = 35 * 86_400_000;

/** The sentences; the dates are left out until they are known of all that are out of use. */
export function ShortageNote({ short, want }: { short: Shortage; want: Want }) {
  const from = useMemo(() => Math.floor(present.value / 60_000) * 60_000, []);
  const requirement = requiredOf(want);
  const watch = useLive<{ calendar: CalendarPage }>(
    short.disabled > 0 ? "v1/calendar" : null,
    {
      from: toWire(from),
      to: toWire(from + RANGE_MS),
      resource_type: want.type,
      limit: MANY,
      ...(requirement.length > 0 ? { requirement: JSON.stringify(requirement) } : {}),
    },
    300,
  );
  const read = watch?.state.value.data?.calendar;
  const dates = read ? disabledInWords(read, short.disabled, zone.value, present.value) : null;
  return <p class="hint">{shortageInWords(short, (many) => countOf(many, want.type), dates)}</p>;
}
