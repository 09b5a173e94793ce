// SPDX-License-Identifier: Apache-2.0
/** Which hosts go into maintenance: by their names, or by what they have in common. */
import { useRef, useState } from "preact/hooks";
import { Requirement, type Parts } from "../../forms/requirement.tsx";
import type { NamedHost } from "../../api/types.ts";
import { Segments } from "../../parts/basics.tsx";
import { plural } from "../../time/format.ts";

/** Long lists are searched, not scrolled. */
const SHOWN = 100;

export type By = "names" | "property";

export interface HostsFieldProps {
  all: readonly NamedHost[];
  by: By;
  chosen: ReadonlySet<string>;
  parts: Parts;
  error: string | undefined;
  onBy: (by: By) => void;
  onChosen: (chosen: ReadonlySet<string>) => void;
  onParts: (parts: Parts) => void;
}

/** Asks for hosts. */
export function HostsField(props: HostsFieldProps) {
  const { by, parts, error, onBy, onParts } = props;
  return (
    <fieldset class={error ? "stack field wrong" : "stack field"}>
      <legend>Which hosts</legend>
      <Segments
        label="How hosts are chosen"
        options={[
          { value: "names", text: "by name" },
          { value: "property", text: "by a property" },
        ]}
        chosen={by}
        onChange={onBy}
      />
      {by === "names" ? (
        <Names {...props} />
      ) : (
        <div class="sentence compact">
          <span>all hosts</span>
          <Requirement
            value={parts}
            wrong={error !== undefined}
            onChange={(changed) => onParts({ ...parts, ...changed })}
            none="Hosts have no properties yet."
          />
        </div>
      )}
      {error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}

function Names({ all, chosen, onChosen }: HostsFieldProps) {
  const [text, setText] = useState("");
  const wanted = text.trim().toLowerCase();
  const found = all.filter((host) => host.name.toLowerCase().includes(wanted));
  // What the page was opened with comes first; after that rows keep their place under the pointer.
  const first = useRef(chosen).current;
  const listed = [...found]
    .sort((a, b) => Number(first.has(b.id)) - Number(first.has(a.id)))
    .filter((host, index) => index < SHOWN || chosen.has(host.id));
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    onChosen(next);
  };
  return (
    <>
      <label class="choose">
        <span>Search</span>
        <input
          type="search"
          maxLength={80}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          // In a form Enter would open the window.
          onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
        />
      </label>
      <p class="hint" aria-live="polite">
        {chosen.size > 0 ? `${plural(chosen.size, "host")} chosen` : "None is chosen"}
        {wanted && `; ${found.length} found`}
        {found.length > listed.length && `, ${listed.length} are shown`}.
        {wanted && found.some((host) => !chosen.has(host.id)) && (
          <>
            {" "}
            <button
              type="button"
              class="link"
              onClick={() => onChosen(new Set([...chosen, ...found.map((host) => host.id)]))}
            >
              Choose all {found.length}
            </button>
          </>
        )}
        {chosen.size > 1 && (
          <>
            {" "}
            <button type="button" class="link" onClick={() => onChosen(new Set())}>
              Choose none
            </button>
          </>
        )}
      </p>
      <ul class="hypervisors host-choice" aria-label="Hosts">
        {listed.map((host) => (
          <li key={host.id}>
            <label class="check">
              <input type="checkbox" checked={chosen.has(host.id)} onChange={() => toggle(host.id)} />
              {host.name}
            </label>
          </li>
        ))}
      </ul>
    </>
  );
}
