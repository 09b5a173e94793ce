// SPDX-License-Identifier: Apache-2.0
/**
 * A calendar's grid: rows of resources, time across; only what can be seen is in the document.
 *
 * Drawing goes at most once per frame, with at most ten new rows in it; geometry is set through CSSOM, as the policy of
 * the pages asks. Knows nothing of the API: the page gives it groups and hears of what the user wants.
 */
import type { Board, Callbacks, Settings } from "./board.ts";
import { HEADER, LINE, element, placed } from "./dom.ts";
import { forgetColours } from "./heat.ts";
import { Keys } from "./keys.ts";
import { type Group, type Line, Scale, linesOf } from "./layout.ts";
import { PointedAt } from "./pointed.ts";
import { Pointer } from "./pointer.ts";
import { LineView } from "./line.ts";
import { ticksOf } from "./ticks.ts";

const AROUND = 8;
const NEW_LINES_PER_FRAME = 8;
/** With many blocks in a line fewer lines are drawn at once. */
const FRAME_MS = 10;
const HOUR = 3_600_000;
const NARROWEST = HOUR;
const WIDEST = 184 * 24 * HOUR;

/** The grid. Make it once, give it data as often as it changes. */
export class Grid implements Board {
  readonly box: HTMLElement;
  readonly #inner = element("div", "grid-inner");
  readonly #ticks = element("div", "grid-ticks");
  readonly #back = element("div", "grid-back");
  readonly #nowLine = element("div", "grid-now");
  readonly #views = new Map<string, LineView>();
  readonly keys: Keys;
  readonly pointed = new PointedAt(this);
  readonly #pointer: Pointer;
  readonly #resized: ResizeObserver;
  readonly #themes = matchMedia("(prefers-color-scheme: dark)");
  lines: readonly Line[] = [];
  scale: Scale;
  #positions = new Map<string, number>();
  #frame = 0;
  #cutting: ReturnType<typeof setTimeout> | undefined;
  #drawn = { from: 0, to: 0 };
  #span = 7 * 24 * HOUR;
  #names = 0;

  constructor(
    box: HTMLElement,
    label: string,
    readonly callbacks: Callbacks,
    public settings: Settings,
  ) {
    this.box = box;
    this.scale = new Scale(settings.from, settings.to, 1e-6);
    box.setAttribute("role", "treegrid");
    box.setAttribute("aria-label", label);
    this.#setBusy(true);
    box.classList.add("grid");
    const head = element("div", "grid-head");
    head.setAttribute("role", "presentation");
    const corner = element("div", "grid-corner");
    head.append(corner, this.#ticks);
    this.#ticks.setAttribute("aria-hidden", "true");
    this.#back.setAttribute("aria-hidden", "true");
    this.#inner.setAttribute("role", "presentation");
    const gutter = element("div", "grid-gutter");
    gutter.setAttribute("role", "presentation");
    this.#inner.append(this.#back, head, gutter);
    box.append(this.#inner);
    this.keys = new Keys(this);
    this.#pointer = new Pointer(this, head);
    box.addEventListener("scroll", this.#scrolled, { passive: true });
    box.addEventListener("wheel", this.#wheeled, { passive: false });
    this.#resized = new ResizeObserver(() => this.look(this.middle(), this.#span));
    this.#resized.observe(box);
    this.#themes.addEventListener("change", this.recolour);
  }

  destroy(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#cutting);
    this.#resized.disconnect();
    this.#themes.removeEventListener("change", this.recolour);
    this.#pointer.destroy();
  }

  /** Shows other data, keeping scroll, focus and whatever is being dragged. */
  setGroups(groups: readonly Group[]): void {
    this.lines = linesOf(groups);
    this.#positions = new Map(this.lines.map((line, index) => [line.key, index]));
    this.box.setAttribute("aria-rowcount", String(this.lines.length));
    this.#inner.style.height = `${HEADER + this.lines.length * LINE}px`;
    let lost: number | null = null;
    for (const [key, view] of this.#views) {
      const index = this.#positions.get(key);
      const line = index === undefined ? undefined : this.lines[index];
      if (!line || line.kind !== view.line.kind) {
        if (view.element.contains(document.activeElement)) lost = view.index;
        this.#remove(key, view);
      } else if (view.put(line, index!)) view.drawn = null;
    }
    this.keys.refresh();
    if (lost !== null) this.keys.focusNear(lost);
    this.#setBusy(true);
    this.draw();
  }

  /** Says whether lines are still to be drawn after the data or the window were changed; scrolling does not count. */
  #setBusy(busy: boolean): void {
    this.box.setAttribute("aria-busy", String(busy));
  }

  /** Changes the range, the zone or the present. */
  setSettings(settings: Settings): void {
    const same =
      settings.from === this.settings.from && settings.to === this.settings.to && settings.zone === this.settings.zone;
    const middle = this.middle();
    if (settings.zone !== this.settings.zone) for (const view of this.#views.values()) view.forget();
    this.settings = settings;
    if (same) this.#placeNow();
    else this.look(middle, this.#span);
  }

  /** Shows the window of `span` milliseconds around an instant. */
  look(middle: number, span = this.#span): void {
    const { from, to } = this.settings;
    this.#span = Math.min(Math.max(span, NARROWEST), WIDEST, to - from);
    this.box.classList.toggle("close-up", this.#span <= 2 * 24 * HOUR);
    this.#names = this.#inner.querySelector<HTMLElement>(".grid-corner")?.offsetWidth ?? 0;
    const width = Math.max(100, this.box.clientWidth - this.#names);
    this.scale = new Scale(from, to, width / this.#span);
    this.#inner.style.width = `${this.#names + this.scale.width}px`;
    this.box.scrollLeft = this.scale.x(middle - this.#span / 2);
    for (const view of this.#views.values()) view.drawn = null;
    this.#drawn = { from: 0, to: 0 };
    this.#placeNow();
    this.#setBusy(true);
    this.draw();
  }

  /** Returns the instant in the middle of what is seen. */
  middle(): number {
    return this.scale.at(this.box.scrollLeft) + this.#span / 2;
  }

  /** Returns the window that is seen. */
  seen(): { from: number; to: number; span: number } {
    // Scrolling may go a fraction of a pixel beyond the range.
    const from = Math.max(this.settings.from, Math.round(this.scale.at(this.box.scrollLeft)));
    return { from, to: Math.min(this.settings.to, from + Math.round(this.#span)), span: this.#span };
  }

  /** Zooms by a factor (2: twice as wide), keeping an instant where it is. */
  zoom(factor: number, anchor = this.middle()): void {
    const { from, span } = this.seen();
    const next = Math.min(Math.max(span / factor, NARROWEST), WIDEST, this.settings.to - this.settings.from);
    const left = anchor - ((anchor - from) / span) * next;
    this.look(left + next / 2, next);
    this.#tellLook();
  }

  /** Width of the column of names. */
  get names(): number {
    return this.#names;
  }

  /** Returns the instant below a point of the screen. */
  instantAt(clientX: number): number {
    const box = this.box.getBoundingClientRect();
    return this.scale.at(clientX - box.left - this.#names + this.box.scrollLeft);
  }

  /** Returns the index of the line below a point of the screen, within the lines. */
  lineAt(clientY: number): number {
    const box = this.box.getBoundingClientRect();
    const index = Math.floor((clientY - box.top - HEADER + this.box.scrollTop) / LINE);
    return Math.min(Math.max(index, 0), this.lines.length - 1);
  }

  /** Returns the top of a line inside of the grid. */
  top(index: number): number {
    return HEADER + index * LINE;
  }

  /** Adds an element above the lines, such as what is being marked. */
  overlay(shown: HTMLElement): void {
    this.#inner.append(shown);
  }

  positionOf(key: string): number | undefined {
    return this.#positions.get(key);
  }

  viewOf(key: string): LineView | undefined {
    return this.#views.get(key);
  }

  /** Scrolls a line, and if given a window, into what is seen; draws it at once. */
  reveal(index: number, start?: number, end?: number): void {
    const top = index * LINE;
    const height = this.box.clientHeight - HEADER;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + LINE > this.box.scrollTop + height) this.box.scrollTop = top + LINE - height;
    if (start !== undefined && end !== undefined) {
      const { from, to, span } = this.seen();
      if (end <= from || start >= to) this.box.scrollLeft = this.scale.x(start - span * 0.1);
      else if (start > to - span * 0.05) this.box.scrollLeft = this.scale.x(start - span / 2);
    }
    this.#drawNow(index);
  }

  /** Draws in the next frame. */
  draw(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#drawNow());
  }

  #drawNow(needed?: number): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const { from, to } = this.#window();
    const height = this.box.clientHeight;
    const first = Math.max(0, Math.floor(this.box.scrollTop / LINE) - AROUND);
    const last = Math.min(this.lines.length, Math.ceil((this.box.scrollTop + height) / LINE) + AROUND);
    this.#drop(first, last);
    let made = 0;
    let redrawn = 0;
    const until = performance.now() + FRAME_MS;
    let more = false;
    // Lines in sight come before those around them.
    for (const index of outward(first, last, Math.floor((this.box.scrollTop + height / 2) / LINE))) {
      const line = this.lines[index]!;
      let view = this.#views.get(line.key);
      if (!view) {
        if ((made >= NEW_LINES_PER_FRAME || performance.now() > until) && index !== needed) {
          more = true;
          continue;
        }
        view = this.#add(line, index);
        made++;
      }
      const stale = !view.drawn || view.drawn.from !== from || view.drawn.to !== to;
      if (!stale) continue;
      if ((redrawn >= NEW_LINES_PER_FRAME || (redrawn > 0 && performance.now() > until)) && index !== needed) {
        more = true;
        continue;
      }
      view.draw(this.scale, this.#names, from, to);
      redrawn++;
    }
    this.keys.keepStop(Math.floor(this.box.scrollTop / LINE));
    if (more) this.draw();
    else {
      this.#setBusy(false);
      this.pointed.renew();
      this.#cutSoon();
    }
  }

  /** Fits labels to what is seen when scrolling has come to rest: while it goes on, each would cost. */
  #cutSoon(): void {
    clearTimeout(this.#cutting);
    this.#cutting = setTimeout(() => {
      const { from, to } = this.seen();
      for (const view of this.#views.values()) view.cutLabels(this.scale, from, to);
    }, 80);
  }

  /** Returns the window to have in the document: what is seen and half as much on each side, moved in large steps. */
  #window(): { from: number; to: number } {
    const { from, to, span } = this.seen();
    if (from >= this.#drawn.from && to <= this.#drawn.to) return this.#drawn;
    this.#drawn = {
      from: Math.round(Math.max(this.settings.from, from - span / 2)),
      to: Math.round(Math.min(this.settings.to, to + span / 2)),
    };
    this.#drawTicks();
    return this.#drawn;
  }

  #drawTicks(): void {
    const { from, to } = this.#drawn;
    const { major, minor, weekends } = ticksOf(from, to, this.scale.pixelsPerMs, this.settings.zone);
    const shown = major.map((tick, index) => {
      const cell = element("div", "tick-major");
      const label = element("span", "");
      label.textContent = tick.label;
      cell.append(label);
      const end = major[index + 1]?.at ?? to;
      return placed(cell, this.scale.x(tick.at), (end - tick.at) * this.scale.pixelsPerMs);
    });
    for (const tick of minor) {
      const cell = element("div", "tick-minor");
      cell.textContent = tick.label;
      shown.push(placed(cell, this.scale.x(tick.at)));
    }
    this.#ticks.replaceChildren(...shown);
    const lines = minor.map((tick) => placed(element("div", "grid-line"), this.#names + this.scale.x(tick.at)));
    const shades = weekends.map(({ start, end }) =>
      placed(element("div", "grid-weekend"), this.#names + this.scale.x(start), (end - start) * this.scale.pixelsPerMs),
    );
    this.#back.replaceChildren(...shades, ...lines, this.#nowLine);
  }

  #placeNow(): void {
    placed(this.#nowLine, this.#names + this.scale.x(this.settings.now));
  }

  #add(line: Line, index: number): LineView {
    const view = new LineView(line, index, this.callbacks);
    this.#views.set(line.key, view);
    // In the document the lines are in their order, as a screen reader reads them.
    let after: LineView | undefined;
    for (const other of this.#views.values()) {
      if (other.index > index && (!after || other.index < after.index)) after = other;
    }
    this.#inner.insertBefore(view.element, after?.element ?? null);
    return view;
  }

  #drop(first: number, last: number): void {
    for (const [key, view] of this.#views) {
      const outside = view.index < first || view.index >= last;
      // The line with the focus stays, or the focus would be lost while scrolling.
      if (outside && !view.element.contains(document.activeElement)) this.#remove(key, view);
    }
  }

  #remove(key: string, view: LineView): void {
    view.element.remove();
    this.#views.delete(key);
  }

  recolour = (): void => {
    forgetColours();
    for (const view of this.#views.values()) view.drawn = null;
    this.draw();
  };

  #scrolled = (): void => {
    this.draw();
    this.#tellLook();
  };

  #looked: ReturnType<typeof setTimeout> | undefined;

  #tellLook(): void {
    clearTimeout(this.#looked);
    this.#looked = setTimeout(() => {
      const { from, to } = this.seen();
      this.callbacks.onLook(from, to);
    }, 250);
  }

  #wheeled = (event: WheelEvent): void => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY / 300), this.instantAt(event.clientX));
  };
}

/** Returns the indices of a range, those nearest to the middle first. */
function* outward(first: number, last: number, middle: number): Generator<number> {
  const centre = Math.min(Math.max(middle, first), last - 1);
  for (let distance = 0; distance <= last - first; distance++) {
    if (centre - distance >= first && distance > 0) yield centre - distance;
    if (centre + distance < last) yield centre + distance;
  }
}
