// SPDX-License-Identifier: Apache-2.0
/** From the API's calendar and capacity to rows, groups and heat of the grid. Rows that did not change stay the same objects. */
import { nextPage, address, request, type Options } from "../../api/client.ts";
import type { Block as WireBlock, CalendarPage, CalendarResource, Capacity, Json, Link } from "../../api/types.ts";
import type { Block, Group, Heat, Row } from "../../grid/layout.ts";
import { type Mark, gib, phaseOf } from "../../words/lease.ts";
import { nounOfMeasure } from "../../words/measure.ts";
import { capacityInWords } from "../../words/values.ts";
import { propertyLabel } from "../../words/property.ts";

/** What a block of the grid stands for. */
export interface Source {
  block: WireBlock;
  resource: CalendarResource;
}

const sources = new WeakMap<Block, Source>();

/** Returns the API's block behind a block of the grid. */
export function sourceOf(block: Block): Source | undefined {
  return sources.get(block);
}

/** Returns the API's resource behind a row of the grid. */
export function resourceOf(row: Row): CalendarResource | undefined {
  return row instanceof ResourceRow ? row.resource : undefined;
}

/** Lets blocks that stay stand for what was read last. */
function keepSources(kept: readonly Block[], read: readonly Block[]): void {
  for (const [index, block] of kept.entries()) sources.set(block, sources.get(read[index]!)!);
}

export interface View {
  from: number;
  to: number;
  now: number;
  /** The caller's project: whose leases are drawn as own. */
  project: string;
  /** True if the caller may change leases. */
  mayChange: boolean;
  /** The project whose leases are looked for: those of others are drawn dimmed. */
  only?: string | null;
}

/** Turns resources into rows; remembers them, so that an unchanged resource is the same row again. */
export class Rows {
  readonly #known = new Map<string, ResourceRow>();

  /** Returns the row of each resource, in their order. */
  of(resources: readonly CalendarResource[], view: View): Row[] {
    return resources.map((resource) => {
      const known = this.#known.get(resource.id);
      if (known?.shows(resource, view)) return known;
      const row = new ResourceRow(resource, view, known?.made);
      this.#known.set(resource.id, row);
      return row;
    });
  }
}

/** A row whose blocks are made when they are first asked for: of a thousand rows, few are in sight. */
class ResourceRow implements Row {
  readonly key: string;
  readonly name: string;
  readonly detail: string;
  /** The blocks of before, until its own are made. */
  made: readonly Block[] | undefined;
  #fresh = false;

  constructor(
    readonly resource: CalendarResource,
    private readonly view: View,
    before: readonly Block[] | undefined,
  ) {
    this.key = resource.id;
    this.name = resource.name ?? resource.id;
    this.detail = detailOf(resource);
    this.made = before;
  }

  /** Sorted by start; the same list as before if nothing in it has changed. */
  get blocks(): readonly Block[] {
    if (this.made && this.#fresh) return this.made;
    const blocks = this.resource.blocks.map((block, index) => blockOf(block, index, this.resource, this.view));
    blocks.sort((a, b) => a.start - b.start || a.end - b.end);
    unnameCovered(blocks);
    if (this.made && sameBlocks(this.made, blocks)) keepSources(this.made, blocks);
    else this.made = blocks;
    this.#fresh = true;
    return this.made;
  }

  /** Tells whether it is what would be made of a resource that was not read again. */
  shows(resource: CalendarResource, view: View): boolean {
    const { from, to, now, project, mayChange, only } = this.view;
    return (
      resource === this.resource &&
      from === view.from &&
      to === view.to &&
      // The minute matters: a state such as "starting" follows the clock.
      Math.floor(now / 60_000) === Math.floor(view.now / 60_000) &&
      project === view.project &&
      only === view.only &&
      mayChange === view.mayChange
    );
  }
}

/** Takes the label off what is out of use over a lease that keeps the resource: the lease's own name is read there. */
function unnameCovered(blocks: readonly Block[]): void {
  for (const out of blocks) {
    if (out.kind !== "out") continue;
    const covers = (one: Block) => one.kind !== "out" && one.start < out.end && one.end > out.start;
    if (blocks.some(covers)) out.label = "";
  }
}

function sameBlocks(before: readonly Block[], after: readonly Block[]): boolean {
  if (before.length !== after.length) return false;
  return before.every((one, index) => {
    const other = after[index]!;
    return (
      one.key === other.key &&
      one.start === other.start &&
      one.end === other.end &&
      one.mark === other.mark &&
      one.label === other.label &&
      one.dim === other.dim &&
      one.movable === other.movable
    );
  });
}

/** Returns the main properties of a resource in a few words. */
export function detailOf(
  resource: Pick<CalendarResource, "capacity" | "properties"> & { name?: string | null },
): string {
  const { VCPU: vcpus, MEMORY_MB: memory } = resource.capacity;
  if (!vcpus) return otherDetail(resource);
  const own = ["gpu", "bigmem"].map((name) => resource.properties[name]).filter((value) => value && value !== "true");
  return [...own, `${vcpus} vCPU`, memory ? gib(memory) : ""].filter(Boolean).join(" ");
}

/** Of what is no host: its amounts, and the first of its properties that are short and not its name once more. */
function otherDetail({ capacity, properties, name }: Parameters<typeof detailOf>[0]): string {
  const short = Object.entries(properties)
    .filter(([key, value]) => !["capacity", "gigabytes"].includes(key) && value !== null && String(value) !== name)
    .map(([key, value]) => (Number.isNaN(Number(value)) ? String(value) : `${key} ${value}`))
    .filter((value) => value.length <= 20);
  return [...capacityInWords(capacity), ...short.slice(0, 3)].join(", ");
}

function blockOf(block: WireBlock, index: number, resource: CalendarResource, view: View): Block {
  const start = Date.parse(block.start);
  const end = block.end ? Date.parse(block.end) : view.to;
  const key = block.lease_id
    ? `${block.reservation_id ?? block.lease_id}:${block.kind}`
    : `${block.kind}:${index}:${block.start}`;
  const made: Block = { key, kind: kindOf(block, view), start, end, label: labelOf(block, view) };
  const colour = made.kind === "lease" && block.project_id ? colourOf(block.project_id) : undefined;
  if (colour !== undefined) made.colour = colour;
  const mark = markOf(block, start, view);
  if (mark) made.mark = mark;
  if (isOfOthers(block, view)) made.dim = true;
  if (isMovable(block, made, view)) made.movable = true;
  // A start before the range is not the lease's start.
  if (made.movable && block.status === "PENDING" && start > Math.max(view.now, view.from)) made.startMovable = true;
  sources.set(made, { block, resource });
  return made;
}

/** True of a lease that is none of the project that is looked for; whose it is may not be told. */
function isOfOthers(block: WireBlock, { only = null, project }: View): boolean {
  if (only === null || !["mine", "lease", "other"].includes(block.kind)) return false;
  return (block.project_id ?? (block.kind === "mine" ? project : null)) !== only;
}

const COLOURS = 12;
const colours = new Map<string, number>();

/** Returns the other projects whose leases are told, those with most first; each gets a colour that it keeps. */
export function projectsOf(resources: readonly CalendarResource[], own: string): string[] {
  const counts = new Map<string, number>();
  for (const { blocks } of resources) {
    for (const { kind, project_id: project } of blocks)
      if (kind === "lease" && project && project !== own) counts.set(project, (counts.get(project) ?? 0) + 1);
  }
  const found = [...counts]
    .sort(([a, more], [b, less]) => less - more || a.localeCompare(b))
    .map(([project]) => project);
  for (const project of found) if (!colours.has(project)) colours.set(project, colours.size % COLOURS);
  return found;
}

/** Returns the colour of a project: a number of a class in grid.css. */
export function colourOf(project: string): number | undefined {
  return colours.get(project);
}

/** What rows are looked for: by the name of a host or a lease, and by whose leases they have. */
export interface Wanted {
  text: string;
  project: string | null;
}

/** Tells whether a block is what is looked for. */
export function isWanted(block: Block, { text, project }: Wanted): boolean {
  if (project !== null && sourceOf(block)?.block.project_id !== project) return false;
  return block.label.toLowerCase().includes(text.toLowerCase());
}

/** Keeps the rows that are looked for, with their resources. */
export function wantedOnly<T>(rows: readonly Row[], resources: readonly T[], wanted: Wanted): { rows: Row[]; of: T[] } {
  const { text, project } = wanted;
  const kept = rows.map((row) => {
    const named = row.name.toLowerCase().includes(text.toLowerCase());
    if (project === null && named) return true;
    return row.blocks.some((block) => isWanted(block, named ? { text: "", project } : wanted));
  });
  return { rows: rows.filter((_, index) => kept[index]), of: resources.filter((_, index) => kept[index]) };
}

function kindOf(block: WireBlock, view: View): Block["kind"] {
  if (block.kind === "mine") return "own";
  if (block.kind === "lease") return block.project_id === view.project ? "own" : "lease";
  if (block.kind === "out_of_use") return "out";
  return block.kind;
}

/** The code of the time after the date until which a resource is disabled: nobody can book it before then. */
export const ENABLED_LATER = "to_be_enabled";

/** Reasons enough to be named on the block. */
const OUT_OF_USE: Readonly<Record<string, string>> = {
  failed: "failed",
  maintenance: "maintenance",
  evacuable: "open to all",
  [ENABLED_LATER]: "once enabled",
};

function labelOf(block: WireBlock, view: View): string {
  if (block.kind === "lease" && block.project_id !== view.project) return `${block.project_id}: ${block.name}`;
  if (block.kind === "out_of_use") {
    const named = OUT_OF_USE[block.code ?? ""] ?? "";
    return block.code === ENABLED_LATER ? named : (block.reason ?? named);
  }
  return block.name ?? "";
}

function markOf(block: WireBlock, start: number, view: View): Mark | "later" | null {
  if (block.code === ENABLED_LATER) return "later";
  if (block.kind !== "mine" && block.kind !== "lease") return null;
  return phaseOf({ status: block.status ?? "PENDING" }, start, view.now).mark;
}

function isMovable(block: WireBlock, made: Block, view: View): boolean {
  const live = block.status === "ACTIVE" || block.status === "PENDING";
  // An end beyond the range is not the lease's end.
  return made.kind === "own" && live && view.mayChange && made.end > view.now && made.end < view.to;
}

/** Instants in milliseconds; the end is not part of it. */
export interface Span {
  start: number;
  end: number;
}

/** Keeps the rows, and their resources, that nothing occupies in a window; null keeps all. */
export function freeOnly<T>(
  rows: readonly Row[],
  resources: readonly T[],
  window: Span | null,
): { rows: Row[]; of: T[] } {
  const free = (row: Row) => !window || row.blocks.every((one) => one.end <= window.start || one.start >= window.end);
  return { rows: rows.filter(free), of: resources.filter((_, index) => free(rows[index]!)) };
}

/** Returns the values by which a capacity is grouped; "" is that of resources without one. */
export function groupKeys(capacity: Capacity, by: string): string[] {
  return capacity.series.map((one) => text(one.group[by]));
}

/**
 * Divides rows by the value of a property; with the heat of each group where it is known. `partly`: rows of closed groups
 * are not among them, so that the capacity tells which groups there are and how large. `filtered`: only some of the rows
 * are shown, and the head of a group says of how many, since its heat is that of all.
 */
export function groupsOf(
  rows: readonly Row[],
  resources: readonly CalendarResource[],
  by: string,
  capacity: Capacity | null,
  isOpen: (key: string) => boolean,
  { partly = false, filtered = false }: { partly?: boolean; filtered?: boolean } = {},
): Group[] {
  const found = new Map<string, Row[]>(partly && capacity ? groupKeys(capacity, by).map((key) => [key, []]) : []);
  for (const [index, row] of rows.entries()) {
    const key = by ? text(resources[index]?.properties[by]) : "";
    const list = found.get(key);
    if (list) list.push(row);
    else found.set(key, [row]);
  }
  return [...found]
    .sort(([a], [b]) => (a === "" ? 1 : b === "" ? -1 : a.localeCompare(b, "en", { numeric: true })))
    .map(([key, members]) => {
      const name = !by ? "" : key === "" ? `without ${propertyLabel(by)}` : `${propertyLabel(by)} ${key}`;
      const heat = heatOf(capacity, by, key);
      const all = Math.max(members.length, ...(heat?.noun ? [] : (heat?.total ?? [])));
      const made = { key, name, open: isOpen(key), size: partly ? all : members.length, rows: members, heat };
      return filtered && all > made.size ? { ...made, of: all } : made;
    });
}

function text(value: Json | undefined): string {
  return value === undefined || value === null ? "" : String(value);
}

const heats = new WeakMap<Capacity, Map<string, Heat | null>>();

function heatOf(capacity: Capacity | null, by: string, key: string): Heat | null {
  if (!capacity || !by) return null;
  const known = heats.get(capacity) ?? new Map<string, Heat | null>();
  heats.set(capacity, known);
  if (!known.has(key)) {
    const series = capacity.series.find((one) => text(one.group[by]) === key);
    const { from, step_seconds: step, measure } = capacity;
    const noun = nounOfMeasure(measure);
    const { free, total } = series ?? { free: [], total: [] };
    known.set(key, series ? { from: Date.parse(from), step: step * 1000, free, total, noun } : null);
  }
  return known.get(key)!;
}

interface Page {
  etag: string | null;
  calendar: CalendarPage;
  links?: Link[];
}

/** Reads all pages of the calendar; a page whose tag still holds is not sent again. */
export class CalendarReader {
  #pages = new Map<string, Page>();
  /** Whose resources were read to the end: the question without its range. */
  #known = "";

  /**
   * Returns all resources. `onPage` gets the first of them after each page, so that rows are drawn early; but not if the
   * same resources are read again or for another range: until then the rows of the last time stay, all of them.
   */
  async read(
    query: Options["query"],
    stop: AbortSignal,
    onPage: (resources: CalendarResource[]) => void,
  ): Promise<CalendarResource[]> {
    const resources: CalendarResource[] = [];
    const read = new Map<string, Page>();
    const { from: _, to: __, ...which } = query ?? {};
    const wanted = JSON.stringify(which);
    let next: URL | null = address("v1/calendar", query);
    while (next) {
      const known = this.#pages.get(next.href);
      const answer: { status: number; data: Page | null; etag: string | null } = await request("GET", next, {
        known: known?.etag ?? undefined,
        signal: stop,
      });
      const page: Page = answer.status === 304 && known ? known : { ...answer.data!, etag: answer.etag };
      read.set(next.href, page);
      resources.push(...page.calendar.resources);
      if (wanted !== this.#known) onPage(resources);
      next = nextPage(page.links ?? page.calendar.links, next);
    }
    this.#pages = read;
    this.#known = wanted;
    return resources;
  }
}
