// SPDX-License-Identifier: Apache-2.0
/** The calendar: which resource is free, promised or out of use, over time. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { now as serviceNow } from "../api/client.ts";
import { useLive } from "../api/live.ts";
import { info, may } from "../api/session.ts";
import type { CalendarResource, Capacity, Json, Property } from "../api/types.ts";
import type { Callbacks, Grid, Marked, Pointed } from "../grid/grid.ts";
import type { Block, Group, Row } from "../grid/layout.ts";
import { announce } from "../parts/announce.tsx";
import { Skeleton, Trouble } from "../parts/basics.tsx";
import { place, setParams } from "../router.ts";
import { range } from "../time/format.ts";
import { present } from "../time/now.ts";
import { startOfDay, toWire, zone } from "../time/zone.ts";
import { CalendarReader, Rows, type Span, freeOnly, groupsOf } from "./calendar/data.ts";
import { BlockDialog, Card, MoveEndDialog, requirementOf } from "./calendar/dialogs.tsx";
import { MarkedDialog } from "./calendar/marked.tsx";
import { BY_NAME } from "../words/marked.ts";
import { GridView } from "./calendar/grid-view.tsx";
import { CalendarTable } from "./calendar/table.tsx";
import { Legend, LookTools, Nothing, RowTools, ZOOMS, defaultGroup, isUseful } from "./calendar/tools.tsx";
import { sayCell, sayGroup } from "./calendar/words.ts";

const DAY = 24 * 3_600_000;
const MANY_ROWS = 200;
const EVERY_MS = 30_000;

type Open =
  | { kind: "block"; row: Row; block: Block }
  | { kind: "marked"; marked: Marked; value: string }
  | { kind: "end"; block: Block; end: number }
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

/** Reads resources and capacity of a range, again every 30 seconds. */
function useCalendar(query: Record<string, string>, by: string, step: string) {
  const [resources, setResources] = useState<CalendarResource[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [turn, setTurn] = useState(0);
  const reader = useMemo(() => new CalendarReader(), []);
  const key = JSON.stringify(query);
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      try {
        const all = await reader.read({ ...query, limit: 1000 }, stop.signal, (some) => setResources([...some]));
        setResources((before) =>
          before && before.length === all.length && before.every((one, index) => one === all[index]) ? before : all,
        );
        setError(null);
      } catch (problem) {
        if (!stop.signal.aborted) setError(problem);
      }
      if (!stop.signal.aborted) timer = setTimeout(() => void read(), EVERY_MS);
    };
    void read();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key, turn]);
  const { occupied_by: _, ...rest } = query;
  const capacity = useLive<{ capacity: Capacity }>(by ? "v1/capacity" : null, { ...rest, group_by: by, step }, 30);
  return { resources, error, capacity: capacity?.state.value.data?.capacity ?? null, again: () => setTurn(turn + 1) };
}

/** The page. */
export function CalendarPage() {
  const { zoom, at, type, by: wantedBy, filter: only, region, mine, table, free } = asked();
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
  const query: Record<string, string> = { from: toWire(from), to: toWire(to), resource_type: type };
  if (filter.length > 0) query.requirement = JSON.stringify(filter);
  if (mine) query.occupied_by = "me";
  const ready = properties !== undefined && !properties.loading;
  const { resources, error, capacity, again } = useCalendar(query, ready ? grouped : "", long ? "PT6H" : "PT1H");
  const rows = useRef(new Rows());
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const minute = Math.floor(present.value / 60_000) * 60_000;
  const groups = useMemo(() => {
    if (!resources || !ready) return null;
    const view = {
      from,
      to,
      now: minute,
      project: info.value?.project_id ?? "",
      mayChange: may("blazar:leases:put"),
    };
    const openAtFirst = resources.length <= MANY_ROWS;
    const { rows: shown, of } = freeOnly(rows.current.of(resources, view), resources, free);
    return groupsOf(shown, of, grouped, capacity, (key) => openAtFirst !== toggled.has(key));
  }, [resources, capacity, grouped, ready, toggled, from, to, minute, free?.start, free?.end]);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const [open, setOpen] = useState<Open>(null);
  const [grid, setGrid] = useState<Grid | null>(null);
  const [look, setLook] = useState({ middle: middleOf(at, zoom.span), span: zoom.span as number, turn: 0 });
  const turnTo = (middle: number, span: number) => setLook({ middle, span, turn: look.turn + 1 });
  const callbacks: Callbacks = {
    say: (_row, block, start, end) => sayCell(block, start, end, minute, here, to),
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
    const seen = grid?.seen() ?? { from: base, to: base + zoom.span, span: zoom.span };
    const middle = (seen.from + seen.to) / 2 + direction * seen.span * 0.8;
    if (middle - seen.span / 2 < from || middle + seen.span / 2 > to)
      setParams({ at: toWire(startOfDay(middle, here)) });
    turnTo(middle, seen.span);
  };
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
          onToday={() => {
            setParams({ at: null });
            turnTo(middleOf(null, zoom.span), zoom.span);
          }}
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
        />
      </div>
      {error !== null && <Trouble error={error} retry={again} />}
      {groups === null && error === null && <Skeleton lines={9} />}
      {groups?.length === 0 && <Nothing filtered={filter.length > 0 || mine || free !== null} type={type} />}
      {groups && groups.length > 0 && table && <CalendarTable groups={groups} />}
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
          <Legend owners={may("blazar:calendar:get_owners")} />
        </>
      )}
      {pointed && !open && <Card pointed={pointed} />}
      {open?.kind === "block" && (
        <BlockDialog
          row={open.row}
          block={open.block}
          onClose={close}
          onExtend={() => setOpen({ kind: "end", block: open.block, end: open.block.end + DAY })}
        />
      )}
      {open?.kind === "marked" && (
        <MarkedDialog
          marked={open.marked}
          type={type}
          requirement={requirementOf(filter, grouped, open.value)}
          known={known}
          named={(properties?.data?.properties ?? []).some(({ name }) => name === BY_NAME)}
          onOnlyFree={(window) => {
            setParams({ free: `${toWire(window.start)}/${toWire(window.end)}` });
            close();
          }}
          onClose={close}
        />
      )}
      {open?.kind === "end" && <MoveEndDialog block={open.block} proposed={open.end} onDone={done} onClose={close} />}
    </>
  );
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
