// SPDX-License-Identifier: Apache-2.0
/** The fields of a form that a JSON schema describes. */
import type { ComponentChildren } from "preact";
import { useUnsettled } from "../parts/settled.tsx";
import { useState } from "preact/hooks";
import { kindOfType } from "../api/kinds.ts";
import { useLive } from "../api/live.ts";
import type { Json, Property, Requirement as Wished, ResourceType } from "../api/types.ts";
import { Chips } from "../parts/basics.tsx";
import { type ControlProps, Field } from "../parts/field.tsx";
import { partsFrom, requirementOf } from "../words/question.ts";
import type { Referable } from "../words/references.ts";
import { DocumentInput, FilesField } from "./documents.tsx";
import { ListField, NamedInput } from "./named.tsx";
import { type Pair, PropertyRows } from "./pairs.tsx";
import { Requirement } from "./requirement.tsx";
import { type FormField, type Values, decoded, encoded, proposalsOf, withValue } from "./schema.ts";

export interface SchemaFieldsProps {
  fields: readonly FormField[];
  values: Values;
  onChange: (values: Values) => void;
  /** Sentences by the pointer of what they are about, such as "/properties/gpu". */
  errors: ReadonlyMap<string, string>;
  /** The resource type whose properties a requirement names. */
  type?: ResourceType | undefined;
  others?: readonly Referable[];
  /** They are of a new resource: what could be registered is proposed, not what is. */
  registering?: readonly Values[] | undefined;
}

/** Draws the fields, one below the other. */
export function SchemaFields(props: SchemaFieldsProps) {
  const { fields, values, onChange, errors, type, others = [], registering } = props;
  return (
    <>
      {fields.map((field) => (
        <SchemaField
          key={field.name}
          field={field}
          value={values[field.name]}
          onChange={(value) => onChange(withValue(values, field.name, value))}
          errors={errors}
          type={type}
          others={others.filter((one) => field.refers.includes(one.type))}
          registering={registering}
        />
      ))}
    </>
  );
}

/** One of them is needed, or they are given: that they are optional would mislead. */
const COUNTED = ["min", "max", "amount"];

interface OneProps {
  field: FormField;
  value: Json | undefined;
  /** Undefined: nothing is filled in. */
  onChange: (value: Json | undefined) => void;
  errors: ReadonlyMap<string, string>;
  type: ResourceType | undefined;
  others: readonly Referable[];
  registering?: readonly Values[] | undefined;
}

function SchemaField(props: OneProps) {
  const { field, value, onChange, errors, type, others } = props;
  const error = [...errors].filter(([pointer]) => isOf(pointer, field.name)).map(([, sentence]) => sentence);
  const said = error.length > 0 ? error.join(" ") : undefined;
  switch (field.control) {
    case "pairs":
      return (
        <Group error={said}>
          <PairsInput field={field} value={value} onChange={onChange} />
        </Group>
      );
    case "list":
      return (
        <Group error={said}>
          <ListField field={field} value={value} onChange={onChange} others={others} />
        </Group>
      );
    case "files":
      return (
        <Group error={said}>
          <FilesField field={field} value={value} onChange={onChange} />
        </Group>
      );
    case "object":
      return <ObjectField {...props} said={said} />;
    case "requirement":
      return (
        <Group error={said}>
          <fieldset class="stack">
            <legend>{field.label}</legend>
            <div class="sentence compact">
              <Requirement
                value={partsFrom(requirementIn(value))}
                type={type ?? "physical:host"}
                none="There are none to choose from."
                wrong={said !== undefined}
                onChange={(part) => {
                  const made = requirementOf({ ...partsFrom(requirementIn(value)), ...part });
                  onChange(made.length > 0 ? made : undefined);
                }}
              />
            </div>
          </fieldset>
        </Group>
      );
    default:
      return (
        <Field
          label={field.required || COUNTED.includes(field.name) ? field.label : `${field.label} (optional)`}
          hint={hintBeside(field, said)}
          error={said}
        >
          {(control) => <Plain {...props} control={control} />}
        </Field>
      );
  }
}

function Plain(props: OneProps & { control: ControlProps }) {
  const { field, value, onChange, others, control } = props;
  switch (field.control) {
    case "named":
      return <NamedInput field={field} value={value} onChange={onChange} others={others} control={control} />;
    case "choice":
      return <ChoiceInput field={field} value={value} onChange={onChange} control={control} />;
    case "boolean":
      return (
        <select
          {...control}
          value={value === undefined ? "" : String(value)}
          onChange={({ currentTarget: { value: text } }) => onChange(text === "" ? undefined : text === "true")}
        >
          <option value="">
            {typeof field.initial === "boolean" ? `as usual: ${yesNo(field.initial)}` : "as usual"}
          </option>
          <option value="true">yes</option>
          <option value="false">no</option>
        </select>
      );
    case "number":
      return <NumberOrNone field={field} value={value} onChange={onChange} control={control} />;
    case "long":
      return <LongInput text={textOf(value)} control={control} onText={(text) => onChange(text || undefined)} />;
    case "base64":
      return (
        <LongInput
          text={decoded(textOf(value)) ?? ""}
          control={control}
          onText={(text) => onChange(text ? encoded(text) : undefined)}
        />
      );
    case "document":
      return <DocumentInput value={value} onChange={onChange} control={control} field={field} />;
    case "json":
      return <JsonInput value={value} onChange={onChange} control={control} />;
    case "secret":
      return (
        <input
          {...control}
          type="password"
          autoComplete="new-password"
          value={textOf(value)}
          onInput={(event) => onChange(event.currentTarget.value || undefined)}
        />
      );
    default:
      return <TextInput {...props} />;
  }
}

/** A number, or nothing; what is no number yet, such as "1e", is not sent as nothing. */
function NumberOrNone(props: Pick<OneProps, "field" | "value" | "onChange"> & { control: ControlProps }) {
  const { field, value, onChange, control } = props;
  const [bad, setBad] = useState(false);
  useUnsettled(bad);
  return (
    <>
      <input
        {...control}
        type="number"
        inputMode={field.whole ? "numeric" : "decimal"}
        min={field.least ?? undefined}
        max={field.most ?? undefined}
        step={field.whole ? 1 : "any"}
        placeholder={typeof field.initial === "number" ? String(field.initial) : undefined}
        value={value === undefined ? "" : String(value)}
        onInput={({ currentTarget: { value: text, validity } }) => {
          setBad(validity.badInput);
          onChange(text.trim() === "" ? undefined : Number(text));
        }}
      />
      {bad && <span class="field-error">That is no number yet.</span>}
    </>
  );
}

/** So many are seen at once; all are proposed as one types. */
const SHOWN = 8;

/** A text; what resources of the type have there is proposed. */
function TextInput(props: Omit<OneProps, "errors" | "others"> & { control: ControlProps }) {
  const { field, value, onChange, type, control, registering } = props;
  const attribute = type !== undefined && field.name in (kindOfType(type)?.attributes ?? {});
  const watch = useLive<{ properties: Property[] }>(attribute ? "v1/properties" : null, { resource_type: type }, 120);
  const values = watch?.state.value.data?.properties.find(({ name }) => name === field.name)?.values ?? [];
  const found = proposalsOf(field.name, values, registering);
  return (
    <>
      <input
        {...control}
        type="text"
        autoComplete="off"
        list={found.length > 0 ? `${control.id}-known` : undefined}
        placeholder={typeof field.initial === "string" ? field.initial : undefined}
        value={textOf(value)}
        onInput={(event) => onChange(event.currentTarget.value || undefined)}
      />
      {found.length > 0 && (
        <>
          <datalist id={`${control.id}-known`}>
            {found.map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
          <Chips
            label={`${field.label}: one of those that there are`}
            options={found.slice(0, SHOWN).map((one) => ({ value: one, text: one }))}
            chosen={[textOf(value)]}
            onChange={(chosen) => onChange(chosen.find((one) => one !== textOf(value) && one !== ""))}
          />
        </>
      )}
    </>
  );
}

/** The fields of an object; it is there as soon as one of them is filled in. */
function ObjectField({ field, value, onChange, errors, said }: OneProps & { said: string | undefined }) {
  const inside = [...errors].filter(([pointer]) => pointer.startsWith(`/${field.name}/`));
  const own = new Map(inside.map(([pointer, sentence]) => [pointer.slice(field.name.length + 1), sentence]));
  const shown = field.fields.some(({ name }) => [...own.keys()].some((pointer) => isOf(pointer, name)));
  return (
    <Group error={shown ? undefined : said}>
      <fieldset class="stack inner">
        <legend>{field.required ? field.label : `${field.label} (optional)`}</legend>
        {field.hint && <p class="hint">{field.hint}</p>}
        <SchemaFields
          fields={field.fields}
          values={isObject(value) ? value : {}}
          errors={own}
          onChange={(values) => onChange(Object.keys(values).length > 0 ? { ...values } : undefined)}
        />
      </fieldset>
    </Group>
  );
}

/** A fieldset has its own name; its error stands below it. */
function Group({ error, children }: { error: string | undefined; children: ComponentChildren }) {
  return (
    <div class={error ? "field wrong" : "field"}>
      {children}
      {error && <p class="field-error">{error}</p>}
    </div>
  );
}

function ChoiceInput({
  field,
  value,
  onChange,
  control,
}: Pick<OneProps, "field" | "value" | "onChange"> & { control: ControlProps }) {
  const usual = field.initial === undefined || field.initial === null ? "" : `as usual: ${String(field.initial)}`;
  return (
    <select
      {...control}
      value={value === undefined ? "" : JSON.stringify(value)}
      onChange={({ currentTarget: { value: text } }) => onChange(text === "" ? undefined : JSON.parse(text))}
    >
      <option value="">{usual || (field.required ? "choose" : "as usual")}</option>
      {field.words.map((word) => (
        <option key={String(word)} value={JSON.stringify(word)}>
          {String(word)}
        </option>
      ))}
    </select>
  );
}

function LongInput({ text, control, onText }: { text: string; control: ControlProps; onText: (text: string) => void }) {
  return (
    <textarea
      {...control}
      rows={5}
      spellcheck={false}
      value={text}
      onInput={(event) => onText(event.currentTarget.value)}
    />
  );
}

/** What no other control can show. What is typed stays while it is no JSON yet, and is marked. */
function JsonInput({ value, onChange, control }: Pick<OneProps, "value" | "onChange"> & { control: ControlProps }) {
  const [typed, setTyped] = useState(value === undefined ? "" : JSON.stringify(value, null, 1));
  const [bad, setBad] = useState(false);
  useUnsettled(bad);
  return (
    <textarea
      {...control}
      rows={5}
      spellcheck={false}
      aria-invalid={bad || control["aria-invalid"] ? true : undefined}
      title={bad ? "This is no JSON yet" : undefined}
      value={typed}
      onInput={({ currentTarget: { value: text } }) => {
        setTyped(text);
        try {
          onChange(text.trim() === "" ? undefined : JSON.parse(text));
          setBad(false);
        } catch {
          setBad(true);
        }
      }}
    />
  );
}

function PairsInput({ field, value, onChange }: Pick<OneProps, "field" | "value" | "onChange">) {
  const [pairs, setPairs] = useState<Pair[]>(() =>
    isObject(value) ? Object.entries(value).map(([name, one]): Pair => [name, String(one)]) : [],
  );
  const own = field.name === "properties" ? {} : { example: ["name", "value"] as Pair, one: "pair" };
  return (
    <PropertyRows
      {...own}
      legend={field.label}
      pairs={pairs}
      onChange={(changed) => {
        setPairs(changed);
        const kept = changed.filter(([name]) => name.trim() !== "").map(([name, one]) => [name.trim(), one]);
        onChange(kept.length > 0 ? Object.fromEntries(kept) : undefined);
      }}
    />
  );
}

/** A sentence of the service often ends with the hint: then it is not said twice. */
function hintBeside({ hint }: FormField, said: string | undefined): string {
  return said?.toLowerCase().includes(hint.toLowerCase()) ? "" : hint;
}

/** Tells whether a pointer leads to a field, or into it. */
function isOf(pointer: string, name: string): boolean {
  return pointer === `/${name}` || pointer.startsWith(`/${name}/`);
}

/** A requirement may be kept as its JSON text. */
function requirementIn(value: Json | undefined): Wished {
  if (Array.isArray(value)) return value;
  try {
    const read: unknown = JSON.parse(textOf(value) || "[]");
    return Array.isArray(read) ? read : [];
  } catch {
    return [];
  }
}

function isObject(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

function yesNo(value: boolean): string {
  return value ? "yes" : "no";
}
