// SPDX-License-Identifier: Apache-2.0
/** What one is told by mail of one's own leases: a switch for each event, how often, and in which zone. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { sentencesOf } from "../../api/errors.ts";
import { useLive } from "../../api/live.ts";
import type { Subscription } from "../../api/subscriptions.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, Skeleton, Trouble } from "../../parts/basics.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { allZones } from "../../time/zone.ts";
import { sentence } from "../../words/events.ts";
import { isSent, OWN_EVENTS, switchEvent } from "../../words/subscriptions.ts";

const PATH = "v1/subscriptions/mine";

interface Chosen {
  events: string[];
  digest: Subscription["digest"];
  time_zone: string;
}

/** The part of the page about mail, where the service sends some. */
export function Mine() {
  const watch = useLive<{ subscription: Subscription }>(PATH, {}, 60)!;
  const { data, error } = watch.state.value;
  return (
    <section class="told" aria-labelledby="mine">
      <h2 id="mine">Your own leases, by mail</h2>
      {!data && error === null && <Skeleton lines={6} />}
      {!data && error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      {data && <Choice found={data.subscription} onDone={() => void watch.read()} />}
    </section>
  );
}

function Choice({ found, onDone }: { found: Subscription; onDone: () => void }) {
  const [changed, setChanged] = useState<Partial<Chosen>>({});
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { fields, others } = sentencesOf(error, ["/digest", "/time_zone", "/events"]);
  const chosen: Chosen = { events: found.events, digest: found.digest, time_zone: found.time_zone, ...changed };
  const isDisabled = found.state === "disabled";
  const save = async (body: object, said: string) => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      await request("PATCH", PATH, { body });
      note(said);
      setChanged({});
      onDone();
    } catch (refused) {
      setError(refused);
    }
    setBusy(false);
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void save(changed, "What you are told is changed");
      }}
    >
      {found.reason && (
        <div class="banner" role="status">
          <p>{sentence(`${isDisabled ? "No mail is sent" : "The last mail was not sent"}: ${found.reason}`)}</p>
          {isDisabled && (
            <button type="button" onClick={() => void save({ state: "active" }, "Mail is sent again")}>
              Send it again
            </button>
          )}
        </div>
      )}
      <fieldset class="own-events">
        <legend>Send me mail when</legend>
        {OWN_EVENTS.map(({ name, text, hint }) => (
          <label class="check" key={name}>
            <input
              type="checkbox"
              checked={isSent(chosen.events, name)}
              onChange={(event) =>
                setChanged({ ...changed, events: switchEvent(chosen.events, name, event.currentTarget.checked) })
              }
            />
            <span>
              {text} <span class="hint">{hint}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <div class="row own-times">
        <Field label="How often" error={fields.get("/digest")}>
          {(control) => (
            <select
              {...control}
              value={chosen.digest}
              onChange={(event) =>
                setChanged({ ...changed, digest: event.currentTarget.value as Subscription["digest"] })
              }
            >
              <option value="none">when something happens</option>
              <option value="daily">once a day, at eight in the morning</option>
            </select>
          )}
        </Field>
        <Field label="Zone of the times in mails" error={fields.get("/time_zone")}>
          {(control) => (
            <select
              {...control}
              value={chosen.time_zone}
              onChange={(event) => setChanged({ ...changed, time_zone: event.currentTarget.value })}
            >
              {[...new Set([chosen.time_zone, ...allZones()])].map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <FormErrors sentences={[...others, ...[fields.get("/events")].filter((text) => text !== undefined)]} />
      <div class="row">
        <BusyButton
          type="submit"
          class="primary"
          busy={busy}
          doing="Saving…"
          disabled={Object.keys(changed).length === 0}
        >
          Save
        </BusyButton>
        {Object.keys(changed).length > 0 && (
          <button type="button" onClick={() => setChanged({})}>
            As it was
          </button>
        )}
      </div>
    </form>
  );
}
