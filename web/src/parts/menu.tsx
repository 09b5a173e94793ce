// SPDX-License-Identifier: Apache-2.0
/** A button that opens a small panel beside it, by the browser's popover: Escape and a click outside close it. */
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";

export interface MenuProps {
  label: ComponentChildren;
  title: string;
  children: (close: () => void) => ComponentChildren;
}

/** Draws the button; what is in the panel is drawn only while it is open. */
export function Menu({ label, title, children }: MenuProps) {
  const id = useId();
  const panel = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const place = () => {
    const at = button.current?.getBoundingClientRect();
    if (!at || !panel.current) return;
    // Where there is more room above, it opens upwards.
    const { clientHeight } = document.documentElement;
    const below = clientHeight - at.bottom;
    const up = below < 240 && at.top > below;
    panel.current.style.top = up ? "auto" : `${at.bottom + 6}px`;
    panel.current.style.bottom = up ? `${clientHeight - at.top + 6}px` : "auto";
    panel.current.style.right = `${Math.max(8, document.documentElement.clientWidth - at.right)}px`;
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class="quiet"
        title={title}
        aria-expanded={open}
        aria-haspopup="dialog"
        popovertarget={id}
        onClick={place}
      >
        {label}
      </button>
      <div
        ref={panel}
        id={id}
        class="menu"
        role="dialog"
        aria-label={title}
        popover="auto"
        onToggle={(event) => setOpen((event as unknown as ToggleEvent).newState === "open")}
      >
        {open && children(() => panel.current?.hidePopover())}
      </div>
    </>
  );
}
