// SPDX-License-Identifier: Apache-2.0
/** What a link opens on the page that it leads to, as the dialog that registers hosts: the address says that it is open. */
import { place, setParams } from "../router.ts";

/** Returns whether something is open, and what opens and closes it. */
export function opened(name: string): [open: boolean, setOpen: (open: boolean) => void] {
  return [place.value.params.has(name), (open) => setParams({ [name]: open ? 1 : null })];
}
