// SPDX-License-Identifier: Apache-2.0
/** What the pointer or the focus is on, kept true while the data below it change. */
import type { Board, Pointed } from "./board.ts";
import { type Row, isFree } from "./layout.ts";

/** Returns what was pointed at as it is in the row by now, without where it is drawn; null if it is there no more. */
export function renewed(was: Omit<Pointed, "box">, row: Row | undefined): Omit<Pointed, "box"> | null {
  if (!row) return null;
  const { start, end } = was;
  if (was.block === null) return isFree(row, start, end) ? { row, block: null, start, end } : null;
  const block = row.blocks.find(({ key }) => key === was.block?.key);
  return block ? { row, block, start: block.start, end: block.end } : null;
}

/** Tells the page what is pointed at, once more if that has changed. */
export class PointedAt {
  #told: Pointed | null = null;

  constructor(private readonly grid: Board) {}

  tell(pointed: Pointed | null): void {
    this.#told = pointed;
    this.grid.callbacks.onPoint(pointed);
  }

  /** To be called when other data are drawn. */
  renew(): void {
    const was = this.#told;
    if (!was) return;
    const view = this.grid.viewOf(was.row.key);
    const row = view?.line.kind === "row" ? view.line.row : undefined;
    if (row === was.row) return;
    const now = renewed(was, row);
    const shown = now?.block && view?.blockElement(now.block.key);
    this.tell(now && { ...now, box: shown ? shown.getBoundingClientRect() : was.box });
  }
}
