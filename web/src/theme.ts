// SPDX-License-Identifier: Apache-2.0
/** Light or dark: as the system has it, or as the user chose. */
import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const KEPT = "blazar.theme";

export const theme = signal<Theme>("auto");

/** Applies what the user chose before. */
export function startTheme(): void {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem(KEPT);
  } catch {
    // The browser forbids storage: the system's choice stands.
  }
  if (kept === "light" || kept === "dark") chooseTheme(kept);
}

/** Changes the theme and keeps it. */
export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  try {
    if (chosen === "auto") localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, chosen);
  } catch {
    // The browser forbids storage: the choice lives as long as the page.
  }
}
