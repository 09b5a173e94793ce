// SPDX-License-Identifier: Apache-2.0
/**
 * What is read of the calendar. Of few resources all; of many that are in groups only the rows of open groups: closed
 * ones show their heat, which comes from the capacity.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLive } from "../../api/live.ts";
import type { CalendarPage, CalendarResource, Capacity, Json } from "../../api/types.ts";
import { sharedUnits } from "../../words/measure.ts";
import { CalendarReader, groupKeys } from "./data.ts";

/** With more rows the groups are closed at first. */
export const MANY_ROWS = 200;
const EVERY_MS = 30_000;

export interface Asked {
  query: Record<string, string>;
  /** The filter in the query, as JSON. */
  filter: Json[];
  /** By what rows are grouped; "" for nothing, null while it is not known. */
  by: string | null;
  step: string;
  /** All rows are needed: what is chosen of them is not what the service knows. */
  whole: boolean;
  /** The keys of groups that were opened or closed by hand. */
  toggled: ReadonlySet<string>;
}

export interface Reading {
  /** All resources, or those of open groups; null until there are some to show. */
  resources: CalendarResource[] | null;
  /** True if the resources are those of open groups only. */
  partly: boolean;
  capacity: Capacity | null;
  error: unknown;
  again: () => void;
}

/** Returns the question for the rows of a group: "" is the group of those without the property. */
export function ofGroup(filter: Json[], by: string, key: string, keys: readonly string[]): Json[] {
  const named = keys.filter((one) => one !== "");
  const own: Json[] = key === "" ? ["not", ["in", `$${by}`, named]] : ["==", `$${by}`, key];
  if (key === "" && named.length === 0) return filter;
  return filter.length > 0 ? ["and", filter, own] : own;
}

/** Reads resources and capacity of a range, again every 30 seconds. */
export function useCalendar({ query, filter, by, step, whole, toggled }: Asked): Reading {
  const [turn, setTurn] = useState(0);
  const { occupied_by: mine, ...rest } = query;
  const units = sharedUnits(query.resource_type ?? "");
  const first = useLive<{ calendar: CalendarPage }>("v1/calendar", { ...query, limit: 1, with_count: true }, 300);
  const capacity = useLive<{ capacity: Capacity }>(
    by ? "v1/capacity" : null,
    { ...rest, group_by: by ?? "", step, ...(units ? { measure: units.of } : {}) },
    30,
  );
  // In another range there are as many resources, in the same groups: what is open stays open while it is read.
  const { from: _, to: __, ...which } = query;
  const asked = JSON.stringify([which, by]);
  const counted = useLast(asked, first?.state.value.data?.calendar.count);
  const heat = useLast(asked, capacity?.state.value.data?.capacity) ?? null;
  // Heads of groups that count units do not tell how many resources there are: all of these are read.
  const isPartly =
    Boolean(by) && !whole && units === null && mine === undefined && counted !== undefined && counted > MANY_ROWS;
  const keys = isPartly && heat && by ? groupKeys(heat, by) : [];
  const open = keys.filter((key) => toggled.has(key));
  const questions = useMemo(() => {
    if (by === null || (by !== "" && counted === undefined)) return null;
    if (!isPartly) return [query];
    return open.map((key) => ({ ...query, requirement: JSON.stringify(ofGroup(filter, by, key, keys)) }));
  }, [JSON.stringify(query), by, counted === undefined, isPartly, open.join("\n"), keys.join("\n")]);
  const { resources, error } = useResources(questions, turn);
  return {
    resources: isPartly && heat === null ? null : resources,
    partly: isPartly,
    capacity: heat,
    error: error ?? first?.state.value.error ?? null,
    again: () => {
      setTurn(turn + 1);
      void capacity?.read();
    },
  };
}

/** Returns what is known; while it is not, what was known last of the same. */
function useLast<T>(of: string, known: T | undefined): T | undefined {
  const last = useRef<{ of: string; known: T } | null>(null);
  if (known !== undefined) last.current = { of, known };
  return last.current?.of === of ? last.current.known : undefined;
}

/** Reads the answers to some questions, one after the other; what was read before stays until it is read again. */
function useResources(questions: Record<string, string>[] | null, turn: number) {
  const [resources, setResources] = useState<CalendarResource[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const readers = useMemo(() => new Map<string, CalendarReader>(), []);
  useEffect(() => {
    if (questions === null) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      try {
        const before: CalendarResource[] = [];
        for (const question of questions) {
          // A question is the same in another range: its rows stay until they are read.
          const { from: _, to: __, ...which } = question;
          const key = JSON.stringify(which);
          const reader = readers.get(key) ?? new CalendarReader();
          readers.set(key, reader);
          const all = await reader.read({ ...question, limit: MANY_ROWS }, stop.signal, (some) =>
            setResources([...before, ...some]),
          );
          before.push(...all);
        }
        setResources((known) => (known && sameItems(known, before) ? known : before));
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
  }, [questions, turn]);
  return { resources, error };
}

function sameItems<T>(one: readonly T[], other: readonly T[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}
