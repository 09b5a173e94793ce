// SPDX-License-Identifier: Apache-2.0
/** The power of hosts: which sleep and why, what that saves; an operator wakes one, or lets it never sleep. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { useLive, useLiveList } from "../../api/live.ts";
import type { HostPower, PowerReport } from "../../api/power.ts";
import { may } from "../../api/session.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, Trouble, When } from "../../parts/basics.tsx";
import { StateMark } from "../../parts/state.tsx";
import { hrefOf } from "../../router.ts";
import { plural, spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import {
  canWake,
  isNotable,
  poolsInWords,
  powerInWords,
  powerState,
  reasonOf,
  spareInWords,
} from "../../words/power.ts";

/** Hosts that are named; of the others the number is told. */
const NAMED = 5;

/** The power of the hosts, by id, as far as the caller may see it; `act` changes one. */
export interface PowerOfHosts {
  hosts: ReadonlyMap<string, HostPower>;
  report: PowerReport | null;
  error: unknown;
  act: (host: HostPower, change: PowerAction) => Promise<void>;
  again: () => void;
}

export type PowerAction = "wake" | "keep" | "auto";

const DONE: Readonly<Record<PowerAction, string>> = {
  wake: "wakes, and stays on for four hours",
  keep: "never sleeps from now on",
  auto: "may sleep while nobody needs it",
};

/** Where the power of a kind is, and how answers call it. */
const WORDS: Readonly<Record<string, string>> = { host: "hosts", volume: "pools" };

/** Returns where the power of one is. */
export function pathOf(kind: string, id: string): string {
  return `v1/power/${WORDS[kind]}/${encodeURIComponent(id)}`;
}

/** Changes the power of one; returns what went wrong with the last change, too. */
function useActions(kind: string, done: () => void) {
  const [error, setError] = useState<unknown>(null);
  const act = async (host: HostPower, change: PowerAction) => {
    const path = pathOf(kind, host.id);
    try {
      if (change === "wake") await request("POST", `${path}/wake`);
      else await request("PUT", path, { body: { policy: change } });
      setError(null);
      note(`${host.name} ${DONE[change]}`);
    } catch (problem) {
      setError(problem);
    }
    done();
  };
  return { error, act };
}

/** Reads the power of one host, or of one pool of volumes. */
export function usePowerOf(kind: string, id: string): PowerOfHosts {
  const allowed = WORDS[kind] !== undefined && may("blazar:power:get");
  const watch = useLive<{ host?: HostPower; pool?: HostPower }>(allowed ? pathOf(kind, id) : null, {}, 30);
  const again = () => void watch?.read();
  const { error, act } = useActions(kind, again);
  const data = watch?.state.value.data;
  const its = data?.host ?? data?.pool;
  return { hosts: new Map(its ? [[its.id, its]] : []), report: null, error, act, again };
}

/** Reads the power of all hosts, or of all pools of volumes; of nothing where it is not for the caller. */
export function usePower(kind = "host"): PowerOfHosts {
  const words = WORDS[kind];
  const allowed = words !== undefined && may("blazar:power:get");
  const report = useLive<{ power: PowerReport }>(allowed ? "v1/power" : null, {}, 30);
  const on = allowed && report?.state.value.data !== undefined;
  const list = useLiveList<HostPower>(
    `v1/power/${words ?? "hosts"}`,
    words ?? "hosts",
    {},
    on ? Number.POSITIVE_INFINITY : 0,
    30,
  );
  const again = () => {
    void list.read();
    void report?.read();
  };
  const { error, act } = useActions(kind, again);
  const hosts = new Map((list.state.value.data?.items ?? []).map((host) => [host.id, host]));
  return { hosts, report: report?.state.value.data?.power ?? null, error, act, again };
}

/** "asleep since 12:00: nobody needs it", below the state of a host; nothing of one that is simply on. */
export function PowerLine({ host }: { host: HostPower }) {
  if (!isNotable(host)) return null;
  if (host.state === "on") {
    const failed = host.reason === "timed_out";
    return (
      <div class="state state-past">
        <StateMark mark={failed ? "failed" : "active"} />
        <span class="state-word">{failed ? "did not wake" : "never sleeps"}</span>
      </div>
    );
  }
  const { mark, word } = powerState(host.state);
  return (
    <span class="state state-past">
      <StateMark mark={mark} />
      <span class="state-word">{word}</span>
      <span class="state-next">
        since {spoken(Date.parse(host.since), zone.value, present.value)}: {reasonOf(host)}
      </span>
    </span>
  );
}

/** What can be done about the power of a host, as buttons of a menu, which `close` closes. */
export function PowerButtons(props: { host: HostPower; power: PowerOfHosts; close: () => void; onSwitch: () => void }) {
  const { host, power, close, onSwitch } = props;
  const act = (change: PowerAction) => {
    close();
    void power.act(host, change);
  };
  const openSwitch = () => {
    close();
    onSwitch();
  };
  return (
    <>
      {canWake(host) && may("blazar:power:wake") && (
        <button type="button" onClick={() => act("wake")}>
          {host.state === "on" ? "Try to wake again" : "Wake"}
        </button>
      )}
      {host.adapter !== null && may("blazar:power:put") && (
        <button type="button" onClick={() => act(host.policy === "keep" ? "auto" : "keep")}>
          {host.policy === "keep" ? "Let it sleep" : "Never let it sleep"}
        </button>
      )}
      {may("blazar:power:put") && (
        <button type="button" onClick={openSwitch}>
          Power switch
        </button>
      )}
    </>
  );
}

/** What sleeps, why, and what that saves; nothing where nothing is planned. */
export function PowerSummary({ power }: { power: PowerOfHosts }) {
  const { report, hosts, error, act } = power;
  if (!report || report.mode === "off") return null;
  const order = (host: HostPower) => Number(host.state !== "off");
  const asleep = [...hosts.values()]
    .filter(({ state }) => state !== "on")
    .sort((one, other) => order(one) - order(other));
  return (
    <section class="card power-summary" aria-labelledby="power-heading">
      <h2 id="power-heading">Power</h2>
      {powerInWords(report).map((text) => (
        <p key={text}>{text}</p>
      ))}
      {report.classes.length === 1 && <p>{spareInWords(report.classes[0]!, true)}</p>}
      {report.classes.length > 1 && (
        <ul class="spares">
          {report.classes.map((one) => (
            <li key={JSON.stringify(one.group)}>{spareInWords(one, false)}</li>
          ))}
        </ul>
      )}
      {error !== null && <Trouble error={error} />}
      {asleep.length > 0 && (
        <ul class="asleep-hosts">
          {asleep.slice(0, NAMED).map((host) => (
            <Asleep key={host.id} host={host} act={(change) => act(host, change)} />
          ))}
          {asleep.length > NAMED && (
            <li>
              <a href={hrefOf("hosts", { power: "asleep" })}>and {plural(asleep.length - NAMED, "more", "more")}</a>
            </li>
          )}
        </ul>
      )}
    </section>
  );
}

/** What sleeps of the pools of volumes; nothing where none can. */
export function PoolSummary({ power }: { power: PowerOfHosts }) {
  const said = power.report ? poolsInWords(power.report) : [];
  if (said.length === 0) return null;
  return (
    <section class="card power-summary" aria-labelledby="power-heading">
      <h2 id="power-heading">Power</h2>
      {said.map((text) => (
        <p key={text}>{text}</p>
      ))}
    </section>
  );
}

function Asleep({ host, act }: { host: HostPower; act: (change: PowerAction) => Promise<void> }) {
  const [busy, setBusy] = useState(false);
  const wake = async () => {
    setBusy(true);
    await act("wake");
    setBusy(false);
  };
  return (
    <li>
      {host.name}: {powerState(host.state).word} since <When at={host.since} as="spoken" />
      {reasonOf(host) && <span class="muted">, {reasonOf(host)}</span>}{" "}
      {host.state === "off" && may("blazar:power:wake") && (
        <BusyButton
          type="button"
          class="small"
          busy={busy}
          doing="Waking…"
          aria-label={`Wake ${host.name}`}
          onClick={() => void wake()}
        >
          Wake
        </BusyButton>
      )}
    </li>
  );
}
