// SPDX-License-Identifier: Apache-2.0
/** My leases: those that run and come, or the past ones; what is offered to the project; links for calendars. */
import { CalendarPlus } from "lucide";
import { useState } from "preact/hooks";
import { info, may, session } from "../../api/session.ts";
import { Chips, Empty, PageHead, Segments } from "../../parts/basics.tsx";
import { Filters, Meanings } from "../../parts/filters.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Search } from "../../parts/search.tsx";
import { hrefOf, place, setParams } from "../../router.ts";
import type { LeaseKind } from "../../api/types.ts";
import { FILTERS, type Filter, KINDS, filtersOf, kindsOf, queryOf } from "../../words/lease-list.ts";
import { FeedsDialog } from "../feeds.tsx";
import { LeaseListView, useLeaseList } from "./list.tsx";
import { Offers } from "../surgery/offers.tsx";

const LONGEST = 24;

/** The page. `state`: current or past; `show` and `kind`: filters; `whose`: the user's own or the project's; `text`. */
export function LeasesPage() {
  const { params } = place.value;
  const past = params.get("state") === "past";
  const whose = params.get("whose") === "project" ? "project" : "mine";
  const filters = filtersOf(params.get("show"));
  const kinds = kindsOf(params.get("kind"));
  const text = params.get("text") ?? "";
  const [feeds, setFeeds] = useState(false);
  const query = {
    ...queryOf(past, filters, text, kinds),
    // Operators see all projects unless one is named.
    project_id: info.value?.project_id ?? session.value?.project?.id,
    user_id: whose === "mine" ? (info.value?.user_id ?? session.value?.user?.id) : undefined,
  };
  const list = useLeaseList(query);
  const name = session.value?.project?.name ?? "the project";
  // A name may have hundreds of letters.
  const project = name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
  const filtered = filters.length > 0 || kinds.length > 0 || text !== "";
  return (
    <>
      <PageHead title="My leases">
        {may("blazar:feeds:post") && (
          <button type="button" onClick={() => setFeeds(true)}>
            <Icon of={CalendarPlus} /> Calendar links
          </button>
        )}
        <a class="button primary" href={hrefOf("")}>
          Find a time
        </a>
      </PageHead>
      <Offers onTaken={list.again} />
      <div class="row lease-filters">
        <Segments
          label="Which time"
          options={[
            { value: "current", text: "Now and later" },
            { value: "past", text: "Past" },
          ]}
          chosen={past ? "past" : "current"}
          onChange={(state) => setParams({ state: state === "past" ? state : null, show: null })}
        />
        <Segments
          label="Whose"
          options={[
            { value: "mine", text: "Mine" },
            { value: "project", text: `All of ${project}` },
          ]}
          chosen={whose}
          onChange={(next) => setParams({ whose: next === "project" ? next : null })}
        />
      </div>
      <Filters active={filters.length + kinds.length + Number(text !== "")}>
        {!past && (
          <Chips<Filter>
            label="Only these"
            options={FILTERS}
            chosen={filters}
            onChange={(chosen) => setParams({ show: chosen.join(",") })}
          />
        )}
        <Chips<LeaseKind>
          label="Only of these kinds"
          options={KINDS}
          chosen={kinds}
          onChange={(chosen) => setParams({ kind: chosen.join(",") })}
        />
        <Search name="text" label="Name" least={2} />
        <Meanings of={[...(past ? [] : FILTERS), ...KINDS]} />
      </Filters>
      <LeaseListView
        list={list}
        whose={whose}
        empty={<Nothing past={past} filtered={filtered} whose={whose} project={project} />}
      />
      {feeds && <FeedsDialog onClose={() => setFeeds(false)} />}
    </>
  );
}

function Nothing(props: { past: boolean; filtered: boolean; whose: string; project: string }) {
  if (props.filtered) {
    const action = (
      <button type="button" onClick={() => setParams({ show: null, kind: null, text: null })}>
        Show all
      </button>
    );
    return (
      <Empty title="None of your leases is like that" action={action}>
        The filters above leave nothing.
      </Empty>
    );
  }
  if (props.past) {
    return <Empty title="Nothing has ended yet">Leases that have ended or were deleted are listed here.</Empty>;
  }
  const action = (
    <div class="row">
      <a class="button primary" href={hrefOf("")}>
        Find a time
      </a>
      {props.whose === "mine" && (
        <button type="button" onClick={() => setParams({ whose: "project" })}>
          Show those of {props.project}
        </button>
      )}
    </div>
  );
  return (
    <Empty title={props.whose === "mine" ? "You have no leases" : `${props.project} has no leases`} action={action}>
      A lease keeps hosts, servers or addresses for you from one time to another. Say what you need, and book it.
    </Empty>
  );
}
