// SPDX-License-Identifier: Apache-2.0
/** What a page gives a grid and hears of it, and the grid as its parts see it: line, keys, pointer. */
import type { Block, Group, Line, Row, Scale } from "./layout.ts";

/** What was marked to be booked. */
export interface Marked {
  rows: Row[];
  start: number;
  end: number;
}

export interface Callbacks {
  /** A sentence for a block or a gap, for screen readers. */
  say: (row: Row, block: Block | null, start: number, end: number) => string;
  sayGroup: (group: Group) => string;
  /** A window in a few words, shown while dragging. */
  sayWindow: (start: number, end: number) => string;
  onPoint: (pointed: Pointed | null) => void;
  onOpen: (row: Row, block: Block, box: DOMRect) => void;
  onMark: (marked: Marked) => void;
  onExtend: (row: Row, block: Block, end: number) => void;
  /** A block is to lie elsewhere, or to begin at another time. */
  onMove: (row: Row, block: Block, start: number, end: number) => void;
  /** Somebody tries to drag a block that stays where it is. */
  onStuck: (block: Block) => void;
  onToggle: (group: Group) => void;
  /** The user has scrolled or zoomed: the window that is seen now. */
  onLook: (from: number, to: number) => void;
  announce: (text: string) => void;
}

export interface Settings {
  from: number;
  to: number;
  zone: string;
  now: number;
}

/** What the pointer or the focus is on. */
export interface Pointed {
  row: Row;
  block: Block | null;
  start: number;
  end: number;
  box: DOMRect;
}

/** A line that is in the document. */
export interface DrawnLine {
  readonly line: Line;
  readonly element: HTMLElement;
  readonly header: HTMLElement;
  /** Returns the element of a block if it is in the document. */
  blockElement(key: string): HTMLElement | undefined;
}

/** What the parts of a grid ask of it. */
export interface Board {
  readonly box: HTMLElement;
  readonly callbacks: Callbacks;
  readonly settings: Settings;
  readonly lines: readonly Line[];
  readonly scale: Scale;
  /** Width of the column of names. */
  readonly names: number;
  readonly pointed: { tell(pointed: Pointed | null): void };
  positionOf(key: string): number | undefined;
  viewOf(key: string): DrawnLine | undefined;
  /** Returns the window that is seen. */
  seen(): { from: number; to: number; span: number };
  look(middle: number, span?: number): void;
  zoom(factor: number, anchor?: number): void;
  /** Scrolls a line, and if given a window, into what is seen. */
  reveal(index: number, start?: number, end?: number): void;
  /** Returns the instant below a point of the screen. */
  instantAt(clientX: number): number;
  /** Returns the index of the line below a point of the screen. */
  lineAt(clientY: number): number;
  /** Returns the top of a line inside of the grid. */
  top(index: number): number;
  /** Adds an element above the lines, such as what is being marked. */
  overlay(shown: HTMLElement): void;
}
