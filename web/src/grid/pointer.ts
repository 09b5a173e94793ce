// SPDX-License-Identifier: Apache-2.0
/** The pointer in the grid: drag over free time marks, drag of a block or its edges moves it, drag of the header the view. */
import type { Board } from "./board.ts";
import { LINE, element, keepInSight, placed } from "./dom.ts";
import { type Block, type Edges, type Row, freeUntil, isFree, isFreeFor, movedTo, snap, snapStep } from "./layout.ts";

const CLICK = 4;
/** How long a finger rests on a block before it drags it, in milliseconds. */
const REST_MS = 450;

/** A block that is dragged; `grabbed` is how long after its start the pointer has taken hold of it. */
interface Change {
  kind: "change";
  edges: Edges;
  row: Row;
  line: number;
  block: Block;
  grabbed: number;
  x: number;
  to: { start: number; end: number } | null;
}

type Drag =
  | { kind: "mark"; line: number; start: number; x: number; y: number; to: { line: number; end: number } | null }
  | Change
  | { kind: "pan"; x: number; left: number };

/** Handles mouse, pen and touch of one grid. Touch scrolls; a tap on free time marks it, and a block is dragged after a rest. */
export class Pointer {
  #drag: Drag | null = null;
  /** True after a drag until its click, which is none. */
  #dragged = false;
  #rest: ReturnType<typeof setTimeout> | undefined;
  readonly #preview = element("div", "grid-preview");
  readonly #text = element("span", "grid-preview-text");
  #over: Element | null = null;

  constructor(
    private readonly grid: Board,
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
    // What a finger drags does not scroll.
    grid.box.addEventListener("touchmove", this.#touched, { passive: false });
    head.addEventListener("pointerdown", this.#pan);
    document.addEventListener("keydown", this.#escape);
  }

  destroy(): void {
    document.removeEventListener("keydown", this.#escape);
  }

  #down = (event: PointerEvent): void => {
    this.#dragged = false;
    if (event.button !== 0 || this.#drag) return;
    const target = event.target as HTMLElement;
    if (target.closest(".grid-head, .line-name, .line-group")) return;
    const line = this.grid.lineAt(event.clientY);
    const shown = this.grid.lines[line];
    if (shown?.kind !== "row") return;
    const key = target.closest<HTMLElement>(".block:not(.block-gap)")?.dataset.block;
    const change = key === undefined ? null : this.#changeOf(shown.row, line, key, target, event);
    if (event.pointerType === "touch") {
      clearTimeout(this.#rest);
      if (change) this.#rest = setTimeout(() => this.#grab(change, event), REST_MS);
      return;
    }
    if (change) {
      // It is a click until it moves; what is captured would be no click on the block.
      this.#drag = change;
      return;
    }
    if (key === undefined) {
      const start = this.#snapped(this.grid.instantAt(event.clientX), Math.floor);
      this.#drag = {
        kind: "mark",
        line,
        start: Math.max(start, this.grid.settings.now),
        x: event.clientX,
        y: event.clientY,
        to: null,
      };
    } else return;
    this.grid.box.setPointerCapture(event.pointerId);
    event.preventDefault();
  };

  /** Returns what the drag of a block would change; null if there is no such block. */
  #changeOf(row: Row, line: number, key: string, target: HTMLElement, event: PointerEvent): Change | null {
    const block = row.blocks.find((one) => one.key === key);
    if (!block) return null;
    const edges = target.closest(".block-end") ? "end" : target.closest(".block-start") ? "start" : "both";
    const grabbed = this.grid.instantAt(event.clientX) - block.start;
    return { kind: "change", edges, row, line, block, grabbed, x: event.clientX, to: null };
  }

  /** Takes a block with a finger that has rested on it. */
  #grab(change: Change, event: PointerEvent): void {
    this.#drag = change;
    this.grid.pointed.tell(null);
    this.#show(change.line, change.line, change.block.start, change.block.end, "");
    this.grid.box.setPointerCapture(event.pointerId);
  }

  #touched = (event: TouchEvent): void => {
    if (this.#drag) event.preventDefault();
    else clearTimeout(this.#rest);
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
    if (drag.kind === "change") {
      this.#change(drag, event);
      return;
    }
    if (!drag.to && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < CLICK) return;
    const end = this.#snapped(this.grid.instantAt(event.clientX), Math.ceil);
    drag.to = { line: this.grid.lineAt(event.clientY), end };
    this.grid.pointed.tell(null);
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
    this.#end();
    if (!drag) return;
    if (drag.kind === "change" && drag.to) this.#changed(drag, drag.to);
    else if (drag.kind === "mark" && drag.to) {
      const { free, start, until } = this.#marked(drag);
      if (free.length > 0) this.grid.callbacks.onMark({ rows: free, start, end: until });
      else this.grid.callbacks.announce("Nothing of what you marked is free.");
    } else if (drag.kind === "mark") this.#tap(event);
  };

  /** Shows where a block would lie. One that stays where it is says so once. */
  #change(drag: Change, event: PointerEvent): void {
    if (event.buttons === 0 && event.pointerType !== "touch") {
      this.#end();
      return;
    }
    if (!drag.to && Math.abs(event.clientX - drag.x) < CLICK) return;
    this.grid.box.setPointerCapture(event.pointerId);
    const { block, row, edges } = drag;
    if (edges === "end" ? !block.movable : !block.startMovable) {
      this.#end();
      this.#dragged = true;
      this.grid.callbacks.onStuck(block);
      return;
    }
    const { now, to } = this.grid.settings;
    const at = this.grid.instantAt(event.clientX) - (edges === "both" ? drag.grabbed : 0);
    const step = snapStep(this.grid.scale.pixelsPerMs);
    drag.to = movedTo(block, edges, this.#snapped(at, Math.round), { step, now });
    this.#dragged = true;
    this.grid.pointed.tell(null);
    const fits =
      edges === "end" ? drag.to.end <= freeUntil(row, block, to) : isFreeFor(row, block, drag.to.start, drag.to.end);
    this.#show(drag.line, drag.line, drag.to.start, drag.to.end, fits ? "" : "promised to somebody else");
  }

  #changed({ row, block, edges }: Change, { start, end }: { start: number; end: number }): void {
    if (start === block.start && end === block.end) return;
    if (edges === "end") this.grid.callbacks.onExtend(row, block, end);
    else this.grid.callbacks.onMove(row, block, start, end);
  }

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
    keepInSight(this.#text, names + scale.x(start), this.grid.box, names);
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
      this.grid.pointed.tell(null);
      return;
    }
    const { row, block } = found;
    this.grid.pointed.tell({
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
    if (this.#dragged) {
      this.#dragged = false;
      return;
    }
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
    this.grid.pointed.tell(null);
  };

  /** What was below the pointer has moved away from under it. */
  #scrolled = (): void => {
    if (this.#over) this.#leave();
  };

  #end(): void {
    clearTimeout(this.#rest);
    this.#drag = null;
    this.#preview.remove();
    this.grid.box.classList.remove("panning");
  }
}
