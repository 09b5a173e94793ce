// SPDX-License-Identifier: Apache-2.0
/** The keyboard in the grid: one tab stop, arrows between blocks and gaps, marking and extending without a mouse. */
import type { Board } from "./board.ts";
import { HEADER, LINE, element, keepInSight, nowFor, placed } from "./dom.ts";
import {
  type Block,
  type Row,
  type Segment,
  type Edges,
  freeUntil,
  isFree,
  isFreeFor,
  movedTo,
  segmentAt,
  segmentsOf,
  snap,
  snapStep,
} from "./layout.ts";

/** Where the focus is: on the name of a line, or at an instant of a row. */
interface Spot {
  line: string;
  at: number | null;
}

/** A gap that is being marked, from a line to another one, or a block that is being moved. */
type Doing =
  | { kind: "mark"; row: Row; start: number; end: number; limit: number; from: number; to: number }
  | { kind: "change"; edges: Edges; row: Row; block: Block; start: number; end: number };

const BEGINNINGS: Readonly<Record<Edges, string>> = {
  start: "Moving the start. Enter confirms, Escape leaves. ",
  end: "Moving the end. Enter confirms, Escape leaves. ",
  both: "Moving all of it. Left and right move, Enter confirms, Escape leaves. ",
};

/** Handles focus and keys of one grid. */
export class Keys {
  #spot: Spot | null = null;
  #doing: Doing | null = null;
  readonly #gap = element("div", "block block-gap");
  readonly #preview = element("div", "grid-preview");
  readonly #text = element("span", "grid-preview-text");
  #stop: HTMLElement | null = null;

  constructor(private readonly grid: Board) {
    this.#gap.setAttribute("role", "gridcell");
    this.#gap.tabIndex = -1;
    this.#preview.setAttribute("aria-hidden", "true");
    this.#preview.append(this.#text);
    grid.box.addEventListener("keydown", this.#pressed);
    grid.box.addEventListener("focusin", this.#focused);
    grid.box.addEventListener("focusout", this.#left);
  }

  /** Takes up changed lines: the focus was on something that exists. */
  refresh(): void {
    if (this.#spot && this.grid.positionOf(this.#spot.line) === undefined) this.#spot = null;
  }

  /** After drawing: if what Tab led to is no longer in the document, it leads to the first line in sight. */
  keepStop(first: number): void {
    const line = this.grid.lines[first];
    if (line && !this.#stop?.isConnected) this.#setStop(this.grid.viewOf(line.key)?.header ?? null);
  }

  /** Puts the focus on the name of the line that is nearest to one that is gone. */
  focusNear(index: number): void {
    this.#spot = null;
    if (this.grid.lines.length > 0) this.#toHeader(Math.min(index, this.grid.lines.length - 1));
  }

  #setStop(next: HTMLElement | null): void {
    if (!next || next === this.#stop) return;
    if (this.#stop) this.#stop.tabIndex = -1;
    next.tabIndex = 0;
    this.#stop = next;
  }

  #focused = (event: FocusEvent): void => {
    const target = event.target as HTMLElement;
    const line = target.closest<HTMLElement>(".line")?.dataset.key;
    if (line === undefined) return;
    this.#setStop(target);
    const view = this.grid.viewOf(line);
    if (!view) return;
    if (target === view.header || view.line.kind === "group") {
      this.#spot = { line, at: null };
      this.grid.pointed.tell(null);
      return;
    }
    const { row } = view.line;
    const block = row.blocks.find((one) => one.key === target.dataset.block) ?? null;
    const { from, to } = this.grid.seen();
    if (block && (this.#spot?.line !== line || !covers(block, this.#spot.at))) {
      this.#spot = { line, at: Math.min(Math.max(block.start, from), Math.max(block.start, to - 1)) };
    }
    const [start, end] = block ? [block.start, block.end] : [Number(target.dataset.start), Number(target.dataset.end)];
    this.grid.pointed.tell({ row, block, start, end, box: target.getBoundingClientRect() });
  };

  #left = (event: FocusEvent): void => {
    if (!this.grid.box.contains(event.relatedTarget as Node | null)) {
      this.#cancel();
      this.grid.pointed.tell(null);
    }
  };

  #pressed = (event: KeyboardEvent): void => {
    if (event.altKey || event.metaKey) return;
    const handled = this.#doing ? this.#whileDoing(event) : this.#moving(event);
    if (handled) event.preventDefault();
  };

  #moving(event: KeyboardEvent): boolean {
    const { grid } = this;
    const index = this.#spot ? (grid.positionOf(this.#spot.line) ?? 0) : 0;
    const page = Math.max(1, Math.floor((grid.box.clientHeight - HEADER) / LINE) - 1);
    if (event.shiftKey && (event.key === "ArrowLeft" || event.key === "ArrowRight"))
      return this.#beginChange("end", event.key === "ArrowRight" ? 1 : -1);
    switch (event.key) {
      case "ArrowUp":
        return this.#toLine(index - 1);
      case "ArrowDown":
        return this.#toLine(index + 1);
      case "PageUp":
        return this.#toLine(index - page);
      case "PageDown":
        return this.#toLine(index + page);
      case "ArrowLeft":
        return this.#across(index, -1);
      case "ArrowRight":
        return this.#across(index, 1);
      case "Home":
        return event.ctrlKey ? this.#toLine(0) : this.#toEdge(index, "first");
      case "End":
        return event.ctrlKey ? this.#toLine(grid.lines.length - 1) : this.#toEdge(index, "last");
      case "Enter":
      case " ":
        return this.#act(index);
      case "+":
      case "=":
        grid.zoom(2, this.#spot?.at ?? undefined);
        return true;
      case "-":
        grid.zoom(0.5, this.#spot?.at ?? undefined);
        return true;
      case "0":
        grid.look((grid.settings.from + grid.settings.to) / 2, grid.settings.to - grid.settings.from);
        return true;
      case "m":
      case "M":
        return this.#beginChange("both", 0);
      case "s":
      case "S":
        return this.#beginChange("start", 0);
      case "t":
      case "T":
        grid.look(grid.settings.now + grid.seen().span * 0.4);
        return true;
      default:
        return false;
    }
  }

  #toLine(wanted: number): boolean {
    const index = Math.min(Math.max(wanted, 0), this.grid.lines.length - 1);
    const line = this.grid.lines[index];
    if (!line) return true;
    const at = this.#spot?.at ?? null;
    if (at === null || line.kind === "group") {
      // The instant is kept over the head of a group.
      this.grid.reveal(index);
      this.grid.viewOf(line.key)?.header.focus({ preventScroll: true });
      this.#spot = { line: line.key, at };
    } else this.#toSegment(index, at);
    return true;
  }

  #segments(row: Row): Segment[] {
    return segmentsOf(row.blocks, this.grid.settings.from, this.grid.settings.to);
  }

  #across(index: number, direction: -1 | 1): boolean {
    const line = this.grid.lines[index];
    if (!line || !this.#spot) return false;
    if (line.kind === "group") {
      if (line.group.open !== direction > 0) this.grid.callbacks.onToggle(line.group);
      return true;
    }
    const segments = this.#segments(line.row);
    const { from } = this.grid.seen();
    if (this.#onHeader(line.key)) {
      if (direction > 0) this.#toSegment(index, Math.max(from, segments[0]?.start ?? from));
      return true;
    }
    const focused = this.#focusedSegment(segments);
    const next = focused + direction;
    if (next < 0) this.#toHeader(index);
    else if (segments[next]) this.#toSegment(index, segments[next].start, next);
    return true;
  }

  #onHeader(key: string): boolean {
    return this.#spot?.at === null || document.activeElement === this.grid.viewOf(key)?.header;
  }

  /** Returns the index of the segment with the focus; overlapping blocks are told apart by their key. */
  #focusedSegment(segments: readonly Segment[]): number {
    const key = (document.activeElement as HTMLElement | null)?.dataset.block;
    const found = key === undefined ? -1 : segments.findIndex((segment) => segment.block?.key === key);
    return found >= 0 ? found : segmentAt(segments, this.#spot?.at ?? 0);
  }

  #toEdge(index: number, edge: "first" | "last"): boolean {
    const line = this.grid.lines[index];
    if (line?.kind !== "row") return true;
    const segments = this.#segments(line.row);
    const segment = segments[edge === "first" ? 0 : segments.length - 1];
    if (segment) this.#toSegment(index, segment.start, segments.indexOf(segment));
    return true;
  }

  #toHeader(index: number): void {
    const line = this.grid.lines[index];
    if (!line) return;
    this.grid.reveal(index);
    this.#spot = { line: line.key, at: null };
    this.grid.viewOf(line.key)?.header.focus({ preventScroll: true });
  }

  #toSegment(index: number, at: number, which?: number): void {
    const line = this.grid.lines[index];
    if (line?.kind !== "row") return;
    const segments = this.#segments(line.row);
    const segment = segments[which ?? segmentAt(segments, at)];
    if (!segment) return;
    this.#spot = { line: line.key, at: Math.min(Math.max(at, segment.start), segment.end - 1) };
    this.grid.reveal(index, segment.start, segment.end);
    const view = this.grid.viewOf(line.key);
    if (!view) return;
    let target: HTMLElement | undefined;
    if (segment.block) target = view.blockElement(segment.block.key);
    else {
      target = this.#gap;
      const { scale, names } = this.grid;
      this.#gap.dataset.start = String(segment.start);
      this.#gap.dataset.end = String(segment.end);
      this.#gap.setAttribute("aria-label", this.grid.callbacks.say(line.row, null, segment.start, segment.end));
      placed(this.#gap, names + scale.x(segment.start), (segment.end - segment.start) * scale.pixelsPerMs);
      if (this.#gap.parentElement !== view.element) view.element.append(this.#gap);
    }
    if (!target) return;
    nowFor(target);
    target.focus({ preventScroll: true });
  }

  #act(index: number): boolean {
    const line = this.grid.lines[index];
    if (!line) return true;
    if (line.kind === "group") {
      this.grid.callbacks.onToggle(line.group);
      return true;
    }
    if (this.#onHeader(line.key)) return true;
    const segment = this.#segments(line.row)[this.#focusedSegment(this.#segments(line.row))];
    if (!segment) return true;
    if (segment.block) {
      const box = (document.activeElement as HTMLElement).getBoundingClientRect();
      this.grid.callbacks.onOpen(line.row, segment.block, box);
    } else this.#beginMark(line.row, segment);
    return true;
  }

  /** Marks from the first step of the gap that is seen and not past. */
  #beginMark(row: Row, gap: Segment): void {
    const step = snapStep(this.grid.scale.pixelsPerMs);
    const { from } = this.grid.seen();
    const { now } = this.grid.settings;
    if (gap.end <= now) {
      this.grid.callbacks.announce("This is past.");
      return;
    }
    const earliest = Math.max(gap.start, from, now);
    const snapped =
      earliest === now ? now : Math.ceil((earliest - this.grid.settings.from) / step) * step + this.grid.settings.from;
    const start = snapped < gap.end ? Math.max(snapped, gap.start) : earliest;
    const line = this.grid.positionOf(this.#spot?.line ?? "") ?? 0;
    const end = Math.min(start + step, gap.end);
    this.#doing = { kind: "mark", row, start, end, limit: gap.end, from: line, to: line };
    this.#show("Marking. Left and right move the end, Shift with up and down adds rows, Enter books, Escape leaves. ");
  }

  #beginChange(edges: Edges, direction: 1 | -1 | 0): boolean {
    const line = this.grid.lines[this.grid.positionOf(this.#spot?.line ?? "") ?? -1];
    if (line?.kind !== "row") return false;
    const segment = this.#segments(line.row)[this.#focusedSegment(this.#segments(line.row))];
    const block = segment?.block;
    if (!block) return false;
    if (edges === "end" ? !block.movable : !block.startMovable) {
      this.grid.callbacks.onStuck(block);
      return true;
    }
    this.#doing = { kind: "change", edges, row: line.row, block, start: block.start, end: block.end };
    if (direction === 0) this.#show(BEGINNINGS[edges]);
    else this.#step(direction, BEGINNINGS[edges]);
    return true;
  }

  #whileDoing(event: KeyboardEvent): boolean {
    switch (event.key) {
      case "ArrowLeft":
        this.#step(-1);
        return true;
      case "ArrowRight":
        this.#step(1);
        return true;
      case "ArrowUp":
      case "ArrowDown":
        if (event.shiftKey) this.#addRow(event.key === "ArrowDown" ? 1 : -1);
        return true;
      case "Escape":
        this.#cancel();
        this.grid.callbacks.announce("Left as it was.");
        return true;
      case "Enter":
        this.#finish();
        return true;
      default:
        return event.key !== "Tab";
    }
  }

  #step(direction: 1 | -1, before = ""): void {
    const doing = this.#doing;
    if (!doing) return;
    const step = snapStep(this.grid.scale.pixelsPerMs) * direction;
    const { now, to } = this.grid.settings;
    if (doing.kind === "mark")
      doing.end = Math.min(Math.max(doing.end + step, doing.start + Math.abs(step)), doing.limit);
    else {
      const edge = doing.edges === "end" ? "end" : "start";
      const at = snap(doing[edge] + step, Math.abs(step), doing.block[edge]);
      Object.assign(doing, movedTo(doing.block, doing.edges, Math.min(at, to), { step: Math.abs(step), now }));
    }
    this.#show(before);
  }

  /** Marks one row more, or one less; heads of groups are passed over. */
  #addRow(direction: 1 | -1): void {
    const doing = this.#doing;
    if (doing?.kind !== "mark") return;
    let next = doing.to + direction;
    while (this.grid.lines[next]?.kind === "group") next += direction;
    if (!this.grid.lines[next]) return;
    doing.to = next;
    this.grid.reveal(next);
    this.#show();
  }

  /** Returns the rows that are marked. */
  #rows(doing: Extract<Doing, { kind: "mark" }>): Row[] {
    const [first, last] = [Math.min(doing.from, doing.to), Math.max(doing.from, doing.to)];
    return this.grid.lines.slice(first, last + 1).flatMap((line) => (line.kind === "row" ? [line.row] : []));
  }

  #show(before = ""): void {
    const doing = this.#doing;
    const index = this.grid.positionOf(this.#spot?.line ?? "");
    if (!doing || index === undefined) return;
    const { start, end } = doing;
    const marks = doing.kind === "mark";
    const moves = !marks && doing.edges !== "end";
    if (!marks || doing.from === doing.to) this.grid.reveal(index, ...(moves ? [start, start + 1] : [end - 1, end]));
    const { scale, names, callbacks, settings } = this.grid;
    const [first, last] = marks ? [Math.min(doing.from, doing.to), Math.max(doing.from, doing.to)] : [index, index];
    placed(this.#preview, names + scale.x(start), (end - start) * scale.pixelsPerMs);
    this.#preview.style.top = `${this.grid.top(first) + 3}px`;
    this.#preview.style.height = `${(last - first + 1) * LINE - 6}px`;
    const rows = marks ? this.#rows(doing) : [doing.row];
    const free = marks ? rows.filter((row) => isFree(row, start, end)).length : 0;
    const problem = marks
      ? free === rows.length
        ? ""
        : `${free} of ${rows.length} free`
      : (moves ? isFreeFor(doing.row, doing.block, start, end) : end <= freeUntil(doing.row, doing.block, settings.to))
        ? ""
        : "promised to somebody else";
    this.#preview.classList.toggle("refused", problem !== "");
    const more = problem === "" && rows.length > 1 ? `${rows.length} rows` : problem;
    const said = callbacks.sayWindow(start, end);
    this.#text.textContent = [said, more].filter(Boolean).join(" · ");
    if (!this.#preview.isConnected) this.grid.overlay(this.#preview);
    keepInSight(this.#text, names + scale.x(start), this.grid.box, names);
    callbacks.announce(`${before}${[said, more].filter(Boolean).join(", ")}`);
  }

  #finish(): void {
    const doing = this.#doing;
    const rows = doing?.kind === "mark" ? this.#rows(doing).filter((row) => isFree(row, doing.start, doing.end)) : [];
    this.#cancel();
    if (doing?.kind === "mark") this.grid.callbacks.onMark({ rows, start: doing.start, end: doing.end });
    else if (doing?.edges === "end") this.grid.callbacks.onExtend(doing.row, doing.block, doing.end);
    else if (doing) this.grid.callbacks.onMove(doing.row, doing.block, doing.start, doing.end);
  }

  #cancel(): void {
    this.#doing = null;
    this.#preview.remove();
  }
}

function covers(block: Block, at: number | null): boolean {
  return at !== null && block.start <= at && at < block.end;
}
