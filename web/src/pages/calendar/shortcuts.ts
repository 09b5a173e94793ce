// SPDX-License-Identifier: Apache-2.0
/** Keys that work anywhere on a page, but where one types or chooses. The grid takes those that it has itself before. */
import { useEffect, useRef } from "preact/hooks";

const TAKEN = "input, textarea, select, dialog, [role=menu], [contenteditable]";

/** Does something for each of some keys, as long as the component is shown. */
export function useShortcuts(actions: Readonly<Record<string, () => void>>): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
      const target = event.target as Element | null;
      const action = latest.current[event.key];
      if (!action || target?.closest(TAKEN) || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      action();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}
