// SPDX-License-Identifier: Apache-2.0
/** The pointer in the grid: drag over free time marks, drag of an end extends, drag of the header moves the view. */
import { LINE, element, placed } from "./dom.ts";
import type { Grid } from "./grid.ts";
import { type Block, type Row, freeUntil, isFree, snap, snapStep } from "./layout.ts";

const CLICK = 4;

type Drag =
  | { kind: "mark"; line: number; start: number; x: number; y: number; to: { line: number; end: number } | null }
  | { kind: "extend"; row: Row; line: number; block: Block; end: number; moved: boolean }
  | { kind: "pan"; x: number; left: number };

/** Handles mouse, pen and touch of one grid. Touch never drags: it scrolls, and a tap on free time shows its card. */
export class Pointer {
  #drag: Drag | null = null;
  readonly #preview = element("div", "grid-preview");
  readonly #text = element("span", "grid-preview-text");
  #over: Element | null = null;

  constructor(
    private readonly grid: Grid,
    head: HTMLElement,
  ) {
    this.#preview.setAttribute("aria-hidden", "true");
    this.#preview.append(this.#text);
    grid.box.addEventListener("pointerdown", this.#down);
    grid.box.addEventListener("pointermove", this.#move);
    grid.box.addEventListener("pointerup", this.#up);
    grid.box.addEventListener("pointercancel", this.#cancel);
    grid.box.addEventListener("pointerleave", this.#leave);
    grid.box.addEventListener("scroll", this.#scrolled, { passive: true });
    grid.box.addEventListener("click", this.#click);
    head.addEventListener("pointerdown", this.#pan);
    document.addEventListener("keydown", this.#escape);
  }

  destroy(): void {
    document.removeEventListener("keydown", this.#escape);
  }

  #down = (event: PointerEvent): void => {
    if (event.button !== 0 || event.pointerType === "touch" || this.#drag) return;
    const target = event.target as HTMLElement;
    if (target.closest(".grid-head, .line-name, .line-group")) return;
    const line = this.grid.lineAt(event.clientY);
    const shown = this.grid.lines[line];
    if (shown?.kind !== "row") return;
    const key = target.closest<HTMLElement>(".block:not(.block-gap)")?.dataset.block;
    if (key !== undefined) {
      const block = shown.row.blocks.find((one) => one.key === key);
      if (!block || !target.closest(".block-end")) return;
      this.#drag = { kind: "extend", row: shown.row, line, block, end: block.end, moved: false };
    } else {
      const start = this.#snapped(this.grid.instantAt(event.clientX), Math.floor);
      this.#drag = {
        kind: "mark",
        line,
        start: Math.max(start, this.grid.settings.now),
        x: event.clientX,
        y: event.clientY,
        to: null,
      };
    }
    this.grid.box.setPointerCapture(event.pointerId);
    event.preventDefault();
  };

  #pan = (event: PointerEvent): void => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    this.#drag = { kind: "pan", x: event.clientX, left: this.grid.box.scrollLeft };
    this.grid.box.setPointerCapture(event.pointerId);
    this.grid.box.classList.add("panning");
    event.preventDefault();
  };

  #move = (event: PointerEvent): void => {
    const drag = this.#drag;
    if (!drag) {
      this.#hover(event);
      return;
    }
    if (drag.kind === "pan") {
      this.grid.box.scrollLeft = drag.left - (event.clientX - drag.x);
      return;
    }
    this.#scrollAtEdges(event);
    if (drag.kind === "extend") {
      const step = snapStep(this.grid.scale.pixelsPerMs);
      const end = this.#snapped(this.grid.instantAt(event.clientX), Math.round);
      drag.end = Math.max(end, drag.block.start + step, this.grid.settings.now);
      drag.moved = true;
      const fits = drag.end <= freeUntil(drag.row, drag.block, this.grid.settings.to);
      this.#show(drag.line, drag.line, drag.block.start, drag.end, fits ? "" : "promised to somebody else");
      return;
    }
    if (!drag.to && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < CLICK) return;
    const end = this.#snapped(this.grid.instantAt(event.clientX), Math.ceil);
    drag.to = { line: this.grid.lineAt(event.clientY), end };
    this.grid.callbacks.onPoint(null);
    const { rows, free, start, until } = this.#marked(drag);
    const problem =
      free.length === rows.length ? "" : free.length === 0 ? "not free" : `${free.length} of ${rows.length} free`;
    this.#show(
      drag.line,
      drag.to.line,
      start,
      until,
      problem,
      rows.length > 1 && problem === "" ? `${rows.length} rows` : "",
    );
  };

  #up = (event: PointerEvent): void => {
    const drag = this.#drag;
    if (!drag) return;
    this.#end();
    if (drag.kind === "extend" && drag.moved && drag.end !== drag.block.end) {
      this.grid.callbacks.onExtend(drag.row, drag.block, drag.end);
    } else if (drag.kind === "mark" && drag.to) {
      const { free, start, until } = this.#marked(drag);
      if (free.length > 0) this.grid.callbacks.onMark({ rows: free, start, end: until });
      else this.grid.callbacks.announce("Nothing of what you marked is free.");
    } else if (drag.kind === "mark") this.#tap(event);
  };

  /** Returns the rows of what is being marked, those of them that are free, and its window. */
  #marked(drag: Extract<Drag, { kind: "mark" }>): { rows: Row[]; free: Row[]; start: number; until: number } {
    const to = drag.to ?? { line: drag.line, end: drag.start };
    const [first, last] = [Math.min(drag.line, to.line), Math.max(drag.line, to.line)];
    const step = snapStep(this.grid.scale.pixelsPerMs);
    const back = to.end <= drag.start;
    const start = Math.max(back ? to.end - step : drag.start, this.grid.settings.now);
    const until = Math.max(back ? drag.start + step : to.end, start + step);
    const rows: Row[] = [];
    for (let index = first; index <= last; index++) {
      const line = this.grid.lines[index];
      if (line?.kind === "row") rows.push(line.row);
    }
    return { rows, free: rows.filter((row) => isFree(row, start, until)), start, until };
  }

  #show(first: number, last: number, start: number, end: number, problem: string, more = ""): void {
    const { scale, names, callbacks } = this.grid;
    const top = Math.min(first, last);
    placed(this.#preview, names + scale.x(start), Math.max(2, (end - start) * scale.pixelsPerMs));
    this.#preview.style.top = `${this.grid.top(top) + 3}px`;
    this.#preview.style.height = `${(Math.abs(last - first) + 1) * LINE - 6}px`;
    this.#preview.classList.toggle("refused", problem !== "");
    this.#text.textContent = [callbacks.sayWindow(start, end), more, problem].filter(Boolean).join(" · ");
    if (!this.#preview.isConnected) this.grid.overlay(this.#preview);
  }

  #snapped(at: number, round: (value: number) => number): number {
    const step = snapStep(this.grid.scale.pixelsPerMs);
    const origin = this.grid.settings.from;
    return round === Math.round ? snap(at, step, origin) : origin + round((at - origin) / step) * step;
  }

  #scrollAtEdges(event: PointerEvent): void {
    const box = this.grid.box.getBoundingClientRect();
    if (event.clientX > box.right - 30) this.grid.box.scrollLeft += 16;
    else if (event.clientX < box.left + this.grid.names + 20) this.grid.box.scrollLeft -= 16;
    if (event.clientY > box.bottom - 24) this.grid.box.scrollTop += 10;
    else if (event.clientY < box.top + 60) this.grid.box.scrollTop -= 10;
  }

  #hover(event: PointerEvent): void {
    if (event.pointerType === "touch") return;
    const target = (event.target as Element).closest<HTMLElement>(".block:not(.block-gap)");
    if (target === this.#over) return;
    this.#over = target;
    const found = target ? this.#blockOf(target) : null;
    if (!target || !found) {
      this.grid.callbacks.onPoint(null);
      return;
    }
    const { row, block } = found;
    this.grid.callbacks.onPoint({
      row,
      block,
      start: block.start,
      end: block.end,
      box: target.getBoundingClientRect(),
    });
  }

  #blockOf(target: HTMLElement): { row: Row; block: Block } | null {
    const line = this.grid.viewOf(target.closest<HTMLElement>(".line")?.dataset.key ?? "")?.line;
    if (line?.kind !== "row") return null;
    const block = line.row.blocks.find((one) => one.key === target.dataset.block);
    return block ? { row: line.row, block } : null;
  }

  #click = (event: MouseEvent): void => {
    const target = event.target as HTMLElement;
    const key = target.closest<HTMLElement>(".line")?.dataset.key;
    const line = key === undefined ? undefined : this.grid.viewOf(key)?.line;
    if (line?.kind === "group") {
      this.grid.callbacks.onToggle(line.group);
      return;
    }
    const block = target.closest<HTMLElement>(".block:not(.block-gap)");
    const found = block ? this.#blockOf(block) : null;
    if (block && found) this.grid.callbacks.onOpen(found.row, found.block, block.getBoundingClientRect());
    else if ((event as PointerEvent).pointerType === "touch") this.#tap(event);
  };

  /** A tap or a click on free time proposes the step there. */
  #tap(event: MouseEvent): void {
    const line = this.grid.lines[this.grid.lineAt(event.clientY)];
    if (line?.kind !== "row" || (event.target as Element).closest(".line-name, .grid-head")) return;
    const step = Math.max(snapStep(this.grid.scale.pixelsPerMs), 3_600_000);
    const at = this.grid.instantAt(event.clientX);
    const start = Math.max(this.#snapped(at, Math.floor), this.grid.settings.now);
    if (at < this.grid.settings.now - step || !isFree(line.row, start, start + step)) return;
    this.grid.callbacks.onMark({ rows: [line.row], start, end: start + step });
  }

  #escape = (event: KeyboardEvent): void => {
    if (event.key === "Escape" && this.#drag) this.#end();
  };

  #cancel = (): void => this.#end();

  #leave = (): void => {
    if (this.#drag) return;
    this.#over = null;
    this.grid.callbacks.onPoint(null);
  };

  /** What was below the pointer has moved away from under it. */
  #scrolled = (): void => {
    if (this.#over) this.#leave();
  };

  #end(): void {
    this.#drag = null;
    this.#preview.remove();
    this.grid.box.classList.remove("panning");
  }
}
