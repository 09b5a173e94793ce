// SPDX-License-Identifier: Apache-2.0
/** Texts that people have in files: a template, and the files that it names. */
import { Plus, Trash2 } from "lucide";
import { useRef } from "preact/hooks";
import type { Json } from "../api/types.ts";
import type { ControlProps } from "../parts/field.tsx";
import { Icon } from "../parts/icon.tsx";
import type { FormField } from "./schema.ts";

interface FromFilesProps {
  label: string;
  /** What it says to those who do not see what it is beside. */
  spoken?: string;
  multiple?: boolean;
  onTexts: (texts: readonly (readonly [name: string, text: string])[]) => void;
}

/** A button that reads files which the user chooses. */
function FromFiles({ label, spoken, multiple = false, onTexts }: FromFilesProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class="small quiet" aria-label={spoken} onClick={() => input.current?.click()}>
        <Icon of={Plus} /> {label}
      </button>
      <input
        ref={input}
        type="file"
        hidden
        multiple={multiple}
        onChange={async ({ currentTarget: chosen }) => {
          const files = [...(chosen.files ?? [])];
          // The same file can be chosen again when it has been edited.
          chosen.value = "";
          onTexts(await Promise.all(files.map(async (file) => [file.name, await file.text()] as const)));
        }}
      />
    </>
  );
}

/** A long text, typed, pasted, or taken from a file. What was sent as an object is shown as JSON. */
export function DocumentInput(props: {
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  control: ControlProps;
  field: FormField;
}) {
  const { value, onChange, control, field } = props;
  const text = typeof value === "string" ? value : value ? JSON.stringify(value, null, 1) : "";
  return (
    <>
      <textarea
        {...control}
        class="document"
        rows={field.required ? 10 : 4}
        spellcheck={false}
        placeholder="YAML or JSON"
        value={text}
        onInput={(event) => onChange(event.currentTarget.value || undefined)}
      />
      <FromFiles
        label="From a file"
        spoken={`${field.label}: From a file`}
        onTexts={([first]) => first && onChange(first[1] || undefined)}
      />
    </>
  );
}

/** Files by name; a name may be changed to the one that the template has for it. */
export function FilesField(props: {
  field: FormField;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
}) {
  const { field, value, onChange } = props;
  const files = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
  const put = (changed: readonly (readonly [string, Json])[]) =>
    onChange(changed.length > 0 ? Object.fromEntries(changed) : undefined);
  return (
    <fieldset class="stack">
      <legend>{field.required ? field.label : `${field.label} (optional)`}</legend>
      {field.hint && <p class="hint">{field.hint}</p>}
      {files.map(([name, text], index) => (
        <div class="property-row" key={index}>
          <input
            aria-label={`Name of file ${index + 1}`}
            value={name}
            onChange={({ currentTarget: { value: typed } }) =>
              put(files.map((old, at) => (at === index ? [typed.trim() || name, text] : old)))
            }
          />
          <button
            type="button"
            class="quiet square small"
            aria-label={`Take ${name} away`}
            onClick={() => put(files.filter((_, at) => at !== index))}
          >
            <Icon of={Trash2} />
          </button>
        </div>
      ))}
      <FromFiles label="Add files" multiple onTexts={(texts) => put([...new Map([...files, ...texts])])} />
    </fieldset>
  );
}
