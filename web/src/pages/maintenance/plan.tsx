// SPDX-License-Identifier: Apache-2.0
/** Planning a window: which hosts and when, what it would do to leases, and only then opening it. */
import { useId, useRef, useState } from "preact/hooks";
import { useAsked } from "../../api/ask.ts";
import { newKey, postOnce } from "../../api/client.ts";
import { Refused, sentencesOf } from "../../api/errors.ts";
import type { Impact, Maintenance } from "../../api/maintenance.ts";
import type { NamedHost } from "../../api/types.ts";
import { type Span, keptLength } from "../../forms/gate.ts";
import type { Parts } from "../../forms/requirement.tsx";
import { note } from "../../parts/announce.tsx";
import { BusyButton, PageHead } from "../../parts/basics.tsx";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { go, hrefOf, place } from "../../router.ts";
import { plural } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { toWire } from "../../time/zone.ts";
import { impactInWords, isPainless, openingInWords } from "../../words/maintenance.ts";
import { requirementOf } from "../../words/question.ts";
import { instant } from "../../words/reading.ts";
import { type By, HostsField } from "./hosts.tsx";
import { Affected } from "./impact.tsx";
import { UntilField } from "./until.tsx";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const POINTERS = ["/name", "/reason", "/start_date", "/end_date", "/hosts", "/requirement"];

/** The page `?do=plan`; `hosts=` are chosen already, `start=` and `end=` too. */
export function Plan({ all }: { all: readonly NamedHost[] }) {
  const { params } = place.value;
  const opened = useRef(present.value).current;
  const [by, setBy] = useState<By>("names");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(
    () => new Set((params.get("hosts") ?? "").split(",").filter((id) => all.some((host) => host.id === id))),
  );
  const [parts, setParts] = useState<Parts>({ conditions: [], others: [] });
  const [name, setName] = useState("");
  const [reason, setReason] = useState("");
  const [start, setStart] = useState<number | null>(
    instant(params.get("start")) ?? Math.ceil((opened + DAY) / HOUR) * HOUR,
  );
  const [end, setEnd] = useState<number | null>(
    instant(params.get("end")) ?? Math.ceil((opened + DAY) / HOUR) * HOUR + 4 * HOUR,
  );
  const [leave, setLeave] = useState(false);
  const [migrate, setMigrate] = useState(false);
  const [disable, setDisable] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [changedImpact, setChangedImpact] = useState(false);
  const key = useRef(newKey());
  const explained = useId();
  const requirement = requirementOf(parts);
  const some = by === "names" ? chosen.size > 0 : requirement.length > 0;
  const orderly = start !== null && end !== null && end > start;
  const now = start !== null && start <= present.value;
  const window = some &&
    orderly && {
      start_date: now ? "now" : toWire(start),
      end_date: toWire(end),
      ...(by === "names" ? { hosts: [...chosen] } : { requirement }),
      pending: leave ? "leave" : "move",
      active: migrate ? "migrate" : "list",
      disable_service: disable,
    };
  const asked = useAsked<{ impact: Impact }>(
    "v1/maintenances?dry_run=true",
    window ? { name: "impact", ...window } : null,
  );
  const { impact } = asked.data ?? { impact: null };
  const { fields, others } = sentencesOf(error ?? asked.error, POINTERS);
  const edited =
    <T,>(set: (value: T) => void) =>
    (value: T) => {
      set(value);
      setError(null);
      setChangedImpact(false);
    };
  // The window keeps its length, once the field of its start is left.
  const entered = useRef<Span>({ start, end });
  const leaveStart = () => {
    const moved = keptLength({ start, end }, entered.current);
    if (moved.end !== end) edited(setEnd)(moved.end);
  };
  const submit = async () => {
    if (busy || !window || !impact || asked.loading) return;
    if (name.trim() === "") {
      const detail = "Give the window a name, such as what is to be done.";
      setError(new Refused(400, [{ status: 400, code: "", title: "", detail, pointer: "/name" }]));
      return;
    }
    setBusy(true);
    setError(null);
    setChangedImpact(false);
    try {
      const body = { ...window, name: name.trim(), reason: reason.trim() || null, impact_id: impact.id };
      const { data } = await postOnce<{ maintenance: Maintenance }>("v1/maintenances", body, key.current, {
        attempts: 1,
      });
      note(`${plural(data.maintenance.hosts.length, "host")} booked out: ${data.maintenance.name}`);
      go("maintenance", { id: data.maintenance.id });
    } catch (refused) {
      key.current = newKey();
      if (refused instanceof Refused && refused.has("impact_changed")) {
        setChangedImpact(true);
        asked.again();
      } else setError(refused);
      setBusy(false);
    }
  };
  const nameOf = namesOf(all);
  return (
    <>
      <PageHead
        title="Plan maintenance"
        lead="Hosts are booked out for a time. First see which leases that affects; nothing happens until you open it."
      />
      <form
        class="plan-columns"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <section class="card stack" aria-label="The window">
          <HostsField
            all={all}
            by={by}
            chosen={chosen}
            parts={parts}
            error={fields.get("/hosts") ?? fields.get("/requirement")}
            onBy={edited(setBy)}
            onChosen={edited(setChosen)}
            onParts={edited(setParts)}
          />
          <DateTimeField
            label="From"
            value={start}
            error={fields.get("/start_date")}
            onEnter={() => {
              entered.current = { start, end };
            }}
            onLeave={leaveStart}
            onChange={edited(setStart)}
          />
          <UntilField
            start={start}
            end={end}
            error={fields.get("/end_date")}
            onChange={edited(setEnd)}
            more=" The hosts return by themselves."
          />
          <Field label="Name" error={fields.get("/name")}>
            {(control) => (
              <input
                {...control}
                type="text"
                maxLength={80}
                autoComplete="off"
                placeholder="firmware of rack r7"
                value={name}
                onInput={(event) => edited(setName)(event.currentTarget.value)}
              />
            )}
          </Field>
          <Field label="Reason" hint="Operators see it in the calendar." error={fields.get("/reason")}>
            {(control) => (
              <input
                {...control}
                type="text"
                maxLength={1000}
                autoComplete="off"
                value={reason}
                onInput={(event) => edited(setReason)(event.currentTarget.value)}
              />
            )}
          </Field>
          <label class="check">
            <input
              type="checkbox"
              checked={!leave}
              onChange={(event) => edited(setLeave)(!event.currentTarget.checked)}
            />
            Give leases that have not started other hosts
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={migrate}
              onChange={(event) => edited(setMigrate)(event.currentTarget.checked)}
            />
            Move the servers of leases that have started to other hosts, live
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={disable}
              onChange={(event) => edited(setDisable)(event.currentTarget.checked)}
            />
            Disable the hosts in Nova meanwhile
          </label>
        </section>
        <section class="card stack" aria-label="What it would do" aria-busy={asked.loading}>
          <h2>What it would do</h2>
          {!some && <p class="muted">Choose hosts to see which leases are affected.</p>}
          {changedImpact && (
            <div class="banner warning" role="alert">
              <p>
                Leases have changed meanwhile, and so has what would come of it. Look at it, and book the maintenance
                again.
              </p>
            </div>
          )}
          {window && (
            <p class={impact && !isPainless(impact.leases) ? "preview bad" : "preview"} role="status">
              {impact
                ? `${plural(impact.hosts.length, "host")}. ${impactInWords(impact.leases)}`
                : asked.loading
                  ? "Looking what it would do…"
                  : ""}
            </p>
          )}
          {window && impact && impact.leases.length > 0 && (
            <>
              <p class="hint">Blazar changes the time of no lease. Owners are told once, after the window is opened.</p>
              <Affected leases={impact.leases} nameOf={nameOf} />
            </>
          )}
          <FormErrors sentences={others} />
          <p id={explained} class="hint">
            {openingInWords({ now, leases: Boolean(window && impact && impact.leases.length > 0) })}
          </p>
          <div class="row end">
            <a class="button" href={hrefOf("maintenance")}>
              Cancel
            </a>
            <BusyButton
              type="submit"
              class="primary"
              busy={busy}
              doing="Booking…"
              aria-describedby={explained}
              disabled={!window || !impact || asked.loading}
            >
              Book the maintenance
            </BusyButton>
          </div>
        </section>
      </form>
    </>
  );
}

/** Returns what gives the name of a host by its id. */
export function namesOf(hosts: readonly NamedHost[]) {
  const names = new Map(hosts.map((host) => [host.id, host.name]));
  return (id: string): string => names.get(id) ?? id;
}
