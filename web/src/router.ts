// SPDX-License-Identifier: Apache-2.0
/** The address bar as state: one path segment names the page, the query holds what it shows. */
import { signal } from "@preact/signals";

const BASE = new URL(".", import.meta.url);

export interface Place {
  /** "" is the home page. */
  page: string;
  params: URLSearchParams;
}

export type Params = Record<string, string | number | boolean | null | undefined>;

function here(): Place {
  const { pathname, search } = window.location;
  const rest = pathname.startsWith(BASE.pathname) ? pathname.slice(BASE.pathname.length) : "";
  return { page: decodeURIComponent(rest.split("/")[0] ?? ""), params: new URLSearchParams(search) };
}

export const place = signal<Place>({ page: "", params: new URLSearchParams() });

/** Reads the address now and whenever the user goes back or forward. */
export function startRouter(): void {
  place.value = here();
  window.addEventListener("popstate", () => {
    place.value = here();
  });
}

/** Returns the address of a page. */
export function hrefOf(page: string, params: Params = {}): string {
  const url = new URL(page || ".", BASE);
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "" && value !== false)
      url.searchParams.set(name, String(value));
  }
  return url.pathname + url.search;
}

/** Goes to a page. */
export function go(page: string, params: Params = {}): void {
  window.history.pushState(null, "", hrefOf(page, params));
  place.value = here();
  window.scrollTo(0, 0);
}

/** Changes some of the query of the present page, without a step in the history. Null takes one away. */
export function setParams(changes: Params): void {
  const params = new URLSearchParams(place.value.params);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "" || value === false) params.delete(name);
    else params.set(name, String(value));
  }
  const query = params.toString();
  window.history.replaceState(null, "", window.location.pathname + (query ? `?${query}` : ""));
  place.value = here();
}

/** Follows a click on a link inside of the pages; modified clicks stay with the browser. */
export function followed(event: MouseEvent): void {
  if (
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  ) {
    return;
  }
  const link = (event.target as Element | null)?.closest("a");
  if (!link || link.target || link.origin !== window.location.origin || link.hasAttribute("download")) return;
  if (!link.pathname.startsWith(BASE.pathname)) return;
  event.preventDefault();
  if (link.href === window.location.href) return;
  window.history.pushState(null, "", link.pathname + link.search);
  place.value = here();
  window.scrollTo(0, 0);
}
