// SPDX-License-Identifier: Apache-2.0
/** A price list to be read: a row for each price, and the rules beside them in sentences. */
import type { PriceDocument } from "../../api/billing.ts";
import { projectName } from "../../api/session.ts";
import { When } from "../../parts/basics.tsx";
import { Rows } from "../../parts/list.tsx";
import { inWords } from "../../words/lease.ts";
import { money } from "../../words/money.ts";
import { measureInWords, rulesOf } from "../../words/price-list.ts";

/** All of a list; the JSON is behind a line, to be copied for the next one. */
export function PriceTable({ document }: { document: PriceDocument }) {
  const rules = rulesOf(document, projectName);
  return (
    <>
      <p class="muted">
        Valid from <When at={document.valid_from} /> on. Of the prices for one thing the first that fits holds; what
        none fits is free.
      </p>
      <Rows heads={["Price of", "By the hour", "In bills"]}>
        {document.prices.map(({ sku, measure, per_hour, per_kwh, requirement }) => {
          const condition = inWords([requirement]);
          return (
            <tr key={sku}>
              <th scope="row">
                {measureInWords(measure)}
                {condition && <span class="muted"> with {condition}</span>}
              </th>
              <td class="number" data-head={per_kwh ? "By the kWh" : "By the hour"}>
                {per_kwh ? `${money(per_kwh, document.currency)} / kWh` : money(per_hour ?? "", document.currency)}
              </td>
              <td data-head="In bills">{sku}</td>
            </tr>
          );
        })}
      </Rows>
      <dl class="facts">
        {rules.map(({ name, says }) => (
          <div key={name} class="meaning">
            <dt>{name}</dt>
            <dd>
              {says.map((one) => (
                <p key={one}>{one}</p>
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <details class="raw">
        <summary>As it was published</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, which needs the keyboard, too */}
        <pre tabIndex={0}>{JSON.stringify(document, null, 2)}</pre>
      </details>
    </>
  );
}
