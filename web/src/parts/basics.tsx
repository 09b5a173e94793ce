// SPDX-License-Identifier: Apache-2.0
/** Small parts that every page uses. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { plain } from "../api/errors.ts";
import { useSettled } from "./settled.tsx";
import { exactly, moment, relative, spoken } from "../time/format.ts";
import { present } from "../time/now.ts";
import { zone } from "../time/zone.ts";

/** The head of a page: its name, one sentence, and its main action. */
export function PageHead({
  title,
  lead,
  children,
}: {
  title: string;
  lead?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <header class="page-head">
      <div>
        <h1>{title}</h1>
        {lead && <p class="lead">{lead}</p>}
      </div>
      {children && <div class="page-actions">{children}</div>}
    </header>
  );
}

/** After a refusal: what would be granted, each a button. */
export function Instead({ children }: { children: ComponentChildren }) {
  return (
    <div class="stack instead">
      <p>This would do:</p>
      <p class="row">{children}</p>
    </div>
  );
}

/** A page or list with nothing in it: what it is for, and the first step. */
export function Empty({
  title,
  children,
  action,
}: {
  title: string;
  children?: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action}
    </div>
  );
}

/** Grey lines where text will be; nothing for the first 300 ms. */
export function Skeleton({ lines = 3 }: { lines?: number }) {
  const late = useLate(true);
  return (
    <div class={late ? "skeleton" : "skeleton unseen"} aria-hidden="true">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class={`w${index % 3}`} />
      ))}
    </div>
  );
}

/** True once `busy` has lasted for 300 ms. */
export function useLate(busy: boolean): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    if (!busy) {
      setLate(false);
      return;
    }
    const timer = setTimeout(() => setLate(true), 300);
    return () => clearTimeout(timer);
  }, [busy]);
  return late && busy;
}

/** A sentence about what went wrong, with a way to try again. */
export function Trouble({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <div class="banner error" role="alert">
      <p>{plain(error)}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** For operators who get no answer: what says the same on a machine of the service, and what says why. */
export function Elsewhere({ command }: { command: string }) {
  return (
    <p class="hint">
      On the machine of a manager <code>blazar-status upgrade check</code> says which of database, message bus and
      Keystone cannot be used, and why; <code>{command}</code> lists what this page would, also while API and message
      bus are down.
    </p>
  );
}

interface BusyProps extends Omit<JSX.IntrinsicElements["button"], "size"> {
  busy: boolean;
  /** Shown while it takes long, as in "Booking…". */
  doing: string;
}

/** A button whose action takes a while: it keeps its place, and says so after 300 ms. One that sends a form rests while
 * a field shows what the form does not have. */
export function BusyButton({ busy, doing, children, onClick, disabled, ...rest }: BusyProps) {
  const late = useLate(busy);
  const settled = useSettled();
  return (
    <button
      {...rest}
      disabled={disabled || (rest.type === "submit" && !settled)}
      aria-disabled={busy}
      aria-busy={busy}
      onClick={busy ? (event) => event.preventDefault() : onClick}
    >
      {late ? doing : children}
    </button>
  );
}

/** The buttons of a form in a dialog: what leaves it as it was, and what sends it. */
export function SubmitActions(props: {
  onClose: () => void;
  busy: boolean;
  doing: string;
  children: ComponentChildren;
}) {
  const { onClose, busy, doing, children } = props;
  return (
    <>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <BusyButton type="submit" class="primary" busy={busy} doing={doing}>
        {children}
      </BusyButton>
    </>
  );
}

/** An instant in the zone of the page; UTC and the distance are in its tooltip. */
export function When({ at, as = "moment" }: { at: string | number; as?: "moment" | "spoken" | "relative" }) {
  const ms = typeof at === "number" ? at : Date.parse(at);
  const now = present.value;
  const here = zone.value;
  const text = as === "relative" ? relative(ms, now) : as === "spoken" ? spoken(ms, here, now) : moment(ms, here, now);
  const other = as === "relative" ? exactly(ms, here, now) : relative(ms, now);
  return (
    <time dateTime={new Date(ms).toISOString()} title={`${other}; ${exactly(ms, "UTC", now)} UTC`}>
      {text}
    </time>
  );
}

/** A row of choices of which some are on. */
export function Chips<T extends string>(props: {
  label: string;
  options: readonly { value: T; text: string; count?: number | undefined }[];
  chosen: readonly T[];
  onChange: (chosen: T[]) => void;
}) {
  const { label, options, chosen, onChange } = props;
  const toggle = (value: T) =>
    onChange(chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value]);
  return (
    <fieldset class="chips">
      <legend class="visually-hidden">{label}</legend>
      {options.map(({ value, text, count }) => (
        <button
          key={value}
          type="button"
          class="chip"
          aria-pressed={chosen.includes(value)}
          onClick={() => toggle(value)}
        >
          {text}
          {count !== undefined && <span class="count">{count}</span>}
        </button>
      ))}
    </fieldset>
  );
}

/** A row of choices of which exactly one is on. */
export function Segments<T extends string>(props: {
  label: string;
  options: readonly { value: T; text: string }[];
  chosen: T;
  onChange: (chosen: T) => void;
}) {
  return (
    <fieldset class="segments">
      <legend class="visually-hidden">{props.label}</legend>
      {props.options.map(({ value, text }) => (
        <button key={value} type="button" aria-pressed={value === props.chosen} onClick={() => props.onChange(value)}>
          {text}
        </button>
      ))}
    </fieldset>
  );
}

/** Text to copy, as a command line. */
export function Copy({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <div class="copy">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long line scrolls, which needs the keyboard, too */}
      <pre tabIndex={0}>{text}</pre>
      <button type="button" aria-label={`Copy ${label}`} onClick={() => void copy()}>
        {copied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}
