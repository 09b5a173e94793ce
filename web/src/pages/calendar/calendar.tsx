// SPDX-License-Identifier: Apache-2.0
/** The calendar: which resource is free, promised or out of use, over time. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { now as serviceNow } from "../../api/client.ts";
import { useLive } from "../../api/live.ts";
import { info, may } from "../../api/session.ts";
import type { Json, Property } from "../../api/types.ts";
import type { Callbacks, Marked, Pointed } from "../../grid/board.ts";
import type { Grid } from "../../grid/grid.ts";
import type { Block, Group, Row } from "../../grid/layout.ts";
import { announce, note } from "../../parts/announce.tsx";
import { Skeleton, Trouble } from "../../parts/basics.tsx";
import { go, place, setParams } from "../../router.ts";
import { range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { startOfDay, toWire, zone } from "../../time/zone.ts";
import { Rows, type Span, freeOnly, groupsOf, isWanted, projectsOf, wantedOnly } from "./data.ts";
import { BlockDialog, Card, ReadLease, requirementOf } from "./dialogs.tsx";
import { MarkedDialog } from "./marked.tsx";
import { BY_NAME } from "../../words/marked.ts";
import { GridView } from "./grid-view.tsx";
import { MANY_ROWS, useCalendar } from "./reading.ts";
import { CalendarTable } from "./table.tsx";
import { Legend, LookTools, Nothing, RowTools, ZOOMS, defaultGroup, isUseful } from "./tools.tsx";
import { useShortcuts } from "./shortcuts.ts";
import { sayCell, sayGroup, whyStuck } from "./words.ts";
import { ChangeDialog, ExtendDialog } from "../leases/actions.tsx";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

type Open =
  | { kind: "block"; row: Row; block: Block }
  | { kind: "marked"; marked: Marked; value: string }
  | { kind: "end"; block: Block; end: number }
  | { kind: "move"; block: Block; start: number; end: number }
  | null;

/** What of the page is in the address. */
function asked() {
  const { params } = place.value;
  const zoom = ZOOMS.find((one) => one.value === params.get("zoom")) ?? ZOOMS[2];
  const at = Date.parse(params.get("at") ?? "");
  return {
    zoom,
    at: Number.isNaN(at) ? null : at,
    type: params.get("type") ?? "physical:host",
    by: params.get("by"),
    filter: filterOf(params.get("req")),
    region: params.get("region"),
    mine: params.get("mine") === "1",
    table: params.get("view") === "table",
    free: windowOf(params.get("free")),
    wanted: { text: params.get("q") ?? "", project: params.get("project") },
  };
}

/** Reads "START/END". */
function windowOf(text: string | null): Span | null {
  const [start, end] = (text ?? "").split("/").map((one) => Date.parse(one));
  return start && end && end > start ? { start, end } : null;
}

/** Returns what meets two requirements; [] asks for nothing. */
function bothOf(one: Json[], other: Json[]): Json[] {
  return one.length > 0 ? ["and", one, other] : other;
}

function filterOf(text: string | null): Json[] {
  try {
    const value: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

/** The page. */
export function CalendarPage() {
  const { zoom, at, type, by: wantedBy, filter: only, region, mine, table, free, wanted } = asked();
  const filter = region === null ? only : bothOf(only, ["==", "$region", region]);
  const properties = useLive<{ properties: Property[] }>("v1/properties", { resource_type: type }, 300)?.state.value;
  const known = (properties?.data?.properties ?? []).filter(isUseful);
  const by = wantedBy ?? defaultGroup(known);
  const grouped = by === "none" ? "" : by;
  const here = zone.value;
  const base = startOfDay(at ?? serviceNow(), here);
  const long = zoom.value === "quarter";
  const from = startOfDay(base, here, long ? -14 : -7);
  const to = startOfDay(base, here, long ? 100 : 35);
  const read = { from, to };
  const listed = listedOf(at, zoom.span, here);
  const filtered = mine || free !== null || wanted.text !== "" || wanted.project !== null;
  const query: Record<string, string> = { from: toWire(from), to: toWire(to), resource_type: type };
  if (filter.length > 0) query.requirement = JSON.stringify(filter);
  if (mine) query.occupied_by = "me";
  const ready = wantedBy === "none" || (properties !== undefined && !properties.loading);
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const { resources, partly, error, capacity, again } = useCalendar({
    query,
    filter,
    by: ready ? grouped : null,
    step: long ? "PT6H" : "PT1H",
    whole: table || free !== null || wanted.text !== "" || wanted.project !== null,
    toggled,
  });
  const projects = useMemo(() => projectsOf(resources ?? [], info.value?.project_id ?? ""), [resources]);
  const rows = useRef(new Rows());
  const minute = Math.floor(present.value / 60_000) * 60_000;
  const groups = useMemo(() => {
    if (!resources || !ready) return null;
    const view = {
      from,
      to,
      now: minute,
      project: info.value?.project_id ?? "",
      mayChange: may("blazar:leases:put"),
      only: wanted.project,
    };
    const openAtFirst = !partly && resources.length <= MANY_ROWS;
    const all = freeOnly(rows.current.of(resources, view), resources, free);
    const { rows: shown, of } = wantedOnly(all.rows, all.of, wanted);
    return groupsOf(shown, of, grouped, capacity, (key) => openAtFirst !== toggled.has(key), {
      partly,
      filtered,
    });
  }, [
    resources,
    partly,
    capacity,
    grouped,
    ready,
    toggled,
    from,
    to,
    minute,
    free?.start,
    free?.end,
    wanted.text,
    wanted.project,
    filtered,
  ]);
  const heat = groups?.find((group) => group.heat !== null)?.heat;
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const [open, setOpen] = useState<Open>(null);
  const [grid, setGrid] = useState<Grid | null>(null);
  const [look, setLook] = useState({ middle: middleOf(at, zoom.span), span: zoom.span as number, turn: 0 });
  const turnTo = (middle: number, span: number) => setLook({ middle, span, turn: look.turn + 1 });
  // What is found may lie outside of what is seen.
  useEffect(() => {
    if (!grid || !groups || wanted.text === "") return;
    const { from: first, to: last, span } = grid.seen();
    const found = groups.flatMap((group) =>
      group.rows.flatMap((row) => row.blocks.filter((one) => isWanted(one, wanted))),
    );
    if (found.length === 0 || found.some((one) => one.start < last && one.end > first)) return;
    turnTo(found[0]!.start + span * 0.4, span);
  }, [wanted.text, groups !== null, grid]);
  const goTo = (at: number) => {
    setParams({ at: toWire(at) });
    turnTo(middleOf(at, look.span), look.span);
  };
  const callbacks: Callbacks = {
    say: (_row, block, start, end) => sayCell(block, start, end, minute, here, read),
    sayGroup: (group) => sayGroup(group, minute, here),
    sayWindow: (start, end) => range(start, end, here, minute),
    onPoint: setPointed,
    onOpen: (row, block) => {
      setPointed(null);
      setOpen({ kind: "block", row, block });
    },
    onMark: (marked) => {
      setPointed(null);
      setOpen({
        kind: "marked",
        marked,
        value: groups?.find((group) => group.rows.includes(marked.rows[0]!))?.key ?? "",
      });
    },
    onExtend: (_row, block, end) => {
      setPointed(null);
      setOpen({ kind: "end", block, end });
    },
    onMove: (_row, block, start, end) => {
      setPointed(null);
      setOpen({ kind: "move", block, start, end });
    },
    onStuck: (block) => note(whyStuck(block, minute)),
    onToggle: (group: Group) => {
      const next = new Set(toggled);
      if (!next.delete(group.key)) next.add(group.key);
      setToggled(next);
      announce(`${group.name}: ${group.open ? "closed" : `${group.size} rows shown`}`);
    },
    onLook: (seenFrom, seenTo) => readOn(seenFrom, seenTo, from, to),
    announce,
  };
  const shift = (direction: -1 | 1) => {
    if (table) {
      const { from: first, to: last } = listed;
      const days = Math.round(zoom.span / DAY);
      const before = days < 1 ? first - zoom.span : startOfDay(first, here, -days);
      setParams({ at: toWire(direction > 0 ? last : before) });
      return;
    }
    const seen = grid?.seen() ?? { from: base, to: base + zoom.span, span: zoom.span };
    const middle = (seen.from + seen.to) / 2 + direction * seen.span * 0.8;
    if (middle - seen.span / 2 < from || middle + seen.span / 2 > to)
      setParams({ at: toWire(startOfDay(middle, here)) });
    turnTo(middle, seen.span);
  };
  const toToday = () => {
    setParams({ at: null });
    turnTo(middleOf(null, zoom.span), zoom.span);
  };
  useShortcuts({ t: toToday, ArrowLeft: () => shift(-1), ArrowRight: () => shift(1), n: () => go("") });
  const done = () => {
    setOpen(null);
    again();
  };
  const close = () => setOpen(null);
  return (
    <>
      <h1 class="visually-hidden">Calendar</h1>
      <div class="calendar-tools">
        <LookTools
          zoom={zoom.value}
          onShift={shift}
          onToday={toToday}
          onGoTo={goTo}
          onZoom={(value) => {
            const span = ZOOMS.find((one) => one.value === value)!.span;
            const seen = grid?.seen();
            const nowSeen = !seen || (seen.from <= minute && minute <= seen.to);
            setParams({ zoom: value === "week" ? null : value });
            turnTo(nowSeen ? middleOf(at, span) : (seen.from + seen.to) / 2, span);
          }}
          onScale={(factor) => grid?.zoom(factor)}
        />
        <RowTools
          type={type}
          by={by}
          known={known}
          filter={only}
          region={region}
          mine={mine}
          table={table}
          free={free}
          projects={projects}
          project={wanted.project}
        />
      </div>
      {error !== null && <Trouble error={error} retry={again} />}
      {groups === null && error === null && <Skeleton lines={9} />}
      {groups?.length === 0 && <Nothing filtered={filtered || filter.length > 0} type={type} />}
      {groups && groups.length > 0 && table && (
        <CalendarTable groups={groups} read={read} seen={listed} project={wanted.project} />
      )}
      {groups && groups.length > 0 && !table && (
        <>
          <GridView
            label="Calendar of resources. Arrow keys move, Enter opens or marks."
            groups={groups}
            settings={{ from, to, zone: here, now: minute }}
            look={look}
            callbacks={callbacks}
            onGrid={setGrid}
          />
          <Legend
            owners={may("blazar:calendar:get_owners")}
            hours={heat ? heat.step / HOUR : null}
            noun={heat?.noun}
            projects={projects}
            project={wanted.project}
          />
        </>
      )}
      {pointed && !open && <Card pointed={pointed} read={read} />}
      {open?.kind === "block" && (
        <BlockDialog
          row={open.row}
          block={open.block}
          read={read}
          onClose={close}
          onExtend={() => setOpen({ kind: "end", block: open.block, end: open.block.end + DAY })}
          onMove={() => setOpen({ ...open.block, kind: "move", block: open.block })}
        />
      )}
      {open?.kind === "marked" && (
        <MarkedDialog
          marked={open.marked}
          type={type}
          requirement={requirementOf(filter, type === "physical:host" ? "" : grouped, open.value)}
          all={partly || mine ? null : resources}
          known={known}
          named={(properties?.data?.properties ?? []).some(({ name }) => name === BY_NAME)}
          onOnlyFree={(window) => {
            setParams({ free: `${toWire(window.start)}/${toWire(window.end)}` });
            close();
          }}
          onClose={close}
        />
      )}
      {open?.kind === "end" && (
        <ReadLease block={open.block} title="Move the end" onClose={close}>
          {(found) => <ExtendDialog {...found} proposedEnd={open.end} onDone={done} onClose={close} />}
        </ReadLease>
      )}
      {open?.kind === "move" && (
        <ReadLease block={open.block} title="Move" onClose={close}>
          {(found) => <ChangeDialog {...found} proposed={open} onDone={done} onClose={close} />}
        </ReadLease>
      )}
    </>
  );
}

/** Returns which time the table lists: from now or the chosen day on, in whole days where it is days. */
function listedOf(at: number | null, span: number, here: string): { from: number; to: number } {
  const first = at ?? serviceNow();
  const from = span < DAY ? Math.floor(first / HOUR) * HOUR : startOfDay(first, here);
  const to = span < DAY ? from + span : startOfDay(from, here, Math.round(span / DAY));
  return { from, to };
}

/** Keeps in the address what day is looked at, once it is not the present. */
function readOn(seenFrom: number, seenTo: number, from: number, to: number): void {
  const middle = (seenFrom + seenTo) / 2;
  const near = seenFrom - from < (seenTo - seenFrom) * 0.05 || to - seenTo < (seenTo - seenFrom) * 0.05;
  if (!near || seenTo - seenFrom > (to - from) * 0.8) return;
  // The end of what was read is in sight: read on around it.
  setParams({ at: toWire(startOfDay(middle, zone.value)) });
}

/** The present stands at a tenth of the window. */
function middleOf(at: number | null, span: number): number {
  return (at ?? serviceNow()) + span * 0.4;
}
