// SPDX-License-Identifier: Apache-2.0
/** Names and values as rows, such as the properties of a host. */
import { Plus, Trash2 } from "lucide";
import { Icon } from "../parts/icon.tsx";
import { useUnsettled } from "../parts/settled.tsx";

export type Pair = [name: string, value: string];

/** Returns what to send: changed and new values, null for what was taken away. */
export function changesOf(
  before: Readonly<Record<string, unknown>>,
  pairs: readonly Pair[],
): Record<string, string | null> {
  const after = new Map(pairs.filter(([name]) => name.trim() !== "").map(([name, value]) => [name.trim(), value]));
  const changes: Record<string, string | null> = {};
  for (const name of Object.keys(before)) if (!after.has(name)) changes[name] = null;
  for (const [name, value] of after)
    if (String(before[name] ?? "") !== value || !(name in before)) changes[name] = value;
  return changes;
}

/** Returns what of the rows could not be sent as it stands there, as a sentence; null if all can. */
export function pairsProblem(pairs: readonly Pair[], one = "property"): string | null {
  if (pairs.some(([name, value]) => name.trim() === "" && value !== "")) return `Name the ${one} that has this value.`;
  const names = pairs.map(([name]) => name.trim()).filter(Boolean);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  return twice === undefined ? null : `There are two values for ${twice}; keep one.`;
}

/** Edits the rows. */
export function PropertyRows(props: {
  pairs: Pair[];
  onChange: (pairs: Pair[]) => void;
  errors?: ReadonlyMap<string, string> | undefined;
  /** What they are, and what one of them is. */
  legend?: string;
  one?: string;
  /** An example. */
  example?: Pair;
}) {
  const { pairs, onChange, errors, legend = "Properties", one = "property", example = ["gpu", "A100"] } = props;
  const put = (index: number, pair: Pair) => onChange(pairs.map((one, at) => (at === index ? pair : one)));
  const wrong = pairsProblem(pairs, one);
  useUnsettled(wrong !== null);
  return (
    <fieldset class="stack">
      <legend>{legend}</legend>
      {pairs.map(([name, value], index) => (
        <div class="property-row" key={index}>
          <input
            aria-label={`Name of the ${one}`}
            placeholder={example[0]}
            value={name}
            onInput={(event) => put(index, [event.currentTarget.value, value])}
          />
          <span aria-hidden="true">=</span>
          <input
            aria-label={`Value of ${name || `the ${one}`}`}
            placeholder={example[1]}
            value={value}
            onInput={(event) => put(index, [name, event.currentTarget.value])}
          />
          <button
            type="button"
            class="quiet square small"
            aria-label={`Take ${name || `the ${one}`} away`}
            onClick={() => onChange(pairs.filter((_, at) => at !== index))}
          >
            <Icon of={Trash2} />
          </button>
          {errors?.get(`/properties/${name}`) && <p class="field-error">{errors.get(`/properties/${name}`)}</p>}
        </div>
      ))}
      {wrong && <p class="field-error">{wrong}</p>}
      <button type="button" class="small quiet" onClick={() => onChange([...pairs, ["", ""]])}>
        <Icon of={Plus} /> Add a {one}
      </button>
    </fieldset>
  );
}
