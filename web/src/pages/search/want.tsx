// SPDX-License-Identifier: Apache-2.0
/** One reservation as a sentence to fill in. */
import { X } from "lucide";
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { isEmpty, parametersOf, regions } from "../../api/kinds.ts";
import { useLive } from "../../api/live.ts";
import type { Property, ResourceType } from "../../api/types.ts";
import { Icon } from "../../parts/icon.tsx";
import { NumberInput } from "../../parts/number.tsx";
import { typeName } from "../../words/lease.ts";
import { besideSentence } from "../../words/beside.ts";
import { type Want, bySchema, newWant } from "../../words/question.ts";
import { Requirement } from "../../forms/requirement.tsx";
import { initialValues } from "../../forms/schema.ts";
import { Beside, Parameters, type WantProps } from "./parameters.tsx";

/** Returns a reservation of one thing of a type. */
export function newOf(type: ResourceType, count = 1): Want {
  const values = initialValues(parametersOf(type));
  return { ...newWant(type), count, values: bySchema(type) ? values : {} };
}

/** "I need 2 whole hosts with gpu is A100". */
export function WantSentence(props: WantProps) {
  const { want, onChange, types, lead, onRemove, errors } = props;
  const own = bySchema(want.type);
  const change = (part: Partial<Want>) => onChange({ ...want, ...part });
  const hosts = want.type === "physical:host";
  return (
    <div class="want">
      <div class="sentence">
        <span>{lead}</span>
        {!own && (
          <NumberInput
            label="How many"
            value={want.count}
            wrong={errors.has("min") || errors.has("amount")}
            onChange={(count) => change({ count })}
          />
        )}
        {hosts && <Most want={want} change={change} />}
        <select
          aria-label="Of what"
          value={want.type}
          onChange={(event) => onChange(newOf(event.currentTarget.value, want.count))}
        >
          <TypeOptions types={[...new Set([...types, want.type])]} chosen={want.type} />
        </select>
        <Size want={want} change={change} wrong={(name) => errors.has(name)} />
        {!own && want.type !== "virtual:floatingip" && want.type !== "flavor:instance" && (
          <Requirement value={want} onChange={change} wrong={errors.has("resource_properties")} />
        )}
        <Region want={want} change={change} />
        {onRemove && (
          <button
            type="button"
            class="quiet square"
            aria-label="Do without this"
            title="Do without this"
            onClick={onRemove}
          >
            <Icon of={X} />
          </button>
        )}
      </div>
      {own && <Parameters key={want.type} {...props} />}
      {besideSentence(want.type).length > 0 && <Beside key={want.type} {...props} />}
      {[...errors].map(
        ([name, sentence]) =>
          (!own || name === "") && (
            <p class="field-error" role="alert" key={sentence}>
              {sentence}
            </p>
          ),
      )}
    </div>
  );
}

/** What can be reserved; what has nothing registered comes last and cannot be chosen. */
function TypeOptions({ types, chosen }: { types: readonly ResourceType[]; chosen: ResourceType }) {
  const option = (type: ResourceType, disabled: boolean) => (
    <option key={type} value={type} disabled={disabled}>
      {typeName(type)}
    </option>
  );
  const none = types.filter((type) => isEmpty(type) && type !== chosen);
  return (
    <>
      {types.filter((type) => !none.includes(type)).map((type) => option(type, false))}
      {none.length > 0 && <optgroup label="Nothing registered here">{none.map((type) => option(type, true))}</optgroup>}
    </>
  );
}

/** Where there are several regions. */
function Region({ want, change }: { want: Want; change: Change }) {
  const all = regions();
  if (all.length === 0 && want.region === "") return null;
  return (
    <select
      aria-label="In which region"
      value={want.region}
      onChange={(event) => change({ region: event.currentTarget.value })}
    >
      <option value="">in any region</option>
      {[...new Set([...all, want.region])].filter(Boolean).map((one) => (
        <option key={one} value={one}>
          in {one}
        </option>
      ))}
    </select>
  );
}

type Change = (part: Partial<Want>) => void;

function Most({ want, change }: { want: Want; change: Change }) {
  if (want.most === null) {
    return (
      <button
        type="button"
        class="small"
        title="Take more if more are free"
        onClick={() => change({ most: want.count + 1 })}
      >
        or more
      </button>
    );
  }
  return (
    <span class="pair">
      <span>to</span>
      <NumberInput
        label="At most"
        min={want.count}
        value={Math.max(want.most, want.count)}
        onChange={(most) => change({ most })}
      />
      <button
        type="button"
        class="quiet square small"
        aria-label={`Exactly ${want.count}`}
        onClick={() => change({ most: null })}
      >
        <Icon of={X} size={15} />
      </button>
    </span>
  );
}

/** What belongs to one type of resource only. */
function Size({ want, change, wrong }: { want: Want; change: Change; wrong: (name: string) => boolean }) {
  switch (want.type) {
    case "virtual:instance":
      return (
        <>
          <Amount before="of" after="vCPUs,">
            <NumberInput
              label="vCPUs of each"
              value={want.vcpus}
              wrong={wrong("vcpus")}
              onChange={(vcpus) => change({ vcpus })}
            />
          </Amount>
          <Amount after="GiB memory,">
            <NumberInput
              label="GiB of memory of each"
              min={0.25}
              step={0.25}
              value={want.memory_mb / 1024}
              wrong={wrong("memory_mb")}
              onChange={(size) => change({ memory_mb: Math.round(size * 1024) })}
            />
          </Amount>
          <Amount after="GiB disk,">
            <NumberInput
              label="GiB of disk of each"
              min={0}
              value={want.disk_gb}
              wrong={wrong("disk_gb")}
              onChange={(disk_gb) => change({ disk_gb })}
            />
          </Amount>
          <Affinity want={want} change={change} />
        </>
      );
    case "flavor:instance":
      return (
        <>
          <IdInput
            label="Id of the flavor"
            value={want.flavor}
            wrong={wrong("flavor_id")}
            onInput={(flavor) => change({ flavor })}
            hint={<HowToList command="openstack flavor list" what="flavors" />}
          />
          <Affinity want={want} change={change} />
        </>
      );
    case "virtual:floatingip":
      return <Network want={want} change={change} wrong={wrong("network_id")} />;
    default:
      return null;
  }
}

interface IdProps {
  label: string;
  value: string;
  wrong: boolean;
  onInput: (id: string) => void;
  hint: ComponentChildren;
}

/** Asks for the id of something that this service cannot list. */
function IdInput({ label, value, wrong, onInput, hint }: IdProps) {
  const id = useId();
  return (
    <span class="pair">
      <input
        type="text"
        class="wide"
        aria-label={label}
        aria-describedby={id}
        placeholder={label.toLowerCase()}
        value={value}
        aria-invalid={wrong ? true : undefined}
        onInput={(event) => onInput(event.currentTarget.value.trim())}
      />
      <span class="hint" id={id}>
        {hint}
      </span>
    </span>
  );
}

function HowToList({ command, what }: { command: string; what: string }) {
  return (
    <>
      <code>{command}</code> shows the ids of {what}
    </>
  );
}

function Amount({ before, after, children }: { before?: string; after: string; children: ComponentChildren }) {
  return (
    <span class="pair">
      {before && <span>{before}</span>}
      {children}
      <span>{after}</span>
    </span>
  );
}

function Affinity({ want, change }: { want: Want; change: Change }) {
  return (
    <select
      aria-label="On which hosts"
      value={String(want.affinity)}
      onChange={(event) =>
        change({ affinity: ({ true: true, false: false } as const)[event.currentTarget.value] ?? null })
      }
    >
      <option value="null">on any hosts</option>
      <option value="true">all on one host</option>
      <option value="false">each on another host</option>
    </select>
  );
}

function Network({ want, change, wrong }: { want: Want; change: Change; wrong: boolean }) {
  const watch = useLive<{ properties: Property[] }>("v1/properties", { resource_type: "virtual:floatingip" }, 300);
  const networks = watch?.state.value.data?.properties.find((one) => one.name === "floating_network_id");
  const counts = new Map(networks?.values.map(({ value, count }) => [String(value), count]));
  if (counts.size === 0) {
    return (
      <IdInput
        label="Id of the network"
        value={want.network}
        wrong={wrong}
        onInput={(network) => change({ network })}
        hint={<HowToList command="openstack network list --external" what="networks" />}
      />
    );
  }
  return (
    <select
      aria-label="Of which network"
      aria-invalid={wrong ? true : undefined}
      value={want.network}
      onChange={(event) => change({ network: event.currentTarget.value })}
    >
      <option value="">of which network?</option>
      {want.network && !counts.has(want.network) && <option value={want.network}>{want.network}</option>}
      {[...counts].map(([id, count]) => (
        <option key={id} value={id}>
          network {id.slice(0, 8)} ({count})
        </option>
      ))}
    </select>
  );
}
