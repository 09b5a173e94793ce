// SPDX-License-Identifier: Apache-2.0
/** Chooses the period of a report, and how long its parts are. */
import type { ComponentChildren } from "preact";
import { Segments } from "../../parts/basics.tsx";
import { setParams } from "../../router.ts";
import { PERIODS, type Period, STEPS, type Step, toDays } from "../../words/usage.ts";

interface PeriodChooserProps {
  period: Period;
  step: Step;
  /** More choices. */
  children: ComponentChildren;
}

/** The choices; all of them are in the address. */
export function PeriodChooser({ period, step, children }: PeriodChooserProps) {
  const change = (name: "from" | "to", day: string) => {
    // A day that is not typed yet is none.
    if (!day) return;
    const { first, last } = { ...period, ...(name === "from" ? { first: day } : { last: day }) };
    // The other day goes along, so that there is always a period.
    setParams({
      from: name === "to" && first > last ? last : first,
      to: name === "from" && first > last ? first : last,
    });
  };
  return (
    <div class="row usage-tools">
      <Segments
        label="Period"
        options={PERIODS}
        chosen={period.name}
        onChange={(name) => setParams(name === "days" ? toDays(period) : { period: name, from: null, to: null })}
      />
      {period.name === "days" && (
        <>
          <Day label="from" value={period.first} onChange={(day) => change("from", day)} />
          <Day label="until the end of" value={period.last} onChange={(day) => change("to", day)} />
        </>
      )}
      <Segments
        label="Bars by"
        options={STEPS}
        chosen={step}
        onChange={(value) => setParams({ step: value === "week" ? null : value })}
      />
      {children}
    </div>
  );
}

function Day({ label, value, onChange }: { label: string; value: string; onChange: (day: string) => void }) {
  return (
    <label class="choose">
      <span>{label}</span>
      <input type="date" value={value} onChange={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}
