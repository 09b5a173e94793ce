// SPDX-License-Identifier: Apache-2.0
/** Pages that are fetched when they are first drawn, so that the first page is there sooner. */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { Skeleton, Trouble } from "./basics.tsx";

const FAILED = new Error("The service has been updated, or the connection was lost.");

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
    if (!failed.value) return <Skeleton lines={8} />;
    return (
      <>
        <h1>This page could not be loaded</h1>
        <Trouble error={FAILED} retry={() => window.location.reload()} />
      </>
    );
  };
}
