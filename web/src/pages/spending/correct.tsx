// SPDX-License-Identifier: Apache-2.0
/** Answers a charge that was wrong by another one, with a reason that the project reads. */
import { useRef, useState } from "preact/hooks";
import type { Charge } from "../../api/billing.ts";
import { newKey, postOnce } from "../../api/client.ts";
import { Refused, sentencesOf } from "../../api/errors.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { digitsOf, money } from "../../words/money.ts";
import { categoryInWords } from "../../words/statement.ts";

/** True if a correction gives back more than there is; what is no number is told by the service. */
function isMoreThan(correction: string, charged: string): boolean {
  return Number(correction) < 0 && Number(correction) + Number(charged) < -1e-9;
}

interface CorrectProps {
  charge: Charge;
  onDone: () => void;
  onClose: () => void;
}

/** The dialog; all of the charge given back is proposed. */
export function CorrectDialog({ charge, onDone, onClose }: CorrectProps) {
  const [amount, setAmount] = useState(() => `-${digitsOf(charge.amount, 2).replaceAll(",", "")}`.replace("-−", ""));
  const [reason, setReason] = useState("");
  const key = useRef(newKey());
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { fields, others } = sentencesOf(error, ["/amount", "/reason"]);
  const submit = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      const body = { corrects: charge.id, amount: amount.trim(), reason: reason.trim() };
      await postOnce<{ charge: Charge }>("v1/charges", body, key.current);
      note(`Charge ${charge.id} is corrected`);
      onDone();
    } catch (refused) {
      // Other values are another intention; after a lost answer the key stays.
      if (refused instanceof Refused && refused.status < 500) key.current = newKey();
      setError(refused);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Correct charge ${charge.id}`}
      onClose={onClose}
      onSubmit={() => void submit()}
      onEdit={() => setError(null)}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <BusyButton
            type="submit"
            class="primary"
            busy={busy}
            doing="Charging…"
            disabled={reason.trim() === "" || amount.trim() === ""}
          >
            Correct it
          </BusyButton>
        </>
      }
    >
      <p>
        {categoryInWords(charge)}
        {charge.sku && ` ${charge.sku}`}: <strong>{money(charge.amount, charge.currency)}</strong>. The charge stays as
        it is; another one, in this month's statement, answers it.
      </p>
      <Field
        label={`Amount in ${charge.currency}`}
        error={fields.get("/amount")}
        hint="With a minus it is given back; without one it is charged, too."
      >
        {(control) => (
          <input
            {...control}
            type="text"
            inputMode="text"
            maxLength={20}
            autoComplete="off"
            value={amount}
            onInput={(event) => setAmount(event.currentTarget.value)}
          />
        )}
      </Field>
      {isMoreThan(amount, charge.amount) && (
        <p class="banner warning" role="status">
          This gives back more than was charged.
        </p>
      )}
      <Field label="Reason" error={fields.get("/reason")} hint="The project reads it in its statement.">
        {(control) => (
          <textarea
            {...control}
            rows={3}
            maxLength={1000}
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        )}
      </Field>
      <FormErrors sentences={others} />
    </Dialog>
  );
}
