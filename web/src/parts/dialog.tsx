// SPDX-License-Identifier: Apache-2.0
/** A modal dialog over the page: the browser's own, which keeps the focus inside and gives it back. */
import { X } from "lucide";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Fields, FieldsOf, useNewFields } from "./settled.tsx";
import { coverPage } from "../router.ts";
import { Icon } from "./icon.tsx";

export interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at the lower edge, the main one last. */
  actions?: ComponentChildren;
  wide?: boolean;
  /** False: only an action of its own ends it, neither Escape nor the cross. */
  closable?: boolean;
  /** The fields of the form that the dialog is, for who asks the service about them before they are sent. */
  fields?: Fields;
  /** Sends the form that the dialog is; not while a field shows what the form does not have. */
  onSubmit?: () => void;
  /** Something was typed or chosen: what was answered to something else is said no longer. */
  onEdit?: (() => void) | undefined;
}

/** Opens when it is drawn, closes when it is taken away. */
export function Dialog(props: DialogProps) {
  const { title, onClose, children, actions, wide, closable = true, onSubmit, onEdit } = props;
  const own = useNewFields();
  const { fields = own } = props;
  const box = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Closed while it is still in the document: one that was taken out first does not give the focus back.
  useLayoutEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    // Without a field that says so, the browser would choose the cross.
    if (dialog && !dialog.querySelector("[autofocus]")) firstOf(dialog)?.focus();
    return () => dialog?.close();
  }, []);
  const edited = useRef(false);
  const [held, setHeld] = useState(false);
  const back = useRef<() => boolean>(() => true);
  back.current = () => {
    if (edited.current) {
      // Once: who goes back again means it.
      edited.current = false;
      setHeld(true);
      return false;
    }
    onClose();
    return true;
  };
  // What a form is refused for may be out of sight: it is brought into it, once.
  const sent = useRef(false);
  const told = useRef<Element | null>(null);
  useEffect(() => {
    const wrong = sent.current ? (box.current?.querySelector(".field-error, .banner.error") ?? null) : null;
    if (wrong !== null && wrong !== told.current) wrong.scrollIntoView({ block: "nearest" });
    told.current = wrong;
  });
  useEffect(() => (closable ? coverPage({ onBack: () => back.current() }) : undefined), [closable]);
  return (
    <dialog
      ref={box}
      tabIndex={-1}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        if (closable) onClose();
      }}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <form
        method="dialog"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          sent.current = true;
          if (fields.unsettled === 0) onSubmit?.();
        }}
        onInput={() => {
          sent.current = false;
          edited.current = true;
          setHeld(false);
          onEdit?.();
        }}
      >
        <header>
          <h2 id={heading}>{title}</h2>
          {closable && (
            <button type="button" class="quiet square" aria-label="Close" onClick={onClose}>
              <Icon of={X} />
            </button>
          )}
        </header>
        <FieldsOf value={fields}>
          <div aria-live="polite">
            {held && <p class="banner warning">What you typed is still here. Go back once more to leave it.</p>}
          </div>
          <div class="dialog-body">{children}</div>
          {actions && <footer>{actions}</footer>}
        </FieldsOf>
      </form>
    </dialog>
  );
}

/** The first control of what a dialog asks, else the first of its actions. */
function firstOf(dialog: HTMLDialogElement): HTMLElement | null {
  const controls = ["input", "select", "textarea", "button", "a[href]"].map((one) => `${one}:not([disabled])`);
  const within = (part: string) => controls.map((one) => `${part} ${one}`).join(", ");
  return dialog.querySelector<HTMLElement>(within(".dialog-body")) ?? dialog.querySelector(within("footer"));
}
