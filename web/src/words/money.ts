// SPDX-License-Identifier: Apache-2.0
/** Amounts of money in words: what the service says to the last digit is never computed with. Pure. */

/** Returns "1,234.50 EUR" for "1234.500000000": without zeros beyond the second decimal. */
export function money(amount: string, currency: string): string {
  return `${digitsOf(amount, 2)} ${currency}`;
}

/** Returns a decimal with commas between thousands; zeros at its end are left out down to so many decimals. */
export function digitsOf(amount: string, least = 0): string {
  const [, sign = "", whole = "", part = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(amount) ?? [];
  if (whole === "") return amount;
  const kept = part.replace(/0+$/, "");
  // A currency without decimals has none here either.
  const decimals = part === "" ? "" : kept.padEnd(Math.min(least, part.length), "0");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return `${sign === "-" ? "−" : ""}${grouped}${decimals === "" ? "" : `.${decimals}`}`;
}

/** Returns it to the hundredth, half to even; what is less than that keeps its digits. */
export function moneyToHundredths(amount: string, currency: string): string {
  const [, sign = "", whole = "", part = ""] = /^(-?)(\d+)\.(\d{3,})$/.exec(amount) ?? [];
  if (whole === "") return money(amount, currency);
  const hundredths = BigInt(whole + part.slice(0, 2));
  const [rest, half] = [BigInt(part.slice(2)), 5n * 10n ** BigInt(part.length - 3)];
  const up = rest > half || (rest === half && hundredths % 2n === 1n);
  const digits = (hundredths + (up ? 1n : 0n)).toString().padStart(3, "0");
  if (Number(digits) === 0) return money(amount, currency);
  return money(`${sign}${digits.slice(0, -2)}.${digits.slice(-2)}`, currency);
}

/** Tells whether an amount is zero. */
export function isNothing(amount: string): boolean {
  return Number(amount) === 0;
}
