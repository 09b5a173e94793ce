// SPDX-License-Identifier: Apache-2.0
/** Who is signed in. Standalone: a choice kept in this tab. With Keystone: a session behind an HttpOnly cookie. */
import { signal } from "@preact/signals";
import { Refused } from "./errors.ts";
import type { Info } from "./types.ts";

export interface Named {
  id: string;
  name: string;
}

/** What GET /ui/session answers. */
export interface Session {
  mode: "standalone" | "keystone";
  user: (Named & { domain?: string | null }) | null;
  project: Named | null;
  projects: Named[];
  roles: string[];
  /** False for an application credential, which belongs to one project. */
  can_switch: boolean;
  /** When the token ends; null in standalone mode. */
  expires_at: string | null;
  csrf_token: string | null;
}

/** What a sign-in page has to offer; every answer of GET /ui/session says so, also its 401. */
export interface SignInOptions {
  mode: "standalone" | "keystone";
  domains: string[];
  methods: string[];
}

const KEPT = "blazar.identity";

export const session = signal<Session | null>(null);
export const signInOptions = signal<SignInOptions | null>(null);
/** What the service says of this caller; null until it is read. */
export const info = signal<Info | null>(null);
/** The rules that let this caller do something with resources, by their kind; nothing of a kind until it is read. */
export const allowedOn = signal<ReadonlyMap<string, readonly string[]>>(new Map());
/** True while the session is known to have ended: the sign-in dialog opens over the page. */
export const expired = signal(false);
/** The project to which another tab has switched, until this one follows. */
export const otherProject = signal<Named | null>(null);

/**
 * Tells whether the caller may use a rule of the policy, such as "blazar:leases:post"; of a rule of resources, with
 * those of a kind: a policy may tell kinds apart.
 */
export function may(rule: string, kind?: string): boolean {
  const known = kind === undefined ? undefined : allowedOn.value.get(kind);
  return (known ?? info.value?.allowed ?? []).includes(rule);
}

/** A person of standalone mode: written user:project[:role,role], as the service reads X-Auth-Token. */
export interface Person {
  user: string;
  project: string;
  roles: string[];
}

/** Returns the name of a project, if it is one of the user's own; Keystone tells no others, whose id stands for it. */
export function projectName(id: string): string {
  const { project = null, projects = [] } = session.value ?? {};
  return [...projects, ...(project ? [project] : [])].find((one) => one.id === id)?.name ?? id;
}

/** Returns the header for a person. */
export function tokenOf(person: Person): string {
  const parts = [person.user, person.project];
  if (person.roles.length > 0) parts.push(person.roles.join(","));
  return parts.join(":");
}

/** Reads a token of standalone mode; null if it is not one. */
export function personOf(token: string): Person | null {
  const [user = "", project = "", roles = ""] = token.split(":");
  if (!user || !project) return null;
  return { user, project, roles: roles.split(",").filter(Boolean) };
}

/** Makes the session of a person of standalone mode. */
export function standaloneSession(person: Person): Session {
  return {
    mode: "standalone",
    user: { id: person.user, name: person.user },
    project: { id: person.project, name: person.project },
    projects: [],
    roles: person.roles,
    can_switch: false,
    expires_at: null,
    csrf_token: null,
  };
}

/** Returns the person that this tab has chosen. */
export function keptPerson(): Person | null {
  try {
    return personOf(sessionStorage.getItem(KEPT) ?? "");
  } catch {
    return null; // The browser forbids storage: the choice lives as long as the page.
  }
}

/** Keeps the person for this tab, or forgets it. */
export function keepPerson(person: Person | null): void {
  try {
    if (person) sessionStorage.setItem(KEPT, tokenOf(person));
    else sessionStorage.removeItem(KEPT);
  } catch {
    // The browser forbids storage: the choice lives as long as the page.
  }
}

/** Returns the headers that say who asks. */
export function identityHeaders(method: string, path: string, now: Session | null): Record<string, string> {
  if (!now) return {};
  if (now.mode === "standalone") {
    const person = { user: now.user?.id ?? "", project: now.project?.id ?? "", roles: now.roles };
    return { "X-Auth-Token": tokenOf(person) };
  }
  const headers: Record<string, string> = {};
  // The session itself may be asked for whichever project another tab has switched to.
  if (now.project && !path.includes("/ui/")) headers["X-Blazar-Project"] = now.project.id;
  if (now.csrf_token && method !== "GET") headers["X-CSRF-Token"] = now.csrf_token;
  return headers;
}

/** Marks the session as ended after an answer that says so. */
export function noticeEnd(error: unknown): void {
  if (!(error instanceof Refused) || !session.value) return;
  if (error.status === 401 && session.value.mode === "keystone") expired.value = true;
  if (error.has("other_project", "session")) {
    const other = (error.body as { project?: Named } | null)?.project ?? null;
    // The answer to a request from before this tab has followed is no news.
    if (other?.id !== session.value.project?.id) otherProject.value = other;
  }
}
