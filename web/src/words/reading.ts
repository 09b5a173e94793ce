// SPDX-License-Identifier: Apache-2.0
/** Values read from an address; what makes no sense is nothing. Pure. */
import type { Json } from "../api/types.ts";
import type { Values } from "../forms/schema.ts";

export function instant(text: string | null): number | null {
  const at = text ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : at;
}

export function whole(value: unknown, least: number): number | null {
  if (value === null || value === undefined || value === "") return null;
  const number = Number(value);
  return Number.isInteger(number) && number >= least ? number : null;
}

export function counted(value: unknown): number | null {
  return whole(value, 1);
}

export function object(text: string | null): Values {
  try {
    const value: unknown = JSON.parse(text ?? "{}");
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Values) : {};
  } catch {
    return {};
  }
}

export function list(text: string | null): Json[] {
  if (!text) return [];
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? (found as Json[]) : [];
  } catch {
    return [];
  }
}
