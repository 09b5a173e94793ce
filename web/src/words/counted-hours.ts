// SPDX-License-Identifier: Apache-2.0
/** What hours are of, by the measure that counts them. Pure. */

const HOURS: Readonly<Record<string, string>> = {
  host: "host hours",
  vcpu: "vCPU hours",
  card: "card hours",
  gigabyte: "GiB hours of volumes",
  instance: "server hours",
  floatingip: "hours of floating IPs",
};

/** Returns what a measure counts by the hour: "host hours", "vCPU hours". */
export function hoursOfMeasure(measure: string): string {
  return HOURS[measure] ?? `${measure.replaceAll("_", " ")} hours`;
}
