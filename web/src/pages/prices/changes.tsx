// SPDX-License-Identifier: Apache-2.0
/** What a new price list would change, as the service says it. */
import { useEffect, useRef } from "preact/hooks";
import type { Publication } from "../../api/billing.ts";
import { When } from "../../parts/basics.tsx";
import { Rows } from "../../parts/list.tsx";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { comparisonInWords, doubtsInWords, fieldInWords, valueOfChange } from "../../words/price-list.ts";

/** The changes, each with what was before. */
export function Changes({ of }: { of: Publication }) {
  const { price_list: list, changes, last_month: month } = of;
  const before = list.version > 1 ? `Price list ${list.version - 1}` : "Before";
  const then = `Price list ${list.version}`;
  const box = useRef<HTMLElement>(null);
  // A list may be long: what was asked for stands below it.
  useEffect(() => box.current?.scrollIntoView({ block: "start" }), [of]);
  return (
    <section ref={box} class="stack" role="status" aria-label="What changes">
      <h3>What changes</h3>
      <p>
        It would be price list {list.version}, for what is booked after it is published, from{" "}
        <When at={list.valid_from} as="spoken" /> on. It cannot be taken back.
      </p>
      {doubtsInWords(of).map((doubt) => (
        <p key={doubt} class="banner warning">
          {doubt}
        </p>
      ))}
      {month && <p>{comparisonInWords(month)}</p>}
      {changes.length === 0 && <p>It is the same as the list before it.</p>}
      {changes.length > 0 && (
        <Rows heads={["What", before, then]}>
          {changes.map(({ field, before: was, after: is }) => (
            <tr key={field}>
              <th scope="row">{fieldInWords(field)}</th>
              <td data-head={before}>{valueOfChange(was, zone.value, present.value)}</td>
              <td data-head={then}>{valueOfChange(is, zone.value, present.value)}</td>
            </tr>
          ))}
        </Rows>
      )}
    </section>
  );
}
