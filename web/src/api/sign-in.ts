// SPDX-License-Identifier: Apache-2.0
/** Beginning, changing and ending a session. */
import { batch } from "@preact/signals";
import { Refused } from "./errors.ts";
import { request } from "./client.ts";
import { loadKinds, stopLoadingEmptyKinds } from "./load-kinds.ts";
import {
  type Person,
  type Session,
  type SignInOptions,
  allowedOn,
  expired,
  info,
  keepPerson,
  keptPerson,
  session,
  otherProject,
  signInOptions,
  standaloneSession,
} from "./session.ts";
import { note } from "../parts/announce.tsx";
import type { Info } from "./types.ts";

/** What the form of the sign-in with Keystone sends; which keys, says its method. */
export type Credentials =
  | { method: "password"; user: string; domain: string; password: string; project?: string }
  /** The second step, when Keystone asks for a passcode: with the receipt of the first. */
  | { method: "totp"; receipt: string; passcode: string; project?: string }
  | { method: "application_credential"; id: string; secret: string };

const between = "BroadcastChannel" in globalThis ? new BroadcastChannel("blazar") : null;

/** Reads who is signed in, when the page is opened. */
export async function resume(): Promise<void> {
  if (between) between.onmessage = (event: MessageEvent<string>) => void heard(event.data);
  const found = await currentSession();
  if (found) await begin(found);
}

/** Asks who is signed in, and how one can; null if nobody is. */
async function currentSession(): Promise<Session | null> {
  try {
    const { data } = await request<Session & Partial<SignInOptions>>("GET", "ui/session");
    signInOptions.value = optionsOf(data);
    if (data.mode === "keystone") return data;
    const person = keptPerson();
    return person && standaloneSession(person);
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 401) throw error;
    signInOptions.value = optionsOf(error.body as Partial<SignInOptions> | null);
    return null;
  }
}

function optionsOf(told: Partial<SignInOptions> | null): SignInOptions {
  return { mode: told?.mode ?? "keystone", domains: told?.domains ?? [], methods: told?.methods ?? ["password"] };
}

/** Milliseconds after which the page asks again for what only a manager knows, while none answers. */
const READ_AGAIN = 15_000;

let readingAgain: ReturnType<typeof setTimeout> | undefined;

/** Shows the pages to somebody, once it is known what may be done there. */
async function begin(next: Session): Promise<void> {
  let known: Info | null = null;
  let problem: unknown = null;
  try {
    known = (await request<{ info: Info }>("GET", "v1/info", { as: next })).data.info;
  } catch (error) {
    // Without it the pages for operators are hidden; what fails next says why.
    problem = error;
  }
  const refused = problem instanceof Refused && problem.status === 401;
  batch(() => {
    session.value = refused ? null : next;
    info.value = known;
    allowedOn.value = new Map();
    expired.value = false;
    otherProject.value = null;
  });
  if (problem) throw problem;
  waitForManager(known);
  void loadKinds(next);
}

/** Asks again after a while if no manager has answered, until one does. */
function waitForManager(known: Info | null): void {
  clearTimeout(readingAgain);
  if (known?.notice) readingAgain = setTimeout(() => void readInfoAgain(), READ_AGAIN);
}

async function readInfoAgain(): Promise<void> {
  const as = session.value;
  if (!as) return;
  let known = info.value;
  try {
    known = (await request<{ info: Info }>("GET", "v1/info", { as })).data.info;
  } catch {
    // The bars say that there is no connection, or that the session has ended.
  }
  if (session.value?.user?.id !== as.user?.id || session.value?.project?.id !== as.project?.id) return;
  const back = info.value?.notice !== undefined && known?.notice === undefined;
  info.value = known;
  waitForManager(known);
  if (back) void loadKinds(as);
}

/** Standalone mode: be this person from now on, in this tab. */
export async function choosePerson(person: Person): Promise<void> {
  await begin(standaloneSession(person));
  keepPerson(person);
}

/** With Keystone. Returns the receipt if a passcode is asked for, null if all is done. */
export async function signIn(credentials: Credentials): Promise<string | null> {
  try {
    const { data } = await request<Session>("POST", "ui/session", { body: credentials });
    await begin(data);
    between?.postMessage("changed");
    return null;
  } catch (error) {
    const receipt = error instanceof Refused ? (error.body as { receipt?: unknown } | null)?.receipt : undefined;
    if (typeof receipt === "string") return receipt;
    throw error;
  }
}

/** Works in another project from now on, in all tabs. */
export async function switchProject(id: string): Promise<void> {
  stopLoadingEmptyKinds();
  const { data } = await request<Session>("PUT", "ui/session/project", { body: { project: id } });
  await begin(data);
  between?.postMessage("changed");
}

/** Ends the session, in all tabs. */
export async function signOut(): Promise<void> {
  stopLoadingEmptyKinds();
  const standalone = session.value?.mode === "standalone";
  if (!standalone) {
    const { data } = await request<{ detail?: string }>("DELETE", "ui/session");
    if (data.detail) note(data.detail);
  }
  keepPerson(null);
  session.value = null;
  info.value = null;
  allowedOn.value = new Map();
  expired.value = false;
  if (!standalone) between?.postMessage("ended");
}

async function heard(message: string): Promise<void> {
  const here = session.value;
  if (here?.mode === "standalone") return;
  if (message === "ended") {
    session.value = null;
    return;
  }
  const there = await currentSession();
  if (!there) return;
  const same = here !== null && here.user?.id === there.user?.id;
  if (same && here.project?.id !== there.project?.id && document.querySelector("dialog[open]")) {
    // What is being typed here is for another project: it is neither lost nor sent. A bar offers to follow.
    session.value = { ...here, csrf_token: there.csrf_token, expires_at: there.expires_at };
    expired.value = false;
    otherProject.value = there.project;
    return;
  }
  await begin(there);
}
