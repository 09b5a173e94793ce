// SPDX-License-Identifier: Apache-2.0
/** What stands around the grid: which time and which rows are shown, what the blocks mean, what to do if there are none. */
import { CalendarCheck, ChevronLeft, ChevronRight, Table2, X, ZoomIn, ZoomOut } from "lucide";
import { kindOfType, kinds, regions } from "../../api/kinds.ts";
import { info, may } from "../../api/session.ts";
import type { Json, Property } from "../../api/types.ts";
import { Empty, Segments } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icon.tsx";
import { hrefOf, setParams } from "../../router.ts";
import { range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { nounOf, typeName } from "../../words/lease.ts";
import type { Span } from "./data.ts";
import { propertyLabel } from "../../words/property.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
export const ZOOMS = [
  { value: "6h", text: "6 h", span: 6 * HOUR },
  { value: "day", text: "Day", span: DAY },
  { value: "week", text: "Week", span: 7 * DAY },
  { value: "month", text: "Month", span: 30 * DAY },
  { value: "quarter", text: "Quarter", span: 92 * DAY },
] as const;
export type Zoom = (typeof ZOOMS)[number]["value"];

export interface LookProps {
  zoom: Zoom;
  onShift: (direction: -1 | 1) => void;
  onToday: () => void;
  onZoom: (zoom: Zoom) => void;
  onScale: (factor: number) => void;
}

/** Which time is looked at. */
export function LookTools({ zoom, onShift, onToday, onZoom, onScale }: LookProps) {
  return (
    <div class="row">
      <button type="button" class="small square" aria-label="Earlier" onClick={() => onShift(-1)}>
        <Icon of={ChevronLeft} />
      </button>
      <button type="button" class="small" onClick={onToday}>
        Today
      </button>
      <button type="button" class="small square" aria-label="Later" onClick={() => onShift(1)}>
        <Icon of={ChevronRight} />
      </button>
      <Segments<Zoom> label="Zoom" options={ZOOMS} chosen={zoom} onChange={onZoom} />
      <span class="narrow-hidden row tight">
        <button type="button" class="small square" aria-label="Zoom in" onClick={() => onScale(1.5)}>
          <Icon of={ZoomIn} />
        </button>
        <button type="button" class="small square" aria-label="Zoom out" onClick={() => onScale(1 / 1.5)}>
          <Icon of={ZoomOut} />
        </button>
      </span>
    </div>
  );
}

export interface RowToolsProps {
  type: string;
  by: string;
  known: readonly Property[];
  filter: Json[];
  region: string | null;
  mine: boolean;
  table: boolean;
  free: Span | null;
}

/** Which rows are looked at, and how. */
export function RowTools({ type, by, known, filter, region, mine, table, free }: RowToolsProps) {
  return (
    <div class="row">
      <Choose
        label="Show"
        value={type}
        onChange={(value) =>
          setParams({ type: value === "physical:host" ? null : value, by: null, req: null, region: null })
        }
      >
        {[...new Set([...shownTypes(), type])].map((one) => (
          <option key={one} value={one}>
            {one === "physical:host" ? typeName(one) : (kindOfType(one)?.nouns ?? typeName(one))}
          </option>
        ))}
      </Choose>
      <Region known={known} region={region} />
      <Choose label="Group by" value={by} onChange={(value) => setParams({ by: value === "" ? "none" : value })}>
        <option value="none">nothing</option>
        {known.map((property) => (
          <option key={property.name} value={property.name}>
            {propertyLabel(property.name)}
          </option>
        ))}
      </Choose>
      <Filter known={known} filter={filter} />
      <button type="button" class="chip" aria-pressed={mine} onClick={() => setParams({ mine: !mine })}>
        Mine only
      </button>
      {free && (
        <button type="button" class="chip" aria-pressed="true" onClick={() => setParams({ free: null })}>
          <Icon of={CalendarCheck} size={16} /> Free {range(free.start, free.end, zone.value, present.value)}
          <Icon of={X} size={15} />
        </button>
      )}
      <button
        type="button"
        class="chip"
        aria-pressed={table}
        onClick={() => setParams({ view: table ? null : "table" })}
      >
        <Icon of={Table2} size={16} /> As a table
      </button>
    </div>
  );
}

/** One type for each kind of resource: types of one kind share its rows. */
function shownTypes(): string[] {
  const served = info.value?.resource_types ?? [];
  if (kinds.value.length === 0) return served.filter((one) => one === "physical:host" || one === "virtual:floatingip");
  return kinds.value.flatMap(({ resource_types: types }) => {
    const first = types.includes("physical:host") ? "physical:host" : types.find((one) => served.includes(one));
    return first && served.includes(first) ? [first] : [];
  });
}

/** Which region is shown, if there is more than one. */
function Region({ known, region }: { known: readonly Property[]; region: string | null }) {
  const values = known.find((one) => one.name === "region")?.values ?? [];
  const found = [...regions(), ...values.map(({ value }) => String(value))];
  const names = new Set([...found, ...(region === null ? [] : [region])]);
  if (names.size < 2 && region === null) return null;
  return (
    <Choose label="Region" value={region ?? ""} onChange={(value) => setParams({ region: value })}>
      <option value="">all</option>
      {[...names].map((name) => (
        <option key={name}>{name}</option>
      ))}
    </Choose>
  );
}

/** What every host has of its own, or what the cloud notes of it, neither groups nor filters. */
export function isUseful({ name, values, truncated }: Property): boolean {
  const noted = [
    "cpu_info",
    "created_at",
    "updated_at",
    "hypervisor_version",
    "id",
    "service_name",
    "status",
    "trust_id",
  ];
  return !truncated && values.length > 0 && values.length <= 40 && !noted.includes(name);
}

/** Groups by what is asked for most. */
export function defaultGroup(known: readonly Property[]): string {
  return (
    ["gpu", "node_type", "availability_zone", "class"].find((name) =>
      known.some((property) => property.name === name),
    ) ?? "none"
  );
}

function Choose(props: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  children: preact.ComponentChildren;
}) {
  return (
    <label class="choose">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.children}
      </select>
    </label>
  );
}

/** One property and its value, as in "gpu = A100". */
function Filter({ known, filter }: { known: readonly Property[]; filter: Json[] }) {
  const choices = known.flatMap((property) =>
    property.values.map(({ value, count }) => ({ name: property.name, value: String(value), count })),
  );
  const chosen = filter[0] === "==" ? `${String(filter[1]).slice(1)}=${filter[2]}` : "";
  return (
    <Choose
      label="Only"
      value={chosen}
      onChange={(value) => {
        const [name, ...rest] = value.split("=");
        setParams({ req: value ? JSON.stringify(["==", `$${name}`, rest.join("=")]) : null });
      }}
    >
      <option value="">all</option>
      {choices.map(({ name, value, count }) => (
        <option key={`${name}=${value}`} value={`${name}=${value}`}>
          {name} = {value} ({count})
        </option>
      ))}
    </Choose>
  );
}

/** Says what the page is for, or what hides everything. */
export function Nothing({ filtered, type }: { filtered: boolean; type: string }) {
  if (filtered) {
    return (
      <Empty
        title="Nothing matches"
        action={
          <button type="button" onClick={() => setParams({ req: null, region: null, mine: null, free: null })}>
            Show all
          </button>
        }
      >
        No resource fits what you chose above.
      </Empty>
    );
  }
  const hosts = type === "physical:host";
  const kind = kindOfType(type);
  const operator = hosts ? may("blazar:oshosts:post") : kind !== undefined && may("blazar:resources:post");
  const nouns = hosts ? nounOf(type) : (kind?.nouns ?? nounOf(type));
  return (
    <Empty
      title={`There are no ${nouns} to reserve yet`}
      action={
        operator ? (
          <a class="button primary" href={hosts ? hrefOf("hosts") : hrefOf("resources", { kind: kind?.name })}>
            Register {nouns}
          </a>
        ) : undefined
      }
    >
      {operator
        ? `Register some ${hosts ? "of the cloud's hypervisors" : ""}; then this page shows when they are free.`.replace(
            " ;",
            ";",
          )
        : "This page shows when resources are free. The operator of this cloud has to register some first."}
    </Empty>
  );
}

/** What the blocks mean; operators see whose they are. */
export function Legend({ owners }: { owners: boolean }) {
  const kinds: [string, string][] = [
    ["own", "own"],
    ["own booked", "booked"],
    owners ? ["lease", "of other projects"] : ["other", "promised to others"],
    ["out", "out of use"],
  ];
  return (
    <ul class="legend" aria-label="What the blocks mean">
      {kinds.map(([kind, text]) => (
        <li key={text}>
          <span
            class={`legend-block ${kind
              .split(" ")
              .map((one) => `block-${one}`)
              .join(" ")}`}
            aria-hidden="true"
          />
          {text}
        </li>
      ))}
      <li class="muted narrow-hidden">
        Drag over free time to book, drag the end of an own lease to extend. Ctrl + wheel zooms.
      </li>
    </ul>
  );
}
