// SPDX-License-Identifier: Apache-2.0
/** In the form that searches: the parameters that the schema of a type describes. */
import { useRef, useState } from "preact/hooks";
import { parametersOf } from "../../api/kinds.ts";
import type { ResourceType } from "../../api/types.ts";
import { SchemaFields } from "../../forms/schema-fields.tsx";
import { type FormField, type Values, fieldsOf, setIn, setsOf, withSet } from "../../forms/schema.ts";
import { Field } from "../../parts/field.tsx";
import { besideSentence } from "../../words/beside.ts";
import type { Want } from "../../words/question.ts";
import type { Referable } from "../../words/references.ts";

/** One reservation that is asked for. */
export interface WantProps {
  want: Want;
  onChange: (want: Want) => void;
  types: readonly ResourceType[];
  /** The first words of the sentence. */
  lead: string;
  onRemove?: (() => void) | undefined;
  /** Sentences of the service by the name of the field. */
  errors: ReadonlyMap<string, string>;
  /** The other reservations, to which this one may refer. */
  others: readonly Referable[];
}

/** The parameters of a type that its schema describes: what is needed, and the rest when it is asked for. */
export function Parameters({ want, onChange, errors, others }: WantProps) {
  // What happens at the end is asked when it is booked.
  const all = fieldsOf(parametersOf(want.type), ["before_end"]);
  const sets = setsOf(all);
  const [chosen, choose] = useState(0);
  // A number that is emptied leaves its field where it is.
  const filled = sets.flat().some(({ name }) => name in want.values);
  const set = filled ? setIn(sets, want.values) : chosen;
  const fields = all.filter((one) => !sets.flat().includes(one) || sets[set]?.includes(one));
  const [counted] = sets[set] ?? [];
  const first = fields.filter(
    (one) =>
      one.required ||
      // A number that is null by default is a detail, and the most of what the least says well enough.
      (one.control === "number" && one.initial !== null && (one === counted || !sets[set]?.includes(one))) ||
      ["flavor", "parameters", "resource_properties", "subnet"].includes(one.name),
  );
  const rest = fields.filter((one) => !first.includes(one));
  const place = counted ? first.indexOf(counted) : 0;
  const said = new Map([...errors].map(([name, sentence]) => [`/${name}`, sentence]));
  const change = (values: Values) => onChange({ ...want, values, count: countIn(values) });
  const shown = (some: readonly FormField[]) => (
    <SchemaFields fields={some} values={want.values} errors={said} type={want.type} others={others} onChange={change} />
  );
  // What was open stays open: a field that is emptied must not be gone.
  const used = useRef(false);
  used.current ||= rest.some(({ name }) => name in want.values || errors.has(name));
  return (
    <div class="want-fields">
      {shown(first.slice(0, place))}
      {sets.length > 0 && (
        <SetChoice
          sets={sets}
          chosen={set}
          onChange={(index) => {
            choose(index);
            change(withSet(sets, index, want.values));
          }}
        />
      )}
      {shown(first.slice(place))}
      {rest.length > 0 && (
        <details class="more-fields" open={used.current}>
          <summary>More about it</summary>
          <div class="want-fields">{shown(rest)}</div>
        </details>
      )}
    </div>
  );
}

/** What stands beside the sentence of a type, when it is asked for. */
export function Beside({ want, onChange, errors, others }: WantProps) {
  const fields = fieldsOf(parametersOf(want.type)).filter(({ name }) => besideSentence(want.type).includes(name));
  const used = useRef(false);
  used.current ||= fields.some(({ name }) => name in want.values || errors.has(name));
  if (fields.length === 0) return null;
  return (
    <details class="more-fields" open={used.current}>
      <summary>More about it</summary>
      <div class="want-fields">
        <SchemaFields
          fields={fields}
          values={want.values}
          errors={new Map([...errors].map(([name, sentence]) => [`/${name}`, sentence]))}
          type={want.type}
          others={others}
          onChange={(values) => onChange({ ...want, values })}
        />
      </div>
    </details>
  );
}

/** Which of the fields that are given instead of each other are filled in. */
function SetChoice(props: {
  sets: readonly (readonly FormField[])[];
  chosen: number;
  onChange: (index: number) => void;
}) {
  return (
    <Field label="What of it">
      {(control) => (
        <select
          {...control}
          value={String(props.chosen)}
          onChange={(event) => props.onChange(Number(event.currentTarget.value))}
        >
          {props.sets.map((set, index) => (
            <option key={set[0]!.name} value={String(index)}>
              {set[0]!.label.split(",")[0]!.toLowerCase()}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function countIn({ min, max, amount }: Values): number {
  return [min, amount, max].find((one): one is number => typeof one === "number") ?? 1;
}
