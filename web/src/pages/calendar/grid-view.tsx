// SPDX-License-Identifier: Apache-2.0
/** The grid in a Preact page: made once, given data as often as it changes. */
import { useEffect, useRef } from "preact/hooks";
import type { Callbacks, Settings } from "../../grid/board.ts";
import { Grid } from "../../grid/grid.ts";
import type { Group } from "../../grid/layout.ts";
import { theme } from "../../theme.ts";

export interface GridViewProps {
  label: string;
  groups: readonly Group[];
  settings: Settings;
  /** What to show at first, and whenever `look.turn` changes. */
  look: { middle: number; span: number; turn: number };
  callbacks: Callbacks;
  onGrid?: (grid: Grid) => void;
}

/** Draws the grid. Callbacks may change with every render; the grid always calls the latest. */
export function GridView({ label, groups, settings, look, callbacks, onGrid }: GridViewProps) {
  const box = useRef<HTMLDivElement>(null);
  const grid = useRef<Grid | null>(null);
  const latest = useRef(callbacks);
  latest.current = callbacks;
  useEffect(() => {
    const made = new Grid(box.current!, label, forwarding(latest), settings);
    grid.current = made;
    made.look(look.middle, look.span);
    onGrid?.(made);
    return () => made.destroy();
  }, []);
  useEffect(() => grid.current?.setSettings(settings), [settings.from, settings.to, settings.zone, settings.now]);
  useEffect(() => grid.current?.look(look.middle, look.span), [look.turn]);
  useEffect(() => grid.current?.setGroups(groups), [groups]);
  useEffect(() => grid.current?.recolour(), [theme.value]);
  return <div ref={box} />;
}

function forwarding(latest: { current: Callbacks }): Callbacks {
  return {
    say: (...all) => latest.current.say(...all),
    sayGroup: (...all) => latest.current.sayGroup(...all),
    sayWindow: (...all) => latest.current.sayWindow(...all),
    onPoint: (...all) => latest.current.onPoint(...all),
    onOpen: (...all) => latest.current.onOpen(...all),
    onMark: (...all) => latest.current.onMark(...all),
    onExtend: (...all) => latest.current.onExtend(...all),
    onMove: (...all) => latest.current.onMove(...all),
    onStuck: (...all) => latest.current.onStuck(...all),
    onToggle: (...all) => latest.current.onToggle(...all),
    onLook: (...all) => latest.current.onLook(...all),
    announce: (...all) => latest.current.announce(...all),
  };
}
