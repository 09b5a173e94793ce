// SPDX-License-Identifier: Apache-2.0
/** The present as a signal, for countdowns. */
import { signal } from "@preact/signals";
import { now } from "../api/client.ts";

/** The service's present in milliseconds, renewed every 10 s and when the page is looked at again. */
export const present = signal(now());

/** Starts the clock. */
export function startClock(): void {
  const renew = () => {
    present.value = now();
  };
  renew();
  setInterval(renew, 10_000);
  document.addEventListener("visibilitychange", renew);
}
