// SPDX-License-Identifier: Apache-2.0
/** What stands around every page: navigation, who is signed in, the zone, the state of the connection. */
import { Ellipsis, TriangleAlert, WifiOff } from "lucide";
import { useEffect, useRef } from "preact/hooks";
import { usePriceLists } from "../api/billing.ts";
import { lostSince } from "../api/client.ts";
import { useLive } from "../api/live.ts";
import { expired, info, may, otherProject, session } from "../api/session.ts";
import { resume, switchProject } from "../api/sign-in.ts";
import { type Page, PAGES, pageOf } from "../pages.ts";
import { Announcements } from "../parts/announce.tsx";
import { Empty } from "../parts/basics.tsx";
import { Icon } from "../parts/icon.tsx";
import { followed, hrefOf, place } from "../router.ts";
import { clock, relative } from "../time/format.ts";
import { present } from "../time/now.ts";
import { zone } from "../time/zone.ts";
import { Account } from "./account.tsx";
import { Menu } from "../parts/menu.tsx";
import { SignIn, SignInDialog } from "./sign-in.tsx";
import { ThemeButton, ZoneButton } from "./settings.tsx";

/** The whole page. */
export function App() {
  const signedIn = session.value !== null;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: links inside are followed here; it is no control of its own
    // biome-ignore lint/a11y/useKeyWithClickEvents: a link's click comes from the keyboard, too
    <div class={signedIn ? "frame" : "frame alone"} onClick={followed}>
      {signedIn ? <SignedIn /> : <SignIn />}
      <Announcements />
    </div>
  );
}

function SignedIn() {
  const { page: path } = place.value;
  const page = pageOf(path);
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  useEffect(() => {
    document.title = page ? `${page.title} – Blazar` : "Blazar";
    // A new page begins at its top, for the eyes and for a screen reader.
    if (!first.current) main.current?.focus({ preventScroll: true });
    first.current = false;
  }, [path]);
  return (
    <>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <Navigation current={path} />
      <div class="right">
        <Top />
        <Bars />
        <main id="main" ref={main} tabIndex={-1} class={page?.full ? "full" : ""}>
          <View page={page} />
        </main>
      </div>
      {expired.value && <SignInDialog />}
    </>
  );
}

function View({ page }: { page: Page | undefined }) {
  if (!page) {
    const home = (
      <a class="button primary" href={hrefOf("")}>
        Find a time
      </a>
    );
    return (
      <Empty title="There is no such page" action={home}>
        The address may be an old one.
      </Empty>
    );
  }
  if (info.value && !isOpen(page)) {
    return <Empty title="This page is for operators">Your roles in this project do not allow it.</Empty>;
  }
  const { view: Content } = page;
  // Nothing of a project or a user stays for another.
  const { user, project } = session.value ?? {};
  return <Content key={`${page.path} ${user?.id} ${project?.id}`} />;
}

/** Tells whether the policy lets the caller open a page. */
function isOpen({ rule, kind }: Page): boolean {
  return rule === undefined || may(rule, kind);
}

/** Tells whether the navigation has a page that is open: without prices there is nothing to be spent. */
function isListed({ listedFor, priced }: Page, areThere: boolean): boolean {
  return (listedFor === undefined || may(listedFor)) && (!priced || areThere);
}

/** So many have room at the lower edge of a phone; the others are behind "More". */
const ON_PHONES = 4;

/** How many there are in a list; nothing while there are none. */
function Count({ of }: { of: string }) {
  const watch = useLive<{ count: number }>(of, { limit: 1, with_count: true }, 60)!;
  const count = watch.state.value.data?.count ?? 0;
  return count > 0 ? <span class="nav-count">{count > 99 ? "99+" : count}</span> : null;
}

function Navigation({ current }: { current: string }) {
  const priced = (usePriceLists()?.state.value.data?.price_lists.length ?? 0) > 0;
  const shown = PAGES.filter((page) => page.icon && isOpen(page) && isListed(page, priced));
  const further = shown.length > ON_PHONES + 1 ? shown.slice(ON_PHONES) : [];
  const link = (page: Page) => (
    <a href={hrefOf(page.path)} aria-current={page.path === current ? "page" : undefined}>
      <Icon of={page.icon!} size={20} />
      <span>{page.title}</span>
      {page.counts && <Count of={page.counts} />}
    </a>
  );
  const item = (page: Page) => (
    <li key={page.path} class={further.includes(page) ? "further" : ""}>
      {link(page)}
    </li>
  );
  const operators = shown.filter((page) => page.operators);
  return (
    <nav class="navigation" aria-label="Pages">
      <a class="brand" href={hrefOf("")}>
        <span class="brand-mark" aria-hidden="true" />
        Blazar
      </a>
      <ul>{shown.filter((page) => !page.operators).map(item)}</ul>
      {operators.length > 0 && (
        <>
          <h2 class="nav-group">Operators</h2>
          <ul>{operators.map(item)}</ul>
        </>
      )}
      {further.length > 0 && (
        <div class={further.some((page) => page.path === current) ? "nav-more here" : "nav-more"}>
          <Menu
            title="More pages"
            label={
              <>
                <Icon of={Ellipsis} size={20} />
                <span>More</span>
              </>
            }
          >
            {(close) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: a link's click comes from the keyboard, too
              <ul onClick={close}>
                {further.map((page) => (
                  <li key={page.path}>{link(page)}</li>
                ))}
              </ul>
            )}
          </Menu>
        </div>
      )}
    </nav>
  );
}

function Top() {
  return (
    <header class="top">
      <Account />
      <ZoneButton />
      <ThemeButton />
    </header>
  );
}

/** Bars about the connection and the end of the session. */
function Bars() {
  const lost = lostSince.value;
  const other = otherProject.value;
  const ends = session.value?.expires_at ? Date.parse(session.value.expires_at) : null;
  const soon = ends !== null && ends - present.value < 5 * 60_000 && !expired.value;
  return (
    <div role="status">
      {lost && (
        <div class="banner warning bar">
          <Icon of={WifiOff} />
          <p>
            No connection to the service since {clock(Math.floor(lost.getTime() / 60_000) * 60_000, zone.value)}. It is
            tried again by itself; what you typed is kept.
          </p>
        </div>
      )}
      {!lost && info.value?.notice && (
        <div class="banner warning bar">
          <Icon of={TriangleAlert} />
          <p>{info.value.notice}. It is tried again by itself; what you typed is kept.</p>
        </div>
      )}
      {other && (
        <div class="banner warning bar">
          <Icon of={TriangleAlert} />
          <p>
            Another tab works in the project {other.name} now. This page shows {session.value?.project?.name}; nothing
            was done.
          </p>
          <button type="button" onClick={() => void resume()}>
            Work in {other.name}
          </button>
          <button type="button" onClick={() => void switchProject(session.value?.project?.id ?? "")}>
            Go back to {session.value?.project?.name}
          </button>
        </div>
      )}
      {soon && (
        <div class="banner warning bar">
          <Icon of={TriangleAlert} />
          <p>Your session ends {relative(ends, present.value)}.</p>
          <button type="button" onClick={() => (expired.value = true)}>
            Sign in again
          </button>
        </div>
      )}
    </div>
  );
}
