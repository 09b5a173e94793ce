// SPDX-License-Identifier: Apache-2.0
/** For operators: the leases of all projects, by time and state; the address says which, so that numbers lead to them. */
import { ArrowDown, ArrowUp } from "lucide";
import { useState } from "preact/hooks";
import { readAll } from "../../api/client.ts";
import { useLive } from "../../api/live.ts";
import { BusyButton, Chips, Empty, PageHead, Trouble } from "../../parts/basics.tsx";
import { Choose, Filters, Meanings } from "../../parts/filters.tsx";
import { Icon } from "../../parts/icon.tsx";
import { saveCsv } from "../../parts/save.ts";
import { Search } from "../../parts/search.tsx";
import { place, setParams } from "../../router.ts";
import { plural } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import type { Lease, LeaseKind } from "../../api/types.ts";
import {
  type Asked,
  EDGES,
  type Query,
  ORDERS,
  STATES,
  type State,
  TIMES,
  askedOf,
  hasSpan,
  ownersOf,
  queryOf,
} from "../../words/all-leases.ts";
import { CSV_FIELDS, csvOf } from "../../words/lease-csv.ts";
import { KINDS, FILTERS as WORDS, kindsOf } from "../../words/lease-list.ts";
import { LeaseListView, useLeaseList } from "./list.tsx";

/** What a filter keeps in the address. */
const FILTERS = ["states", "kind", "project", "user", "text", "when", "by", "from", "to"] as const;

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
      >
        <Download query={queryOf(params, present.value, zone.value)} />
      </PageHead>
      <Filters active={active}>
        <Times asked={asked} params={params} />
        <Chips<State>
          label="State"
          options={STATES}
          chosen={asked.states}
          onChange={(next) => setParams({ states: next.join(",") })}
        />
        <Search name="text" label="Name" least={2} />
        <Owners />
        <Chips<LeaseKind>
          label="Kind"
          options={KINDS}
          chosen={kindsOf(params.get("kind"))}
          onChange={(next) => setParams({ kind: next.join(",") })}
        />
        <Meanings of={[...WORDS, ...KINDS]} />
      </Filters>
      <LeaseListView list={list} whose="all" empty={<Nothing filtered={active > 0} />} />
    </>
  );
}

/** Of so many leases the projects and users are proposed. */
const LOOKED_AT = 1000;

/** Whose leases are looked at: each is named as it is, so that those who have leases are proposed. */
function Owners() {
  const query = { fields: "project_id,user_id", limit: LOOKED_AT };
  const { data } = useLive<{ leases: Lease[] }>("v1/leases", query, 300)!.state.value;
  const { projects, users } = ownersOf(data?.leases ?? []);
  return (
    <>
      <Search name="project" label="Project" options={projects} />
      <Search name="user" label="User" options={users} />
    </>
  );
}

/** More would not fit into the memory of a browser with ease. */
const MOST = 100_000;

/** Saves what the filters leave as a table for spreadsheets. */
function Download({ query }: { query: Query }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      const leases = await readAll<Lease>("v1/leases", "leases", { ...query, fields: CSV_FIELDS, limit: 1000 }, MOST);
      saveCsv(csvOf(leases), "leases.csv");
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return (
    <>
      <BusyButton type="button" busy={busy} doing="Reading…" onClick={() => void save()}>
        Save as CSV
      </BusyButton>
      {error !== null && <Trouble error={error} />}
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
