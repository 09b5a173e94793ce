// SPDX-License-Identifier: Apache-2.0
/** What was done to anything and by whom: operators see all, members their project. The address says what is looked at. */
import { info, may } from "../../api/session.ts";
import type { JournalEntry } from "../../api/types.ts";
import { BusyButton, Empty, PageHead, Skeleton, Trouble } from "../../parts/basics.tsx";
import { Choose, Filters } from "../../parts/filters.tsx";
import { Search } from "../../parts/search.tsx";
import { hrefOf, place, setParams } from "../../router.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { type AskedHistory, historyQuery, pageOfSubject, subjectInWords, toldOf } from "../../words/history.ts";
import { TYPES, verbsOf } from "../../words/history-choices.ts";
import { Entry } from "./entries.tsx";
import { MOST, useJournal } from "./journal.ts";

const PAGE = 50;
const FILTERS = ["type", "object", "verb", "by", "project", "from", "to"] as const;

function askedOf(params: URLSearchParams): AskedHistory {
  return Object.fromEntries(FILTERS.map((name) => [name, params.get(name) ?? ""])) as unknown as AskedHistory;
}

/** The page. */
export function HistoryPage() {
  const { params } = place.value;
  const asked = askedOf(params);
  const operator = may("blazar:calendar:get_owners");
  const journal = useJournal(historyQuery(asked, zone.value), PAGE);
  const { entries, more, busy, error, readEarlier, retry } = journal;
  const active = FILTERS.filter((name) => params.has(name)).length;
  return (
    <>
      <PageHead
        title="History"
        lead={operator ? "What was done to anything, and by whom." : "What was done in your project, and by whom."}
      />
      <Filters active={active}>
        <Choose
          label="What"
          options={operator ? TYPES : TYPES.filter((one) => !one.operators)}
          chosen={asked.type}
          onChange={(type) => setParams({ type, object: null, verb: null })}
        />
        <Choose
          label="What was done"
          options={verbsOf(asked.type, asked.verb)}
          chosen={asked.verb}
          onChange={(verb) => setParams({ verb })}
        />
        <Search name="by" label="By the user (id)" />
        {operator && <Search name="project" label="Project (id)" />}
        <Search name="object" label="Object (id)" />
        <Day name="from" label="from" value={asked.from} />
        <Day name="to" label="to" value={asked.to} />
      </Filters>
      {error !== null && <Trouble error={error} retry={retry} />}
      {!entries && error === null && <Skeleton lines={8} />}
      {entries?.length === 0 && <Nothing filtered={active > 0} />}
      {entries && entries.length > 0 && <Entries entries={entries} />}
      {entries && more && entries.length < MOST && (
        <BusyButton type="button" busy={busy} doing="Reading…" onClick={readEarlier}>
          Show earlier ones
        </BusyButton>
      )}
      {entries && more && entries.length >= MOST && (
        <p class="hint">The latest {MOST} are shown. Choose days for earlier ones.</p>
      )}
    </>
  );
}

function Day({ name, label, value }: { name: "from" | "to"; label: string; value: string }) {
  return (
    <label class="choose">
      <span>{label}</span>
      <input type="date" value={value} onChange={(event) => setParams({ [name]: event.currentTarget.value })} />
    </label>
  );
}

function Entries({ entries }: { entries: readonly JournalEntry[] }) {
  const me = info.value?.user_id;
  return (
    <div class="card history">
      <ol aria-label="What was done">
        {entries.map((entry) => {
          const whose = { project_id: entry.project_id, reservations: [] };
          const told = toldOf(entry, whose, me, zone.value, present.value);
          return <Entry key={entry.id} told={told} subject={<Subject entry={entry} />} />;
        })}
      </ol>
    </div>
  );
}

/** What an entry is about, with the way to its page. */
function Subject({ entry }: { entry: JournalEntry }) {
  const page = pageOfSubject(entry);
  const words = subjectInWords(entry);
  const own = entry.project_id === null || entry.project_id === info.value?.project_id;
  return (
    <>
      {page ? <a href={hrefOf(...page)}>{words}</a> : words}
      {!own && <span class="muted"> of {entry.project_id}</span>}
    </>
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (!filtered) return <Empty title="Nothing was done so far">What is reserved, changed or ended is told here.</Empty>;
  const action = (
    <button type="button" onClick={() => setParams(Object.fromEntries(FILTERS.map((name) => [name, null])))}>
      Show all
    </button>
  );
  return (
    <Empty title="Nothing matches" action={action}>
      The filters above leave nothing.
    </Empty>
  );
}
