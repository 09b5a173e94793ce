// SPDX-License-Identifier: Apache-2.0
/** The dialog that books what was drawn in the calendar: exactly these rows, or some like these, as its title says. */
import { useState } from "preact/hooks";
import { parametersOf } from "../../api/kinds.ts";
import type { CalendarResource, Json, Property } from "../../api/types.ts";
import { disorder } from "../../forms/gate.ts";
import { type Values, initialValues } from "../../forms/schema.ts";
import type { Marked } from "../../grid/board.ts";
import { BusyButton } from "../../parts/basics.tsx";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { NumberInput } from "../../parts/number.tsx";
import { go } from "../../router.ts";
import { duration } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { toWire } from "../../time/zone.ts";
import { inWords } from "../../words/lease.ts";
import { type Among, sharedBy, wishOfRows } from "../../words/marked.ts";
import { bySchema, countOf } from "../../words/question.ts";
import { type Span, resourceOf } from "./data.ts";

export interface MarkedProps {
  marked: Marked;
  type: string;
  /** What the rows in sight have in common by the page's filter and their group. */
  requirement: Json[];
  /** All resources that the filter leaves; null if they were not all read. */
  all: readonly CalendarResource[] | null;
  /** The properties that tell something, and whether a host may be asked for by its name. */
  known: readonly Property[];
  named: boolean;
  /** Leaves only the rows in the calendar that are free then. */
  onOnlyFree: (window: Span) => void;
  onClose: () => void;
}

/** Books what was marked: how many, when, of which kind; the next page asks the rest. */
export function MarkedDialog({ marked, type, requirement, all, known, named, onOnlyFree, onClose }: MarkedProps) {
  const [start, setStart] = useState<number | null>(marked.start);
  const [end, setEnd] = useState<number | null>(marked.end);
  const [count, setCount] = useState(marked.rows.length);
  const resources = marked.rows.map(resourceOf).filter((one) => one !== undefined);
  const hosts = type === "physical:host";
  const among = { known, all, count };
  const wish = hosts ? wishOfRows(resources, among, requirement, named) : { exact: false, requirement };
  const names = marked.rows.map((row) => row.name);
  const many = wish.exact ? marked.rows.length : count;
  const book = () => {
    if (start === null || end === null || end <= start) return;
    const req = wish.requirement.length > 0 ? JSON.stringify(wish.requirement) : null;
    // What begins now is asked for as now: the minute passes while one reads.
    const from = start <= present.value + 60_000 ? toWire(Math.max(start, present.value)) : toWire(start);
    const window = { start: from, end: toWire(end), book: 1, marked: names.join(",") };
    if (bySchema(type)) go("", { type, with: JSON.stringify(valuesOf(type, among, requirement, marked)), ...window });
    else go("", { type, min: many, req, ...window });
  };
  const words = inWords([wish.requirement]);
  const title = wish.exact
    ? `Book ${names.length === 1 ? "this host" : "these hosts"}`
    : `Book ${countOf(many, type)} like ${names.length === 1 ? "this" : "these"}`;
  const actions = (
    <>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <BusyButton type="submit" class="primary" busy={false} doing="">
        {wish.exact
          ? "Book exactly these"
          : `Book ${countOf(many, type)} like ${names.length === 1 ? "this" : "these"}`}
      </BusyButton>
    </>
  );
  return (
    <Dialog title={title} onClose={onClose} onSubmit={book} actions={actions}>
      <p>
        {wish.exact
          ? `Exactly ${names.join(" and ")}.`
          : `You marked ${names.join(" and ")}. You get ${countOf(many, type)}${words ? ` with ${words}` : ""}: these, or others like these.`}
      </p>
      {!wish.exact && (
        <Field label="How many">
          {(control) => <NumberInput control={control} value={count} onChange={setCount} />}
        </Field>
      )}
      <div class="row">
        <DateTimeField label="From" value={start} onChange={setStart} />
        <DateTimeField label="Until" value={end} onChange={setEnd} wrong={disorder({ start, end })} />
      </div>
      {start !== null && end !== null && end > start && (
        <p class="row spread">
          <span class="muted">{duration(end - start)}</span>
          <button type="button" class="quiet small" onClick={() => onOnlyFree({ start, end })}>
            Show only what is free then
          </button>
        </p>
      )}
    </Dialog>
  );
}

/** Returns the parameters for what was marked, as far as the rows tell them: numbers, a requirement, a class. */
function valuesOf(type: string, among: Among, requirement: Json[], { rows }: Marked): Values {
  const schema = parametersOf(type);
  const resources = rows.map(resourceOf).filter((one) => one !== undefined);
  const values: Record<string, Json> = { ...initialValues(schema) };
  for (const name of Object.keys(values)) values[name] = among.count;
  const asked = new Set<string>();
  for (const name of schema?.required ?? []) {
    const found = new Set(resources.map(({ properties }) => properties[name]));
    const [value] = found;
    // Rows of several classes are no one class to ask for.
    if (found.size === 1 && typeof value === "string") {
      values[name] = value;
      asked.add(`$${name}`);
    }
  }
  const shared = schema?.properties?.resource_properties
    ? sharedBy(resources, among).filter((one) => !asked.has(String(one[1])))
    : [];
  const parts = [...(requirement.length > 0 ? [requirement] : []), ...shared];
  if (parts.length > 0) values.resource_properties = parts.length > 1 ? ["and", ...parts] : parts[0]!;
  return values;
}
