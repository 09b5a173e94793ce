// SPDX-License-Identifier: Apache-2.0
/** One line in the document: its name, and the blocks or the heat of a window. Elements of blocks are kept by key. */
import type { Callbacks, DrawnLine } from "./board.ts";
import { HEADER, LINE, element, placed, whenIdle } from "./dom.ts";
import { paintHeat } from "./heat.ts";
import { type Block, type Line, type Row, type Scale, blocksBetween, lanesOf, sizeInWords } from "./layout.ts";

const THIN = 5;
const LONG = 180;

/** A line as it is drawn. */
export class LineView implements DrawnLine {
  readonly element = element("div", "line");
  readonly header = element("div", "line-name");
  readonly #name = element("span", "line-title");
  readonly #detail = element("span", "line-detail");
  readonly #blocks = new Map<string, HTMLElement>();
  #shown = new WeakMap<HTMLElement, Block>();
  #canvas: HTMLCanvasElement | null = null;
  #cell: HTMLElement | null = null;
  /** The window whose blocks are in the document. */
  drawn: { from: number; to: number } | null = null;

  constructor(
    public line: Line,
    public index: number,
    private readonly callbacks: Callbacks,
  ) {
    this.element.setAttribute("role", "row");
    this.header.setAttribute("role", "rowheader");
    this.header.tabIndex = -1;
    this.header.append(this.#name, this.#detail);
    this.element.append(this.header);
    this.element.dataset.key = line.key;
    this.#write();
  }

  /** Shows another state of the line; returns whether its blocks must be drawn again. */
  put(line: Line, index: number): boolean {
    const before = this.line;
    this.line = line;
    this.index = index;
    this.#write();
    if (line.kind === "row" && before.kind === "row") return line.row.blocks !== before.row.blocks;
    if (line.kind === "group" && before.kind === "group") return line.group.heat !== before.group.heat;
    return true;
  }

  #write(): void {
    const { line } = this;
    this.element.style.top = `${HEADER + this.index * LINE}px`;
    this.element.setAttribute("aria-rowindex", String(this.index + 1));
    const group = line.kind === "group";
    this.element.classList.toggle("line-group", group);
    this.element.setAttribute("aria-level", group ? "1" : "2");
    if (group) {
      this.element.setAttribute("aria-expanded", String(line.group.open));
      this.#name.textContent = line.group.name;
      this.#detail.textContent = sizeInWords(line.group);
    } else {
      this.#name.textContent = line.row.name;
      this.#detail.textContent = line.row.detail;
      this.header.title = [line.row.name, line.row.detail].filter(Boolean).join(" · ");
    }
  }

  /** Has all texts written again: times are in another zone. */
  forget(): void {
    this.#shown = new WeakMap();
    this.drawn = null;
  }

  /** Draws the blocks that overlap the window. */
  draw(scale: Scale, names: number, from: number, to: number): void {
    this.drawn = { from, to };
    if (this.line.kind === "group") this.#drawHeat(scale, names, from, to);
    else this.#drawBlocks(this.line.row, scale, names, from, to);
  }

  #drawHeat(scale: Scale, names: number, from: number, to: number): void {
    if (this.line.kind !== "group") return;
    const { group } = this.line;
    if (!group.heat) return;
    if (!this.#canvas || !this.#cell) {
      this.#canvas = document.createElement("canvas");
      this.#cell = element("div", "heat");
      this.#cell.setAttribute("role", "gridcell");
      this.#cell.append(this.#canvas);
      this.element.append(this.#cell);
    }
    const said = this.callbacks.sayGroup(group);
    this.#cell.setAttribute("aria-label", said);
    this.#cell.title = said;
    placed(this.#cell, names + scale.x(from));
    paintHeat(this.#canvas, group.heat, scale, from, to, LINE);
  }

  #drawBlocks(row: Row, scale: Scale, names: number, from: number, to: number): void {
    const blocks = blocksBetween(row.blocks, from, to);
    const { lanes, count } = lanesOf(blocks);
    const height = (LINE - 6) / count;
    const kept = new Set<string>();
    for (const [index, block] of blocks.entries()) {
      kept.add(block.key);
      const shown = this.#blocks.get(block.key) ?? this.#make(block);
      if (this.#shown.get(shown) !== block) this.#describe(shown, row, block);
      // Cut at the window, so that the label of a long block begins where it is seen; edges in sight stay exact.
      const left = scale.x(Math.max(block.start, from));
      const width = Math.max(2, scale.x(Math.min(block.end, to)) - left);
      placed(shown, names + left, width);
      // What sticks costs while scrolling: only long blocks keep their label in sight.
      shown.classList.toggle("long", width > LONG && block.label !== "");
      // A label that is cut after some letters says nothing, and hides what the block is drawn with.
      shown.classList.toggle("tiny", width < 72);
      // Beside another one a label is small; of three and more nothing could be read.
      const beside = block.kind === "out" || block.kind === "cleaning" ? 1 : count;
      shown.classList.toggle("half", beside === 2);
      shown.classList.toggle("flat", beside > 2);
      const thin = block.kind === "cleaning";
      shown.style.top = `${thin ? LINE - 3 - THIN : 3 + lanes[index]! * height}px`;
      shown.style.height = `${thin ? THIN : block.kind === "out" ? LINE - 6 : height - (count > 1 ? 1 : 0)}px`;
    }
    for (const [key, shown] of this.#blocks) {
      if (kept.has(key) || shown === document.activeElement) continue;
      shown.remove();
      this.#blocks.delete(key);
    }
  }

  /** Lets blocks that are cut at an edge of what is seen show the beginning of their label in the part that is seen. */
  cutLabels(scale: Scale, from: number, to: number): void {
    if (this.line.kind === "group") return;
    for (const shown of this.#blocks.values()) {
      const block = this.#shown.get(shown);
      if (!block || block.label === "") continue;
      const cut = (block.start < from && block.end > from) || (block.start < to && block.end > to);
      if (cut === shown.classList.contains("cut") && !cut) continue;
      shown.classList.toggle("cut", cut);
      const seen = Math.min(block.end, to) - Math.max(block.start, from);
      if (cut) shown.style.setProperty("--seen", `${Math.max(0, Math.floor(seen * scale.pixelsPerMs))}px`);
    }
  }

  #make(block: Block): HTMLElement {
    const shown = element("div", "");
    shown.setAttribute("role", "gridcell");
    shown.tabIndex = -1;
    shown.dataset.block = block.key;
    this.#blocks.set(block.key, shown);
    this.element.append(shown);
    return shown;
  }

  #describe(shown: HTMLElement, row: Row, block: Block): void {
    this.#shown.set(shown, block);
    const classes = ["block", `block-${block.kind}`, block.mark && `block-${block.mark}`];
    if (block.dim) classes.push("block-dim");
    else if (block.colour !== undefined) classes.push(`colour-${block.colour}`);
    shown.className = classes.filter(Boolean).join(" ");
    const label = shown.querySelector(".block-label");
    if (label) label.textContent = block.label;
    else if (block.label) {
      const made = element("span", "block-label");
      made.textContent = block.label;
      shown.prepend(made);
    }
    // Formatting times is slow: the sentence is written when the browser has time, or when the block gets the focus.
    whenIdle(shown, () => shown.setAttribute("aria-label", this.callbacks.say(row, block, block.start, block.end)));
    shown.classList.toggle("startable", block.startMovable === true);
    toggleHandle(shown, "block-end", block.movable === true);
    toggleHandle(shown, "block-start", block.startMovable === true);
  }

  /** Returns the element of a block if it is in the document. */
  blockElement(key: string): HTMLElement | undefined {
    return this.#blocks.get(key);
  }
}

/** Adds or removes what an edge is dragged by. */
function toggleHandle(shown: HTMLElement, name: string, wanted: boolean): void {
  const handle = shown.querySelector(`.${name}`);
  if (!wanted) handle?.remove();
  else if (!handle) {
    const made = element("span", name);
    made.setAttribute("aria-hidden", "true");
    shown.append(made);
  }
}
