// SPDX-License-Identifier: Apache-2.0
/** A new price list, by a form or as a document: first what it would change, then it is published. */
import { useRef, useState } from "preact/hooks";
import { PRICE_LISTS, type PriceDocument, type Publication } from "../../api/billing.ts";
import { request } from "../../api/client.ts";
import { Refused, sentencesOf } from "../../api/errors.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, Segments } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { present } from "../../time/now.ts";
import { toWire, zone } from "../../time/zone.ts";
import { draftOf, readDocument } from "../../words/price-list.ts";
import { Changes } from "./changes.tsx";
import { PriceForm, labelsOf, pointersOf } from "./form.tsx";

interface PublishProps {
  /** The list that it begins as; null: there is none. */
  base: PriceDocument | null;
  onDone: () => void;
  onClose: () => void;
}

const MINUTE = 60_000;

/** The dialog. */
export function PublishDialog({ base, onDone, onClose }: PublishProps) {
  const [by, setBy] = useState<"form" | "document">("form");
  const [document, setDocument] = useState<PriceDocument>(() =>
    draftOf(base, toWire(Math.ceil(present.value / MINUTE) * MINUTE), zone.value),
  );
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  /** What the service says of the very list that is shown. */
  const [checked, setChecked] = useState<Publication | null>(null);
  const turn = useRef(0);
  const edited = () => {
    turn.current += 1;
    setChecked(null);
    setError(null);
    setProblem(null);
  };
  const edit = (changed: PriceDocument) => {
    edited();
    setDocument(changed);
  };
  const choose = (next: "form" | "document") => {
    if (next === "document") setText(JSON.stringify(document, null, 2));
    else if (!take()) return;
    setBy(next);
  };
  /** Takes what stands in the text as the list; null if it is none. */
  const take = (): PriceDocument | null => {
    const read = readDocument(text);
    setProblem(read.problem);
    if (read.document) setDocument(read.document);
    return read.document;
  };
  const send = async (dry: boolean) => {
    const sent = by === "document" ? take() : document;
    if (busy || !sent) return;
    const asked = turn.current;
    setBusy(true);
    setError(null);
    try {
      const { data } = await request<Publication>("POST", PRICE_LISTS, { body: sent, query: { dry_run: dry } });
      if (!dry) {
        note(`Price list ${data.price_list.version} is published`);
        onDone();
        return;
      }
      if (asked === turn.current) setChecked(data);
    } catch (refused) {
      setError(refused);
      // Somebody else may have published one: what would change is found anew.
      if (refused instanceof Refused && refused.status === 409) setChecked(null);
    }
    setBusy(false);
  };
  const { fields, others } = sentencesOf(
    error,
    by === "form" ? pointersOf(document) : [],
    by === "form" ? labelsOf(document) : new Map(),
  );
  return (
    <Dialog
      wide
      title="New prices"
      onClose={onClose}
      onSubmit={() => void send(checked === null)}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <BusyButton type="submit" class="primary" busy={busy} doing={checked ? "Publishing…" : "Looking…"}>
            {checked ? "Publish" : "See what changes"}
          </BusyButton>
        </>
      }
    >
      <Segments
        label="How the list is given"
        options={[
          { value: "form", text: "Form" },
          { value: "document", text: "Document" },
        ]}
        chosen={by}
        onChange={choose}
      />
      {by === "form" ? (
        <PriceForm document={document} errors={fields} onChange={edit} />
      ) : (
        <Field label="Price list" error={problem ?? undefined} hint="The JSON document, as the docs describe it.">
          {(control) => (
            <textarea
              {...control}
              class="document"
              rows={16}
              spellcheck={false}
              value={text}
              onInput={(event) => {
                edited();
                setText(event.currentTarget.value);
              }}
            />
          )}
        </Field>
      )}
      <FormErrors sentences={others} />
      {checked && <Changes of={checked} />}
    </Dialog>
  );
}
