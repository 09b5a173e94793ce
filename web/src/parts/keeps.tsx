// SPDX-License-Identifier: Apache-2.0
/** The check box of a form that says whether a lease keeps its hosts. */

interface Props {
  keeps: boolean;
  onChange: (keeps: boolean) => void;
}

export function KeepsField({ keeps, onChange }: Props) {
  return (
    <label class="check">
      <input type="checkbox" checked={keeps} onChange={(event) => onChange(event.currentTarget.checked)} />
      Keep the hosts that are chosen, even if others need them
    </label>
  );
}
