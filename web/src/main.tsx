// SPDX-License-Identifier: Apache-2.0
import "./styles/app.css";
import { render } from "preact";
import { resume } from "./api/sign-in.ts";
import { plain } from "./api/errors.ts";
import { session } from "./api/session.ts";
import { App } from "./frame/app.tsx";
import { Elsewhere, Trouble } from "./parts/basics.tsx";
import { keepFocus } from "./parts/focus.ts";
import { fetchCode } from "./pages.ts";
import { place, startRouter } from "./router.ts";
import { startTheme } from "./theme.ts";
import { startClock } from "./time/now.ts";
import { loadTemporal } from "./time/zone.ts";

async function main(): Promise<void> {
  startTheme();
  startRouter();
  // What fails here is tried again, and said, when the page is drawn.
  fetchCode(place.value.page).catch(() => undefined);
  const app = document.getElementById("app")!;
  let trouble: unknown = null;
  await loadTemporal();
  try {
    await resume();
  } catch (error) {
    trouble = error;
  }
  startClock();
  keepFocus();
  const again = () => window.location.reload();
  render(
    trouble ? (
      <main class="sign-in">
        <h1 class="brand">Blazar</h1>
        <Trouble error={new Error(plain(trouble))} retry={again} />
        {/* What they may do is not known, as nobody answers; their roles are. */}
        {session.value?.roles.includes("admin") && <Elsewhere command="blazar-manage problems list" />}
      </main>
    ) : (
      <App />
    ),
    app,
  );
}

void main();
