// SPDX-License-Identifier: Apache-2.0
/** The end of a maintenance window, with its length. */
import { DateTimeField } from "../../parts/datetime.tsx";
import { duration } from "../../time/format.ts";

interface UntilProps {
  start: number | null;
  end: number | null;
  error: string | undefined;
  onChange: (at: number | null) => void;
  /** Said after the length. */
  more?: string;
}

/** Tells whether a window ends after it starts. */
export function isOrderly(start: number | null, end: number | null): boolean {
  return start !== null && end !== null && end > start;
}

/** The field; it says so if the end is before the start. */
export function UntilField({ start, end, error, onChange, more = "" }: UntilProps) {
  const reversed = start !== null && end !== null && end <= start;
  return (
    <>
      <DateTimeField
        label="Until"
        value={end}
        error={error}
        wrong={reversed ? "It ends before it starts." : undefined}
        onChange={onChange}
      />
      {start !== null && end !== null && !reversed && (
        <p class="hint">
          That is {duration(end - start)}.{more}
        </p>
      )}
    </>
  );
}
