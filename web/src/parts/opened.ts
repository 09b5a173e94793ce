// SPDX-License-Identifier: Apache-2.0
/** What a link opens on the page that it leads to, as the dialog that registers hosts. */
import { useLayoutEffect, useState } from "preact/hooks";
import { place, setParams } from "../router.ts";

/** Returns whether something is open, at first if the address says so, and what opens and closes it. */
export function useOpened(name: string): [open: boolean, setOpen: (open: boolean) => void] {
  const asked = place.value.params.has(name);
  const [open, setOpen] = useState(asked);
  // Once: who goes back, or has closed it, is not asked again. Before a dialog takes a step in the history.
  useLayoutEffect(() => {
    if (asked) setParams({ [name]: null });
  }, []);
  return [open, setOpen];
}
