// SPDX-License-Identifier: Apache-2.0
/** The focus is never lost: if what has it goes away, the page or the dialog around it takes it. */

/** Watches the document from now on. */
export function keepFocus(): void {
  let last: Element | null = null;
  document.addEventListener("focusin", (event) => {
    last = event.target as Element;
  });
  // Browsers differ in whether a removed element tells that it has lost the focus.
  new MutationObserver(() => {
    if (!last || last.isConnected) return;
    last = null;
    if (document.activeElement !== null && document.activeElement !== document.body) return;
    const around = document.querySelector<HTMLElement>("dialog[open]") ?? document.getElementById("main");
    around?.focus({ preventScroll: true });
  }).observe(document.body, { childList: true, subtree: true });
}
