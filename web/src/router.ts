// SPDX-License-Identifier: Apache-2.0
/** The address bar as state: one path segment names the page, the query holds what it shows. */
import { signal } from "@preact/signals";

const BASE = new URL(".", import.meta.url);

export interface Place {
  /** "" is the home page. */
  page: string;
  params: URLSearchParams;
}

/** Values of the address by name. There are no booleans: what is on is 1 or a word, so that who reads it knows which. */
export type Params = Record<string, string | number | null | undefined>;

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
    if (!cameFromLayer()) place.value = here();
  });
}

/** What lies over the page, such as a dialog: a step back takes it away, not the page. */
export interface Layer {
  /** Called by a step back; false: it stays. */
  onBack: () => boolean;
}

const LAYER = { layer: true };
let layer: Layer | null = null;
/** The address to keep, while a layer that went by itself takes its step out of the history. */
let keeping: string | null = null;

const isOfLayer = () => (window.history.state as typeof LAYER | null)?.layer === true;

/** Notes what lies over the page now; returns what is called when it has gone. */
export function coverPage(by: Layer): () => void {
  const below = layer;
  layer = by;
  // After a step forward into it, it has its step already.
  if (!isOfLayer()) window.history.pushState(LAYER, "", window.location.href);
  return () => {
    if (layer === by) layer = below;
    if (below || !isOfLayer()) return;
    keeping = window.location.href;
    window.history.back();
  };
}

/** Handles a step in the history that is about a layer; false if it is about the page. */
function cameFromLayer(): boolean {
  if (keeping !== null) {
    window.history.replaceState(null, "", keeping);
    keeping = null;
    // Another one has come in its place meanwhile.
    if (layer) window.history.pushState(LAYER, "", window.location.href);
    return true;
  }
  const gone = layer;
  if (!gone || isOfLayer() || here().page !== place.value.page) return false;
  const address = hrefOf(place.value.page) + query(place.value.params);
  // What the page shows has changed since it was covered.
  window.history.replaceState(null, "", address);
  if (gone.onBack()) return true;
  window.history.pushState(LAYER, "", address);
  return true;
}

function query(params: URLSearchParams): string {
  const text = params.toString();
  return text ? `?${text}` : "";
}

/** Returns the address of a page. */
export function hrefOf(page: string, params: Params = {}): string {
  const url = new URL(page || ".", BASE);
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
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
    if (value === null || value === undefined || value === "") params.delete(name);
    else params.set(name, String(value));
  }
  // A layer keeps its step in the history.
  window.history.replaceState(window.history.state, "", window.location.pathname + query(params));
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
