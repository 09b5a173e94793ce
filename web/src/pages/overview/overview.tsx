// SPDX-License-Identifier: Apache-2.0
/** For operators: what is wrong, what happens in the next days, how much is free over time, who uses most. */
import type { ComponentChildren } from "preact";
import type { Lease } from "../../api/types.ts";
import { PageHead, When } from "../../parts/basics.tsx";
import { hrefOf } from "../../router.ts";
import { duration } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { about, estimateOf, placeInWords, whyReleased } from "../../words/waiting.ts";
import { Attention } from "./attention.tsx";
import { type Counted, useLeases } from "./leases.ts";
import { Usage } from "./usage.tsx";

const SHOWN = 6;

/** The page. */
export function OverviewPage() {
  return (
    <>
      <PageHead title="Overview" lead="What is wrong, and what starts and ends in the next 7 days." />
      <Attention />
      <Week />
      <Usage />
    </>
  );
}

function Week() {
  const now = present.value;
  const starting = useLeases("starting", SHOWN);
  const ending = useLeases("ending", SHOWN);
  const waiting = useLeases("waiting", SHOWN);
  const released = useLeases("released", SHOWN);
  const longest = waiting.data?.items[0]?.wait;
  const none = [
    starting.data?.count === 0 && "nothing starts in the next 7 days",
    ending.data?.count === 0 && "nothing ends in the next 7 days",
    waiting.data?.count === 0 && "nobody waits in line",
  ].filter((one) => one !== false);
  const sentence = none.join(", ");
  return (
    <>
      <div class="tiles">
        <Tile title="Starting" list={starting}>
          {(lease) => <When at={lease.start_date} as="spoken" />}
        </Tile>
        <Tile title="Ending" list={ending}>
          {(lease) => <When at={lease.end_date} as="spoken" />}
        </Tile>
        <Tile
          title="Waiting in line"
          list={inTurn(waiting)}
          lead={longest ? `The longest wait: ${duration(now - Date.parse(longest.queued_at))}.` : undefined}
        >
          {(lease) => lease.wait && <span title={estimateOf(lease)}>{placeInWords(lease.wait, zone.value, now)}</span>}
        </Tile>
        <Tile title="Will be released" list={released}>
          {(lease) => (
            <>
              {about(lease.release_at!, zone.value, now)}: {whyReleased(lease.usage)}
            </>
          )}
        </Tile>
      </div>
      {sentence && <p class="muted nothing">{`${sentence[0]!.toUpperCase()}${sentence.slice(1)}.`}</p>}
    </>
  );
}

/** The same list, in the order of the places in line. */
function inTurn(list: Counted): Counted {
  const placeOf = ({ wait }: Lease) => wait?.position ?? Number.POSITIVE_INFINITY;
  const data = list.data && { ...list.data, items: [...list.data.items].sort((a, b) => placeOf(a) - placeOf(b)) };
  return { ...list, data };
}

/** A number that leads to its list, and the first of it. A card without any is not drawn. */
function Tile(props: {
  title: string;
  list: Counted;
  /** Said before the list. */
  lead?: string | undefined;
  children: (lease: Lease) => ComponentChildren;
}) {
  const { title, list, lead, children } = props;
  const { count = 0, items = [] } = list.data ?? {};
  if (count === 0) return null;
  const to = hrefOf("all-leases", list.to);
  return (
    <section class="card tile">
      <h2>
        {title}{" "}
        <a class="tile-count" href={to}>
          {count}
        </a>
      </h2>
      {lead && <p>{lead}</p>}
      <ul>
        {items.map((lease) => (
          <li key={lease.id}>
            <a href={hrefOf("lease", { id: lease.id })}>{lease.name || "without a name"}</a>{" "}
            <span class="muted">{lease.project_id}</span>
            <div class="tile-detail">{children(lease)}</div>
          </li>
        ))}
      </ul>
      {count > items.length && <a href={to}>All {count}</a>}
    </section>
  );
}
