// SPDX-License-Identifier: Apache-2.0
/** The usual parts of a price list as fields. What else a list has stays as it is: the document has it. */
import { ArrowDown, ArrowUp, type IconNode, Plus, Trash2 } from "lucide";
import { useRef } from "preact/hooks";
import { kinds } from "../../api/kinds.ts";
import type { PriceDocument, PriceEntry } from "../../api/billing.ts";
import { Requirement } from "../../forms/requirement.tsx";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Field } from "../../parts/field.tsx";
import { Icon } from "../../parts/icon.tsx";
import { toWire } from "../../time/zone.ts";
import { ENERGY, USUAL_MEASURES, measureInWords, rulesOf } from "../../words/price-list.ts";
import { partsFrom, requirementOf } from "../../words/question.ts";

const PARTS = ["sku", "measure", "per_hour", "per_kwh", "requirement"] as const;

/** Returns the labels of the fields, by pointer, where the service calls them otherwise. */
export function labelsOf(document: PriceDocument): Map<string, string> {
  const prices = Array.isArray(document.prices) ? document.prices : [];
  return new Map(
    prices.flatMap((_, index): [string, string][] => [
      [`/prices/${index}/per_hour`, `${document.currency} by the hour`],
      [`/prices/${index}/per_kwh`, `${document.currency} by the kWh`],
      [`/prices/${index}/sku`, "Name in bills"],
      [`/prices/${index}/measure`, "For"],
    ]),
  );
}

/** Returns the pointers that have a field. */
export function pointersOf({ prices }: PriceDocument): string[] {
  const entries = (Array.isArray(prices) ? prices : []).flatMap((_, index) =>
    PARTS.map((name) => `/prices/${index}/${name}`),
  );
  return ["/valid_from", "/currency", "/fee", ...entries];
}

interface FormProps {
  document: PriceDocument;
  errors: ReadonlyMap<string, string>;
  onChange: (document: PriceDocument) => void;
}

/** The fields. */
export function PriceForm({ document, errors, onChange }: FormProps) {
  const prices = Array.isArray(document.prices) ? document.prices : [];
  const put = (index: number, one: PriceEntry | null) =>
    onChange({ ...document, prices: prices.flatMap((old, at) => (at !== index ? [old] : one ? [one] : [])) });
  /** Lets a price and the next one change places: of those for one thing the first that fits holds. */
  const swap = (index: number) =>
    onChange({
      ...document,
      prices: [...prices.slice(0, index), ...prices.slice(index, index + 2).reverse(), ...prices.slice(index + 2)],
    });
  const add = () => onChange({ ...document, prices: [...prices, { sku: "", measure: "host", per_hour: "" }] });
  const { fee: _, ...free } = document;
  const kept = rulesOf(document).filter(({ name }) => !["Fee", "Given back early", "Not kept"].includes(name));
  return (
    <div class="stack roomy">
      <div class="form-pair">
        <DateTimeField
          label="Valid from"
          value={Number.isNaN(Date.parse(document.valid_from)) ? null : Date.parse(document.valid_from)}
          error={errors.get("/valid_from")}
          onChange={(at) => at !== null && onChange({ ...document, valid_from: toWire(at) })}
        />
        <TextField
          label="Currency"
          error={errors.get("/currency")}
          hint="The same in all lists."
          most={8}
          class="currency"
          value={document.currency}
          onChange={(currency) => onChange({ ...document, currency })}
        />
      </div>
      <p class="hint">Of the prices for one thing the first that fits holds; what none fits is free.</p>
      {prices.map((price, index) => (
        <PriceFields
          key={index}
          number={index + 1}
          price={price}
          currency={document.currency}
          errors={new Map(PARTS.flatMap((name) => found(errors, `/prices/${index}/${name}`, name)))}
          onUp={index > 0 ? () => swap(index - 1) : null}
          onDown={index < prices.length - 1 ? () => swap(index) : null}
          onChange={(one) => put(index, one)}
        />
      ))}
      <button type="button" class="quiet small" onClick={add}>
        <Icon of={Plus} size={16} /> Another price
      </button>
      <TextField
        label="Fee for each lease"
        error={errors.get("/fee")}
        hint="Once, when it starts. Empty: none."
        isAmount
        value={document.fee ?? ""}
        onChange={(fee) => onChange((fee === "" ? free : { ...document, fee }) as PriceDocument)}
      />
      {kept.length > 0 && (
        <p class="hint">
          It also has rules for: {kept.map(({ name }) => name.charAt(0).toLowerCase() + name.slice(1)).join(", ")}. They
          stay as they are; the document changes them.
        </p>
      )}
    </div>
  );
}

interface TextProps {
  label: string;
  error: string | undefined;
  hint?: string;
  value: string;
  /** Digits are typed. */
  isAmount?: boolean;
  /** How many characters it takes. */
  most?: number;
  class?: string;
  onChange: (value: string) => void;
}

/** A line of text; spaces around it are not meant. */
function TextField({ label, error, hint, value, isAmount = false, most = 16, class: look, onChange }: TextProps) {
  return (
    <Field label={label} error={error} hint={hint}>
      {(control) => (
        <input
          {...control}
          type="text"
          inputMode={isAmount ? "decimal" : "text"}
          class={look}
          maxLength={most}
          autoComplete="off"
          value={value}
          onInput={(event) => onChange(event.currentTarget.value.trim())}
        />
      )}
    </Field>
  );
}

function found(errors: ReadonlyMap<string, string>, pointer: string, name: string): [string, string][] {
  const sentence = errors.get(pointer);
  return sentence === undefined ? [] : [[name, sentence]];
}

interface PriceProps {
  number: number;
  price: PriceEntry;
  currency: string;
  errors: ReadonlyMap<string, string>;
  /** Null: it is the first one, or the last one. */
  onUp: (() => void) | null;
  onDown: (() => void) | null;
  /** Null takes it away. */
  onChange: (price: PriceEntry | null) => void;
}

function PriceFields({ number, price, currency, errors, onUp, onDown, onChange }: PriceProps) {
  const measures = [...new Set([...USUAL_MEASURES, ...kinds.value.map(({ name }) => name), price.measure])];
  const { requirement = [], ...bare } = price;
  const { per_hour, per_kwh, ...unpriced } = bare;
  const amount = per_kwh ?? per_hour ?? "";
  const isEnergy = price.measure === ENERGY;
  /** Gives another price, by the unit of what is paid for. */
  const priced = (measure: string, text: string) =>
    measure === ENERGY ? { ...unpriced, measure, per_kwh: text } : { ...unpriced, measure, per_hour: text };
  const wrong = errors.get("requirement");
  return (
    <fieldset class="part price-fields">
      <legend>Price {number}</legend>
      <div class="form-pair">
        <Field label="For" error={errors.get("measure")}>
          {(control) => (
            <select
              {...control}
              value={price.measure}
              onChange={(event) => onChange(priced(event.currentTarget.value, amount))}
            >
              {measures.map((measure) => (
                <option key={measure} value={measure}>
                  {measureInWords(measure)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <TextField
          label={`${currency} by the ${isEnergy ? "kWh" : "hour"}`}
          error={errors.get(isEnergy ? "per_kwh" : "per_hour")}
          isAmount
          value={amount}
          onChange={(text) => onChange({ ...price, ...priced(price.measure, text) })}
        />
        <TextField
          label="Name in bills"
          error={errors.get("sku")}
          most={64}
          value={price.sku}
          onChange={(sku) => onChange({ ...price, sku })}
        />
      </div>
      <div class="sentence compact">
        <Requirement
          value={partsFrom(requirement)}
          type={typeOf(price.measure)}
          wrong={wrong !== undefined}
          onChange={(parts) => {
            const made = requirementOf({ ...partsFrom(requirement), ...parts });
            onChange(made.length > 0 ? { ...bare, requirement: made } : bare);
          }}
        />
        <span class="price-places">
          <Place number={number} way="up" icon={ArrowUp} onMove={onUp} />
          <Place number={number} way="down" icon={ArrowDown} onMove={onDown} />
        </span>
        <button
          type="button"
          class="quiet small price-gone"
          aria-label={`Remove price ${number}`}
          onClick={() => onChange(null)}
        >
          <Icon of={Trash2} size={16} /> Remove
        </button>
      </div>
      {wrong && <p class="field-error">{wrong}</p>}
    </fieldset>
  );
}

interface PlaceProps {
  number: number;
  way: "up" | "down";
  icon: IconNode;
  onMove: (() => void) | null;
}

/** Moves a price by one place; the focus goes with it. */
function Place({ number, way, icon, onMove }: PlaceProps) {
  const button = useRef<HTMLButtonElement>(null);
  const move = () => {
    const beside = number + (way === "up" ? -1 : 1);
    const form = button.current?.form;
    onMove?.();
    const label = `Move price ${beside} ${way}`;
    requestAnimationFrame(() => form?.querySelector<HTMLElement>(`[aria-label="${label}"]`)?.focus());
  };
  return (
    <button
      ref={button}
      type="button"
      class="quiet small square"
      aria-label={`Move price ${number} ${way}`}
      aria-disabled={onMove === null}
      onClick={move}
    >
      <Icon of={icon} size={16} />
    </button>
  );
}

/** The type whose resources have the properties that a price of a measure may ask for. */
function typeOf(measure: string): string {
  if (measure === "gigabyte") return "virtual:volume";
  const [type] = kinds.value.find(({ name }) => name === measure)?.resource_types ?? [];
  return type ?? "physical:host";
}
