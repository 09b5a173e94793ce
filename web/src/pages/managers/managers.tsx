// SPDX-License-Identifier: Apache-2.0
/** For operators: the managers of the service, what each works on, and what is wrong. */
import { useLive } from "../../api/live.ts";
import type { Manager } from "../../api/managers.ts";
import { Elsewhere, Empty, PageHead, When } from "../../parts/basics.tsx";
import { List } from "../../parts/list.tsx";
import { Phase } from "../../parts/state.tsx";
import { hrefOf } from "../../router.ts";
import { plural } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { managerState, troublesOf, workInWords } from "../../words/managers.ts";

/** Claims that are named; of the others the number is told. */
const NAMED = 5;

/** The page: a row for each manager, those that are not up first. */
export function ManagersPage() {
  const watch = useLive<{ managers: Manager[] }>("v1/managers", {}, 5)!;
  const { data, error } = watch.state.value;
  const managers = data && [...data.managers].sort((one, other) => Number(one.up) - Number(other.up));
  return (
    <>
      <PageHead
        title="Managers"
        lead="The processes that start and end leases. If one is not up, the others take over its work within seconds."
      />
      <List
        heads={["Manager", "State", "Seen", "Works on", "Trouble"]}
        items={managers}
        error={error}
        retry={() => void watch.read()}
        empty={<Empty title="No manager is known">Whoever answers this is one: it is on the list in a moment.</Empty>}
        row={(manager) => (
          <tr key={manager.id}>
            <th scope="row">
              {manager.host}
              <br />
              <span class="muted">
                {manager.id} · {manager.version}
              </span>
            </th>
            <td>
              <Phase {...managerState(manager)} />
            </td>
            <td data-head="Seen">
              <When at={manager.seen_at} as="relative" />
              <br />
              <span class="muted">
                started <When at={manager.started_at} as="relative" />
              </span>
            </td>
            <td data-head="Works on">
              <Work manager={manager} />
            </td>
            <td data-head="Trouble">
              <Troubles sentences={troublesOf(manager, data?.managers ?? [], present.value)} />
            </td>
          </tr>
        )}
      />
      {Boolean(error) && <Elsewhere command="blazar-manage managers list" />}
    </>
  );
}

function Work({ manager }: { manager: Manager }) {
  const { work } = manager;
  if (work.length === 0) return <span class="muted">nothing</span>;
  return (
    <ul class="got">
      {work.slice(0, NAMED).map((one) => (
        <li key={one.event_id}>
          {workInWords(one)} <a href={hrefOf("lease", { id: one.lease_id })}>{one.lease_id.slice(0, 8)}</a>
          {one.since && (
            <span class="muted">
              {" "}
              since <When at={one.since} as="relative" />
            </span>
          )}
        </li>
      ))}
      {work.length > NAMED && <li class="muted">and {plural(work.length - NAMED, "more", "more")}</li>}
    </ul>
  );
}

function Troubles({ sentences }: { sentences: readonly string[] }) {
  if (sentences.length === 0) return <span class="muted">none</span>;
  return (
    <>
      {sentences.map((text) => (
        <p class="missing" key={text}>
          {text}
        </p>
      ))}
    </>
  );
}
