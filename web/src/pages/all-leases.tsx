// SPDX-License-Identifier: Apache-2.0
/** For operators: the leases of all projects, by time and state; the address says which, so that numbers lead to them. */
import { ArrowDown, ArrowUp } from "lucide";
import { Chips, Empty, PageHead } from "../parts/basics.tsx";
import { Choose, Filters, Meanings } from "../parts/filters.tsx";
import { Icon } from "../parts/icon.tsx";
import { Search } from "../parts/search.tsx";
import { place, setParams } from "../router.ts";
import { plural } from "../time/format.ts";
import { present } from "../time/now.ts";
import { zone } from "../time/zone.ts";
import type { LeaseKind } from "../api/types.ts";
import {
  type Asked,
  EDGES,
  ORDERS,
  STATES,
  type State,
  TIMES,
  askedOf,
  hasSpan,
  queryOf,
} from "../words/all-leases.ts";
import { KINDS, kindsOf } from "../words/lease-list.ts";
import { LeaseListView, useLeaseList } from "./lease/list.tsx";

/** What a filter keeps in the address. */
const FILTERS = ["states", "kind", "project", "text", "when", "by", "from", "to"] as const;

/** The page. */
export function AllLeasesPage() {
  const { params } = place.value;
  const asked = askedOf(params);
  const list = useLeaseList(queryOf(params, present.value, zone.value));
  const count = list.answer?.count;
  const active = FILTERS.filter((name) => params.has(name) && !["by", "from", "to"].includes(name)).length;
  return (
    <>
      <PageHead
        title="All leases"
        lead={
          count === undefined ? "Of all projects." : `${plural(count, "lease")}${active > 0 ? "" : " of all projects"}.`
        }
      />
      <Filters active={active}>
        <Times asked={asked} params={params} />
        <Chips<State>
          label="State"
          options={STATES}
          chosen={asked.states}
          onChange={(next) => setParams({ states: next.join(",") })}
        />
        <Search name="text" label="Name" least={2} />
        <Search name="project" label="Project" />
        <Chips<LeaseKind>
          label="Kind"
          options={KINDS}
          chosen={kindsOf(params.get("kind"))}
          onChange={(next) => setParams({ kind: next.join(",") })}
        />
        <Meanings of={KINDS} />
      </Filters>
      <LeaseListView list={list} whose="all" empty={<Nothing filtered={active > 0} />} />
    </>
  );
}

/** Which time is looked at, and in which order. */
function Times({ asked, params }: { asked: Asked; params: URLSearchParams }) {
  const day = (name: "from" | "to", label: string) => (
    <label class="choose">
      <span>{label}</span>
      <input
        type="date"
        value={params.get(name) ?? ""}
        onChange={(event) => setParams({ [name]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <>
      <Choose
        label="Time"
        options={TIMES}
        chosen={asked.time}
        onChange={(when) => setParams({ when, by: null, from: null, to: null })}
      />
      {asked.time === "range" && (
        <>
          {day("from", "from")}
          {day("to", "to")}
        </>
      )}
      {hasSpan(asked.time) && (
        <Choose label="in it lies" options={EDGES} chosen={asked.edge} onChange={(by) => setParams({ by })} />
      )}
      <Choose
        label="Sort by"
        options={ORDERS}
        chosen={asked.order}
        onChange={(sort) => setParams({ sort, dir: null })}
      />
      <button type="button" class="small" onClick={() => setParams({ dir: asked.descending ? "asc" : "desc" })}>
        <Icon of={asked.descending ? ArrowDown : ArrowUp} /> {firstOf(asked)}
      </button>
    </>
  );
}

/** What stands first in the list. */
function firstOf({ order, descending }: Asked): string {
  if (order === "name") return descending ? "Z first" : "A first";
  return descending ? "the latest first" : "the earliest first";
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (!filtered) return <Empty title="There are no leases">What users reserve is listed here.</Empty>;
  const action = (
    <button type="button" onClick={() => setParams(Object.fromEntries(FILTERS.map((name) => [name, null])))}>
      Show all
    </button>
  );
  return (
    <Empty title="No lease matches" action={action}>
      The filters above leave nothing.
    </Empty>
  );
}
