// SPDX-License-Identifier: Apache-2.0
/** What leases cost: the price list that is in force, all versions of it, and for operators a new one. */
import { useState } from "preact/hooks";
import {
  PRICE_LISTS,
  type PriceDocument,
  type PriceList,
  type PriceListHead,
  usePriceLists,
} from "../../api/billing.ts";
import { useLive } from "../../api/live.ts";
import { may } from "../../api/session.ts";
import { Empty, PageHead, Skeleton, Trouble, When } from "../../parts/basics.tsx";
import { Rows } from "../../parts/list.tsx";
import { Phase } from "../../parts/state.tsx";
import { hrefOf, place, setParams } from "../../router.ts";
import { present } from "../../time/now.ts";
import type { Mark } from "../../words/lease.ts";
import { type Standing, baseOf, inForce, standingOf } from "../../words/price-list.ts";
import { PriceTable } from "./document.tsx";
import { PublishDialog } from "./publish.tsx";

const MARKS: Readonly<Record<Standing, Mark>> = { "in force": "active", "to come": "booked", replaced: "past" };

/** The page; `?version=` names a list, `?do=publish` opens the dialog for a new one. */
export function PricesPage() {
  const watch = usePriceLists();
  const { data = null, error = null } = watch?.state.value ?? {};
  const all = data?.price_lists ?? [];
  const asked = Number(place.value.params.get("version"));
  const holds = inForce(all, present.value);
  const shown = all.find(({ version }) => version === asked) ?? holds ?? all.at(-1);
  const list = useLive<{ price_list: PriceList }>(shown ? `${PRICE_LISTS}/${shown.version}` : null, {}, 600);
  const found = list?.state.value.data?.price_list ?? null;
  const publishes = may("blazar:price_lists:post");
  const publish = publishes && data && (
    <button type="button" class="primary" onClick={() => setParams({ do: "publish" })}>
      {all.length === 0 ? "Publish prices" : "New prices"}
    </button>
  );
  return (
    <>
      <PageHead title="Prices" lead="What leases cost. A list is never changed; another one takes its place.">
        {all.length > 0 && publish}
      </PageHead>
      {error !== null && <Trouble error={error} retry={() => void watch?.read()} />}
      {!data && error === null && <Skeleton lines={6} />}
      {data && all.length === 0 && (
        <Empty title="Nothing has a price" action={publish}>
          Leases are free, and nothing is charged, until a price list is published.
        </Empty>
      )}
      {shown && (
        <section class="card stack roomy" aria-labelledby="price-list">
          <div class="row spread">
            <h2 id="price-list">Price list {shown.version}</h2>
            <PriceListState of={shown} all={all} />
          </div>
          {found?.version === shown.version ? (
            <PriceTable document={found.content} />
          ) : list?.state.value.error ? (
            <Trouble error={list.state.value.error} retry={() => void list.read()} />
          ) : (
            <Skeleton lines={5} />
          )}
        </section>
      )}
      {all.length > 1 && <Versions all={all} shown={shown} />}
      {place.value.params.get("do") === "publish" && publishes && data && (
        <WithBase all={all} onDone={() => void watch?.read()} />
      )}
    </>
  );
}

function PriceListState({ of, all }: { of: PriceListHead; all: readonly PriceListHead[] }) {
  const standing = standingOf(of, all, present.value);
  return <Phase mark={MARKS[standing]} word={standing} />;
}

function Versions({ all, shown }: { all: readonly PriceListHead[]; shown: PriceListHead | undefined }) {
  return (
    <section class="versions" aria-labelledby="versions">
      <h2 id="versions">All price lists</h2>
      <Rows heads={["List", "State", "Valid from", "Published"]}>
        {[...all].reverse().map((one) => (
          <tr key={one.version}>
            <th scope="row">
              <a
                href={hrefOf("prices", { version: one.version })}
                aria-current={one.version === shown?.version ? "true" : undefined}
              >
                Price list {one.version}
              </a>
            </th>
            <td>
              <PriceListState of={one} all={all} />
            </td>
            <td data-head="Valid from">
              <When at={one.valid_from} />
            </td>
            <td data-head="Published">
              <When at={one.published_at} />
              {one.published_by && <span class="muted"> by {one.published_by}</span>}
            </td>
          </tr>
        ))}
      </Rows>
      <p class="hint">A lease keeps the prices of the lists that were published when it was booked.</p>
    </section>
  );
}

/** A new list begins as the one whose prices hold when that is asked for. */
function WithBase({ all, onDone }: { all: readonly PriceListHead[]; onDone: () => void }) {
  const [base] = useState(() => baseOf(all, present.value));
  const watch = useLive<{ price_list: PriceList }>(base ? `${PRICE_LISTS}/${base.version}` : null, {}, 600);
  const found = watch?.state.value.data?.price_list;
  const document: PriceDocument | null = found?.content ?? null;
  if (base && !document) return null;
  const close = () => setParams({ do: null });
  const done = () => {
    setParams({ do: null, version: null });
    onDone();
  };
  return <PublishDialog base={document} onDone={done} onClose={close} />;
}
