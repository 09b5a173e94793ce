// SPDX-License-Identifier: Apache-2.0
/** For operators: the leases of all projects. */
import { Chips, Empty, PageHead } from "../parts/basics.tsx";
import { Search } from "../parts/search.tsx";
import { place, setParams } from "../router.ts";
import { plural } from "../time/format.ts";
import type { LeaseKind } from "../api/types.ts";
import { KINDS, LIST_FIELDS, kindQuery, kindsOf } from "../words/lease-list.ts";
import { LeaseListView, useLeaseList } from "./lease/list.tsx";

const STATES = [
  { value: "PENDING", text: "booked" },
  { value: "WAITING", text: "waiting in line" },
  { value: "ACTIVE", text: "active" },
  { value: "ERROR", text: "failed" },
  { value: "TIMED_OUT", text: "timed out" },
  { value: "degraded", text: "degraded" },
  { value: "past", text: "past" },
] as const;
type State = (typeof STATES)[number]["value"];

/** Returns what the API is asked for what the address says. */
export function queryOf(params: URLSearchParams): Record<string, string | number | boolean> {
  const states = (params.get("states") ?? "").split(",").filter(Boolean);
  const statuses = states.filter((state) => state === state.toUpperCase());
  const query: Record<string, string | number | boolean> = {
    sort_key: "start_date",
    sort_dir: "desc",
    fields: LIST_FIELDS,
    ...kindQuery(kindsOf(params.get("kind"))),
  };
  if (states.includes("past")) query.state = statuses.length > 0 ? "all" : "past";
  if (statuses.length > 0) {
    if (states.includes("past")) statuses.push("TERMINATED");
    query.status = `in:${statuses.join(",")}`;
  }
  if (states.includes("degraded")) query.degraded = true;
  const project = params.get("project");
  if (project) query.project_id = project;
  const text = params.get("text") ?? "";
  if (text.length >= 2) query.text = text;
  return query;
}

/** The page. */
export function AllLeasesPage() {
  const { params } = place.value;
  const query = queryOf(params);
  const list = useLeaseList(query);
  const count = list.answer?.count;
  const chosen = (params.get("states") ?? "").split(",").filter(Boolean) as State[];
  const filtered = chosen.length > 0 || params.has("kind") || params.has("project") || params.has("text");
  return (
    <>
      <PageHead
        title="All leases"
        lead={count === undefined ? "Of all projects." : `${plural(count, "lease")} of all projects.`}
      />
      <div class="row filters">
        <Search name="text" label="Name" least={2} />
        <Search name="project" label="Project" />
        <Chips
          label="State"
          options={STATES}
          chosen={chosen}
          onChange={(next) => setParams({ states: next.join(",") })}
        />
        <Chips<LeaseKind>
          label="Kind"
          options={KINDS}
          chosen={kindsOf(params.get("kind"))}
          onChange={(next) => setParams({ kind: next.join(",") })}
        />
      </div>
      <LeaseListView list={list} whose="all" empty={<Nothing filtered={filtered} />} />
    </>
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (!filtered) return <Empty title="There are no leases">What users reserve is listed here.</Empty>;
  const action = (
    <button type="button" onClick={() => setParams({ states: null, kind: null, project: null, text: null })}>
      Show all
    </button>
  );
  return (
    <Empty title="No lease matches" action={action}>
      The filters above leave nothing.
    </Empty>
  );
}
