// SPDX-License-Identifier: Apache-2.0
/** Series of leases: a list of them, and one with its occurrences. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { Refused, sentencesOf } from "../../api/errors.ts";
import { useLive } from "../../api/live.ts";
import { info, may, session } from "../../api/session.ts";
import type { Occurrence, Series } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, Empty, PageHead, Skeleton, Trouble } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { FormErrors } from "../../parts/field.tsx";
import { List } from "../../parts/list.tsx";
import { Phase } from "../../parts/state.tsx";
import { go, hrefOf, place, setParams } from "../../router.ts";
import { spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { shortName, zone } from "../../time/zone.ts";
import { capital, sentence } from "../../words/events.ts";
import { whatOf } from "../../words/lease.ts";
import { scopeOf } from "../../words/series-change.ts";
import { clockOf, fitInWords, mostInWords, ruleInWords, seriesPhase } from "../../words/series.ts";
import { HistoryOf } from "../history/of-object.tsx";
import { ChangeSeriesDialog } from "./change.tsx";
import { Occurrences } from "./occurrences.tsx";

/** The pages: `?id=` names a series; `?do=delete` and `?do=change&from=` open dialogs. */
export function SeriesPage() {
  const id = place.value.params.get("id");
  return id ? <One key={id} id={id} /> : <All />;
}

const FIELDS = "name,status,rule,start,time_zone,duration,until_local,reservations,project_id,user_id,deleted_at";

function All() {
  const project_id = info.value?.project_id ?? session.value?.project?.id;
  const watch = useLive<{ series: Series[] }>("v1/series", { project_id, fields: FIELDS, limit: 200 }, 30)!;
  const { data, error } = watch.state.value;
  return (
    <>
      <PageHead title="Series" lead="Leases that recur, such as each Monday of a term. Book one in Find a time.">
        <a class="button primary" href={hrefOf("")}>
          Find a time
        </a>
      </PageHead>
      <List
        heads={["Name", "State", "What", "When"]}
        items={data?.series ?? null}
        error={error}
        retry={() => void watch.read()}
        empty={
          <Empty title="There are no series">
            Find a time, choose Book, open More, and say under Repeat how often: each Monday until a day, for example.
          </Empty>
        }
        row={(one) => (
          <tr key={one.id}>
            <th scope="row">
              <a href={hrefOf("series", { id: one.id })}>{one.name}</a>
            </th>
            <td>
              <Phase {...seriesPhase(one, zone.value, present.value)} />
            </td>
            <td>{one.reservations.map(whatOf).join(" and ")}</td>
            <td>
              {capital(ruleInWords(one.rule))}
              <p class="hint">{clockIn(one)}</p>
            </td>
          </tr>
        )}
      />
    </>
  );
}

/** The times of day, and of which zone they are if that is not the page's. */
function clockIn(series: Series): string {
  return series.time_zone === zone.value ? clockOf(series) : `${clockOf(series)} in ${shortName(series.time_zone)}`;
}

function One({ id }: { id: string }) {
  const watch = useLive<{ series: Series }>(`v1/series/${encodeURIComponent(id)}`, {}, 10)!;
  const { data, error } = watch.state.value;
  if (!data && error instanceof Refused && [403, 404].includes(error.status)) {
    const action = (
      <a class="button primary" href={hrefOf("series")}>
        Series
      </a>
    );
    return (
      <Empty title="There is no such series" action={action}>
        It may belong to another project.
      </Empty>
    );
  }
  if (!data) return error ? <Trouble error={error} retry={() => void watch.read()} /> : <Skeleton lines={8} />;
  const { series } = data;
  const occurrences = series.occurrences ?? [];
  const most = mostInWords(series);
  const gone = ["DELETED", "DELETING", "ENDED", "FAILED"].includes(series.status);
  const close = () => setParams({ do: null, from: null });
  const doing = place.value.params.get("do");
  const mayChange = !gone && may("blazar:series:put");
  const toCome = scopeOf(series, null, present.value);
  const actions = (one: Occurrence) =>
    toCome.includes(one) && (
      <span class="row row-actions">
        {one.lease_id && one.state === "booked" && may("blazar:leases:put") && (
          <a
            class="button small"
            aria-label={`Change this one: ${dayOf(one)}`}
            href={hrefOf("lease", { id: one.lease_id, do: "change" })}
          >
            Change this one
          </a>
        )}
        <button
          type="button"
          class="small"
          aria-label={`Change from here on: ${dayOf(one)}`}
          onClick={() => setParams({ do: "change", from: one.recurrence_id })}
        >
          Change from here on
        </button>
      </span>
    );
  return (
    <>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      <header class="lease-head">
        <div class="lease-title">
          <h1>{series.name}</h1>
          <p>
            <Phase {...seriesPhase(series, zone.value, present.value)} />
          </p>
          <p class="muted">
            {series.reservations.map(whatOf).join(" and ")}
            <br />
            {capital(ruleInWords(series.rule))}; {clockIn(series)}
            {most !== "" && <br />}
            {most}
          </p>
          {series.reason && <p class="missing">{sentence(series.reason)}</p>}
          {series.previous_id && (
            <p>
              It goes on from <a href={hrefOf("series", { id: series.previous_id })}>an earlier series</a>.
            </p>
          )}
          {series.booked_until && (
            <p>
              It has no end: it is booked so far up to{" "}
              {spoken(Date.parse(series.booked_until), zone.value, present.value)}.
            </p>
          )}
        </div>
        {!gone && (
          <div class="page-actions">
            {mayChange && toCome.length > 0 && (
              <button type="button" class="primary" onClick={() => setParams({ do: "change", from: null })}>
                Change all
              </button>
            )}
            {may("blazar:series:delete") && (
              <button type="button" class="danger" onClick={() => setParams({ do: "delete" })}>
                Delete the series
              </button>
            )}
          </div>
        )}
      </header>
      <h2>Its leases</h2>
      {occurrences.some((one) => one.state === "unfit") && <p class="muted series-fit">{fitInWords(occurrences)}</p>}
      {occurrences.length > 0 && <Occurrences occurrences={occurrences} actions={mayChange ? actions : undefined} />}
      <HistoryOf type="series" id={series.id} />
      {doing === "change" && mayChange && (
        <ChangeSeriesDialog
          key={place.value.params.get("from")}
          series={series}
          since={place.value.params.get("from")}
          onClose={close}
          onDone={(changed) => {
            close();
            if (changed.id === series.id) void watch.read();
            else go("series", { id: changed.id });
          }}
        />
      )}
      {doing === "delete" && !gone && (
        <DeleteDialog
          series={series}
          onClose={close}
          onDone={() => {
            close();
            void watch.read();
          }}
        />
      )}
    </>
  );
}

function dayOf(one: Occurrence): string {
  return spoken(Date.parse(one.start_date), zone.value, present.value);
}

function DeleteDialog(props: { series: Series; onClose: () => void; onDone: () => void }) {
  const { series, onClose, onDone } = props;
  const [running, setRunning] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const booked = (series.occurrences ?? []).filter((one) => one.state === "booked");
  const submit = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      await request("DELETE", `v1/series/${series.id}`, { query: { running } });
      note(`${series.name} is deleted`);
      onDone();
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Delete the series: ${series.name}`}
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Keep it
          </button>
          <BusyButton type="submit" class="danger" busy={busy} doing="Deleting…">
            Delete
          </BusyButton>
        </>
      }
    >
      <p>
        What of it has not begun is given back, so that others can book it. {booked.length}{" "}
        {booked.length === 1 ? "is" : "are"} booked.
      </p>
      <label class="check">
        <input type="checkbox" checked={running} onChange={(event) => setRunning(event.currentTarget.checked)} />
        End what has begun, too
      </label>
      {running && <p class="hint">Its servers are deleted, as at the end of a lease.</p>}
      <FormErrors sentences={sentencesOf(error, []).others} />
    </Dialog>
  );
}
