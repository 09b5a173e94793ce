// SPDX-License-Identifier: Apache-2.0
/** What resources must be like, as a sentence to fill in: "with gpu is A100 and vCPUs at least 32". */
import { Plus, X } from "lucide";
import { useLive } from "../api/live.ts";
import type { Property } from "../api/types.ts";
import { Icon } from "../parts/icon.tsx";
import { inWords } from "../words/lease.ts";
import { divided, firstCondition, propertyLabel, signInWords, signsOf, valueInWords } from "../words/property.ts";
import type { Condition, Sign, Want } from "../words/question.ts";

/** The parts of a requirement, as a form has them. */
export type Parts = Pick<Want, "conditions" | "others">;

export interface RequirementProps {
  value: Parts;
  onChange: (parts: Partial<Parts>) => void;
  /** The resource type whose resources are chosen from. */
  type?: string;
  /** Said if there is nothing to choose. */
  none?: string;
  wrong?: boolean;
}

/** Asks for the properties of resources: of hosts, if nothing else is said; servers are reserved on hosts, too. */
export function Requirement({ value, onChange, type = "physical:host", none, wrong = false }: RequirementProps) {
  const watch = useLive<{ properties: Property[] }>("v1/properties", { resource_type: type }, 120);
  const properties = watch?.state.value.data?.properties ?? [];
  const { usual, technical } = divided(properties);
  const { conditions, others } = value;
  const put = (index: number, one: Condition | null) =>
    onChange({ conditions: conditions.flatMap((old, at) => (at !== index ? [old] : one ? [one] : [])) });
  return (
    <>
      {conditions.map((condition, index) => (
        <ConditionInput
          key={`${index}-${condition.name}`}
          condition={condition}
          word={index === 0 ? "with" : "and"}
          property={properties.find((one) => one.name === condition.name)}
          wrong={wrong}
          onChange={(one) => put(index, one)}
        />
      ))}
      {others.map((one, index) => (
        <span class="pair condition" key={JSON.stringify(one)}>
          <span>{conditions.length + index === 0 ? "with" : "and"}</span>
          <span class="as-is">{inWords([one])}</span>
          <button
            type="button"
            class="quiet square small"
            aria-label={`Do without ${inWords([one])}`}
            onClick={() => onChange({ others: others.filter((_, at) => at !== index) })}
          >
            <Icon of={X} size={15} />
          </button>
        </span>
      ))}
      {none && watch?.state.value.data && properties.length + conditions.length + others.length === 0 && (
        <span class="hint">{none}</span>
      )}
      {properties.length > 0 && (
        <span class="adder">
          <Icon of={Plus} size={16} />
          <select
            aria-label="Add a property"
            value=""
            onChange={(event) => {
              const property = properties.find((one) => one.name === event.currentTarget.value);
              if (property) onChange({ conditions: [...conditions, firstCondition(property)] });
              event.currentTarget.value = "";
            }}
          >
            <option value="">{conditions.length + others.length === 0 ? "with a property" : "and a property"}</option>
            {usual.map(optionOf)}
            {technical.length > 0 && <optgroup label="technical">{technical.map(optionOf)}</optgroup>}
          </select>
        </span>
      )}
    </>
  );
}

function optionOf({ name }: Property) {
  return (
    <option key={name} value={name}>
      {propertyLabel(name)}
    </option>
  );
}

interface ConditionProps {
  condition: Condition;
  word: string;
  property: Property | undefined;
  wrong: boolean;
  /** Null takes it away. */
  onChange: (condition: Condition | null) => void;
}

function ConditionInput({ condition, word, property, wrong, onChange }: ConditionProps) {
  const label = propertyLabel(condition.name);
  const known = property?.values ?? [];
  const listed = known.some((one) => String(one.value) === String(condition.value));
  return (
    <span class="pair condition">
      <span>
        {word} {label}
      </span>
      <select
        aria-label={`${label}: how`}
        value={condition.sign}
        onChange={(event) => onChange({ ...condition, sign: event.currentTarget.value as Sign })}
      >
        {signsOf(property, condition.sign).map((sign) => (
          <option key={sign} value={sign}>
            {signInWords(sign)}
          </option>
        ))}
      </select>
      {property?.truncated || known.length === 0 ? (
        <input
          type="text"
          aria-label={`${label}: value`}
          value={String(condition.value)}
          aria-invalid={wrong ? true : undefined}
          onInput={(event) => onChange({ ...condition, value: typedValue(event.currentTarget.value, property) })}
        />
      ) : (
        <select
          aria-label={`${label}: value`}
          value={String(condition.value)}
          aria-invalid={wrong ? true : undefined}
          onChange={(event) => onChange({ ...condition, value: typedValue(event.currentTarget.value, property) })}
        >
          {!listed && <option value={String(condition.value)}>{valueInWords(condition.name, condition.value)}</option>}
          {known.map(({ value, count }) => (
            <option key={String(value)} value={String(value)}>
              {valueInWords(condition.name, value)} ({count})
            </option>
          ))}
        </select>
      )}
      <button
        type="button"
        class="quiet square small"
        aria-label={`Do without ${label}`}
        onClick={() => onChange(null)}
      >
        <Icon of={X} size={15} />
      </button>
    </span>
  );
}

function typedValue(text: string, property: Property | undefined): string | number {
  const number = Number(text);
  return property?.type === "number" && text.trim() !== "" && !Number.isNaN(number) ? number : text;
}
