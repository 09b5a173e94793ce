// SPDX-License-Identifier: Apache-2.0
/** What stands around the grid: which time and which rows are shown, what the blocks mean, what to do if there are none. */
import { CalendarCheck, ChevronLeft, ChevronRight, SlidersHorizontal, Table2, X, ZoomIn, ZoomOut } from "lucide";
import { useState } from "preact/hooks";
import { kindOfType, kinds, regions } from "../../api/kinds.ts";
import { info, may } from "../../api/session.ts";
import type { Json, Property } from "../../api/types.ts";
import { Empty, Segments } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Search } from "../../parts/search.tsx";
import { hrefOf, setParams } from "../../router.ts";
import { range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { fromWall, zone } from "../../time/zone.ts";
import { inWords, nounOf, typeName } from "../../words/lease.ts";
import { type Span, colourOf } from "./data.ts";
import { isTechnical, propertyLabel } from "../../words/property.ts";

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
  onGoTo: (at: number) => void;
  onZoom: (zoom: Zoom) => void;
  onScale: (factor: number) => void;
}

/** Which time is looked at. */
export function LookTools({ zoom, onShift, onToday, onGoTo, onZoom, onScale }: LookProps) {
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
      <input
        type="date"
        class="small"
        aria-label="Go to a date"
        onChange={(event) => {
          const day = fromWall(`${event.currentTarget.value}T00:00`, zone.value);
          if (day) onGoTo(day.at);
        }}
      />
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
  /** Whose leases are shown, if that is told. */
  projects: readonly string[];
  project: string | null;
}

/** Which rows are looked at, and how. */
export function RowTools(props: RowToolsProps) {
  const { type, by, known, filter, region, mine, table, free, projects, project } = props;
  const [open, setOpen] = useState(false);
  return (
    <div class={open ? "row row-tools open" : "row row-tools"}>
      <Search name="q" label="Find" />
      <button type="button" class="chip more-tools" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon of={SlidersHorizontal} size={16} /> Rows
      </button>
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
      {(projects.length > 0 || project !== null) && (
        <Choose label="Project" value={project ?? ""} onChange={(value) => setParams({ project: value })}>
          <option value="">all</option>
          {[...new Set([...projects, ...(project === null ? [] : [project])])].sort().map((one) => (
            <option key={one}>{one}</option>
          ))}
        </Choose>
      )}
      <button type="button" class="chip" aria-pressed={mine} onClick={() => setParams({ mine: mine ? null : 1 })}>
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
  return !truncated && values.length > 0 && values.length <= 40 && !isTechnical(name);
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

/** Stands for a filter that is more than one property and its value. */
const FURTHER = "?";

/** One property and its value, as in "gpu = A100". */
function Filter({ known, filter }: { known: readonly Property[]; filter: Json[] }) {
  const choices = known.flatMap((property) =>
    property.values.map(({ value, count }) => ({ name: property.name, value: String(value), count })),
  );
  const chosen = filter[0] === "==" ? `${String(filter[1]).slice(1)}=${filter[2]}` : filter.length > 0 ? FURTHER : "";
  const listed = choices.some(({ name, value }) => `${name}=${value}` === chosen);
  return (
    <Choose
      label="Only"
      value={chosen}
      onChange={(value) => {
        if (value === FURTHER) return;
        const [name, ...rest] = value.split("=");
        setParams({ req: value ? JSON.stringify(["==", `$${name}`, rest.join("=")]) : null });
      }}
    >
      <option value="">all</option>
      {/* What another page has asked for is shown, too. */}
      {chosen !== "" && !listed && <option value={chosen}>{inWords([filter])}</option>}
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
          <button
            type="button"
            onClick={() => setParams({ req: null, region: null, mine: null, free: null, q: null, project: null })}
          >
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
  const named = hosts ? "host" : kind?.name;
  const operator = named !== undefined && may("blazar:resources:post", named);
  const nouns = hosts ? nounOf(type) : (kind?.nouns ?? nounOf(type));
  return (
    <Empty
      title={`There are no ${nouns} to reserve yet`}
      action={
        operator ? (
          <a
            class="button primary"
            href={hosts ? hrefOf("hosts", { register: 1 }) : hrefOf("resources", { kind: kind?.name, register: 1 })}
          >
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

/** Says what the numbers in the heads of groups are. */
function numbersInWords(hours: number, noun: string | undefined): string {
  const step = hours === 1 ? "each hour" : `each ${hours} hours`;
  return `Numbers: how many ${noun ? `${noun} ` : ""}are free, the fewest in ${step}; “3–8”: it changes, at least 3 are free all the time.`;
}

const MOST_IN_LEGEND = 12;

interface LegendProps {
  owners: boolean;
  /** Of how many hours each step of the heads of groups is; null: they have no numbers. */
  hours: number | null;
  /** What they count, if not resources. */
  noun: string | undefined;
  projects: readonly string[];
  project: string | null;
}

/** What the blocks mean. Operators see whose they are: by the name on each block, by its colour, and here. */
export function Legend({ owners, hours, noun, projects, project }: LegendProps) {
  const meanings: [string, string][] = [
    ["own", "own"],
    ["own booked", "booked"],
    ["own past", "past"],
    ...(owners ? [] : [["other", "promised to others"] as [string, string]]),
    ["out", "out of use"],
    ["out later", "takes new leases once enabled"],
  ];
  return (
    <ul class="legend" aria-label="What the blocks mean">
      {meanings.map(([kind, text]) => (
        <li key={text}>
          <Sample of={kind} />
          {text}
        </li>
      ))}
      {projects.slice(0, MOST_IN_LEGEND).map((one) => (
        <li key={one}>
          <button
            type="button"
            class="quiet small"
            aria-pressed={one === project}
            title={
              one === project ? "Show all projects" : `Show only rows with leases of ${one}, those of others dimmed`
            }
            onClick={() => setParams({ project: one === project ? null : one })}
          >
            <Sample of="lease" colour={colourOf(one)} /> {one}
          </button>
        </li>
      ))}
      {hours !== null && <li class="muted">{numbersInWords(hours, noun)}</li>}
      <li class="muted narrow-hidden">
        Drag over free time to book, an own lease or its edges to move it. Keys: T today, ← → earlier and later, N
        books; in the grid M moves a lease, S its start. Ctrl + wheel zooms.
      </li>
    </ul>
  );
}

function Sample({ of, colour }: { of: string; colour?: number | undefined }) {
  const kinds = of.split(" ").map((one) => `block-${one}`);
  const whose = colour === undefined ? [] : [`colour-${colour}`];
  return <span class={["legend-block", ...kinds, ...whose].join(" ")} aria-hidden="true" />;
}
