// SPDX-License-Identifier: Apache-2.0
/** Instants and durations in words. Formatting by Intl is slow, so what was formatted is remembered. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const formats = new Map<string, Intl.DateTimeFormat>();
const remembered = new Map<string, string>();

type Style =
  | "clock"
  | "clock-seconds"
  | "day"
  | "day-year"
  | "weekday"
  | "date-key"
  | "month"
  | "day-number"
  | "weekday-short";

const STYLES: Record<Style, Intl.DateTimeFormatOptions> = {
  clock: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  "clock-seconds": { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
  day: { weekday: "short", day: "numeric", month: "short" },
  "day-year": { weekday: "short", day: "numeric", month: "short", year: "numeric" },
  weekday: { weekday: "long" },
  "date-key": { year: "numeric", month: "2-digit", day: "2-digit" },
  month: { month: "long", year: "numeric" },
  "day-number": { day: "numeric" },
  "weekday-short": { weekday: "short" },
};

/** Returns an instant in one style. */
export function formatted(at: number, zone: string, style: Style): string {
  const key = `${style}|${zone}|${at}`;
  let text = remembered.get(key);
  if (text === undefined) {
    let format = formats.get(`${style}|${zone}`);
    if (!format) {
      format = new Intl.DateTimeFormat("en-GB", { ...STYLES[style], timeZone: zone });
      formats.set(`${style}|${zone}`, format);
    }
    // The space before "am" and the comma after the weekday do not help anybody.
    text = format.format(at).replace(",", "");
    if (remembered.size > 50_000) remembered.clear();
    remembered.set(key, text);
  }
  return text;
}

function year(at: number, zone: string): string {
  return formatted(at, zone, "date-key").slice(-4);
}

/** Returns "Thu 26 Nov 16:00"; with the year if it is not the present one. */
export function moment(at: number, zone: string, now: number): string {
  const day = formatted(at, zone, year(at, zone) === year(now, zone) ? "day" : "day-year");
  return `${day} ${clock(at, zone)}`;
}

/** Returns "16:00". */
export function clock(at: number, zone: string): string {
  return formatted(at, zone, "clock");
}

/** Returns "Thu 26 Nov 16:00:27": for those who look closely. */
export function exactly(at: number, zone: string, now: number): string {
  const seconds = at % MINUTE === 0 ? "" : formatted(at, zone, "clock-seconds").slice(-3);
  return `${moment(at, zone, now)}${seconds}`;
}

/** Returns the instant as a person would say it: "today 16:00", "tomorrow 09:00", "Friday 12:00", "Thu 3 Dec 14:00". */
export function spoken(at: number, zone: string, now: number): string {
  const days = daysBetween(now, at, zone);
  if (days === 0) return `today ${clock(at, zone)}`;
  if (days === 1) return `tomorrow ${clock(at, zone)}`;
  if (days === -1) return `yesterday ${clock(at, zone)}`;
  if (days > 1 && days < 7) return `${formatted(at, zone, "weekday")} ${clock(at, zone)}`;
  return moment(at, zone, now);
}

/** Returns "Thu 26 Nov 16:00 – Sun 29 Nov 16:00"; the day once if both are of one. */
export function range(start: number, end: number, zone: string, now: number): string {
  const same = daysBetween(start, end, zone) === 0;
  // Of some minutes the seconds matter.
  const seconds = start % MINUTE !== 0 || end % MINUTE !== 0;
  if (seconds && end - start < 5 * MINUTE) return `${exactly(start, zone, now)} – ${exactly(end, zone, now)}`;
  return `${moment(start, zone, now)} – ${same ? clock(end, zone) : moment(end, zone, now)}`;
}

/** Returns how many midnights of the zone lie between two instants. */
export function daysBetween(from: number, to: number, zone: string): number {
  return dayNumber(to, zone) - dayNumber(from, zone);
}

function dayNumber(at: number, zone: string): number {
  const [day, month, of] = formatted(at, zone, "date-key").split("/").map(Number);
  return Math.round(Date.UTC(of!, month! - 1, day!) / DAY);
}

/** Returns "3 days", "2 h 30 min", "45 min", "30 s": the two largest units. */
export function duration(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  const days = Math.floor(minutes / 1440);
  const hours = Math.floor((minutes % 1440) / 60);
  const rest = minutes % 60;
  if (days > 0) return [plural(days, "day"), hours > 0 && days < 7 ? `${hours} h` : ""].filter(Boolean).join(" ");
  if (hours > 0) return [`${hours} h`, rest > 0 ? `${rest} min` : ""].filter(Boolean).join(" ");
  return `${rest} min`;
}

/** Returns how long ago something was that has happened: the present of a page is some seconds old. */
export function ago(at: number, now: number): string {
  return relative(Math.min(at, now - 1), now);
}

/** Returns a rough "in 3 h" or "5 days ago", in one unit. */
export function relative(at: number, now: number): string {
  const distance = Math.abs(at - now);
  const text =
    distance < MINUTE
      ? "less than a minute"
      : distance < 90 * MINUTE
        ? `${Math.round(distance / MINUTE)} min`
        : distance < 36 * HOUR
          ? `${Math.round(distance / HOUR)} h`
          : plural(Math.round(distance / DAY), "day");
  return at >= now ? `in ${text}` : `${text} ago`;
}

/** Returns "1 host" or "2 hosts". */
export function plural(count: number, word: string, many = `${word}s`): string {
  return `${count} ${count === 1 ? word : many}`;
}
