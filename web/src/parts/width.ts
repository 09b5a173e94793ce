// SPDX-License-Identifier: Apache-2.0
/** How wide an element is drawn: what is drawn in SVG keeps the size of its letters, also on a phone. */
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Returns where to hang what is measured, and its width in pixels; until that is known, `usual`. */
export function useWidth<T extends Element>(usual: number): [RefObject<T | null>, number] {
  const of = useRef<T>(null);
  const [width, setWidth] = useState(usual);
  useLayoutEffect(() => {
    const element = of.current;
    if (!element) return;
    const measure = () => setWidth(Math.max(1, Math.round(element.getBoundingClientRect().width)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [of, width];
}
