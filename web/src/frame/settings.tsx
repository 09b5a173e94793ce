// SPDX-License-Identifier: Apache-2.0
/** The zone and the theme. */
import { Globe, Monitor, Moon, Sun } from "lucide";
import { useState } from "preact/hooks";
import { Field } from "../parts/field.tsx";
import { Icon } from "../parts/icon.tsx";
import { type Theme, chooseTheme, theme } from "../theme.ts";
import { clock } from "../time/format.ts";
import { present } from "../time/now.ts";
import { allZones, chooseZone, homeZone, offsetName, shortName, zone, zoneName } from "../time/zone.ts";
import { Menu } from "../parts/menu.tsx";

/** Shows the zone of all times; opens a choice of others. */
export function ZoneButton() {
  const label = (
    <>
      <Icon of={Globe} />
      <span class="wide-only">{zoneName.value}</span>
      <span class="narrow-hidden muted">{clock(Math.floor(present.value / 60_000) * 60_000, zone.value)}</span>
    </>
  );
  return (
    <Menu label={label} title={`Times are in ${zoneName.value} (${offsetName(present.value, zone.value)})`}>
      {(close) => <ZoneChoice close={close} />}
    </Menu>
  );
}

function ZoneChoice({ close }: { close: () => void }) {
  const [text, setText] = useState("");
  const wanted = text.trim().toLowerCase().replaceAll(" ", "_");
  const matching = allZones()
    .filter((name) => name.toLowerCase().includes(wanted))
    .slice(0, wanted ? 12 : 2);
  return (
    <div class="stack">
      <Field label="Time zone">
        {(control) => (
          <input
            {...control}
            type="search"
            placeholder="Find another, such as Tokyo"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        )}
      </Field>
      <ul class="choices">
        {matching.map((name) => (
          <li key={name}>
            <button
              type="button"
              aria-pressed={name === zone.value}
              onClick={() => {
                chooseZone(name);
                close();
              }}
            >
              <span>{shortName(name)}</span>
              <span class="muted">
                {name === homeZone ? "this browser's" : name} · {offsetName(present.value, name)}
              </span>
            </button>
          </li>
        ))}
        {matching.length === 0 && <li class="muted">No zone has this name.</li>}
      </ul>
    </div>
  );
}

const THEMES: { value: Theme; text: string; icon: typeof Sun }[] = [
  { value: "auto", text: "As the system", icon: Monitor },
  { value: "light", text: "Light", icon: Sun },
  { value: "dark", text: "Dark", icon: Moon },
];

/** Light, dark, or as the system has it. */
export function ThemeButton() {
  const now = THEMES.find((one) => one.value === theme.value) ?? THEMES[0]!;
  return (
    <Menu label={<Icon of={now.icon} />} title="Light or dark">
      {(close) => (
        <ul class="choices">
          {THEMES.map(({ value, text, icon }) => (
            <li key={value}>
              <button
                type="button"
                aria-pressed={value === theme.value}
                onClick={() => {
                  chooseTheme(value);
                  close();
                }}
              >
                <Icon of={icon} />
                <span>{text}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </Menu>
  );
}
