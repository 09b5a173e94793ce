// SPDX-License-Identifier: Apache-2.0
/** Has the browser save a file. */

/** Saves a text as a table for spreadsheets under a name. */
export function saveCsv(text: string, name: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
