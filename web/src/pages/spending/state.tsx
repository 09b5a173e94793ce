// SPDX-License-Identifier: Apache-2.0
/** Whether more may be charged in a month. */
import type { Statement } from "../../api/billing.ts";
import { Phase } from "../../parts/state.tsx";

/** A shape and words. */
export function StatementState({ statement }: { statement: Pick<Statement, "state"> }) {
  return statement.state === "final" ? (
    <Phase mark="past" word="final" />
  ) : (
    <Phase mark="booked" word="open" next="more may be charged" />
  );
}
