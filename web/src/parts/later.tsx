// SPDX-License-Identifier: Apache-2.0
/** Parts of the pages that are fetched when they are first drawn, so that the first page is there sooner. */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { Skeleton, Trouble } from "./basics.tsx";

const FAILED = new Error("This page could not be loaded. The service has been updated, or the connection was lost.");

/** Returns a component that stands for the one that is fetched. */
export function later(fetched: () => Promise<ComponentType>): ComponentType {
  const found = signal<ComponentType | null>(null);
  const failed = signal(false);
  const fetchIt = async () => {
    try {
      found.value = await fetched();
    } catch {
      failed.value = true;
    }
  };
  return function Later() {
    useEffect(() => {
      if (!found.value) void fetchIt();
    }, []);
    const Found = found.value;
    if (Found) return <Found />;
    // After an update the names of the files are others, which only a new page knows.
    return failed.value ? <Trouble error={FAILED} retry={() => window.location.reload()} /> : <Skeleton lines={8} />;
  };
}
