// SPDX-License-Identifier: Apache-2.0
/** Signing in: with Keystone, or by choosing who one is in standalone mode. */
import { useState } from "preact/hooks";
import { Refused, plain } from "../api/errors.ts";
import { type Person, expired, session, signInOptions } from "../api/session.ts";
import { type Credentials, choosePerson, signIn } from "../api/sign-in.ts";
import { BusyButton } from "../parts/basics.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Field, FormErrors } from "../parts/field.tsx";

/** The page of those who are not signed in. */
export function SignIn() {
  const options = signInOptions.value;
  return (
    <main class="sign-in" id="main">
      <h1 class="brand">
        <span class="brand-mark" aria-hidden="true" />
        Blazar
      </h1>
      <p class="lead">See when resources are free, and reserve them.</p>
      {options === null ? null : options.mode === "standalone" ? <WhoAreYou /> : <KeystoneForm />}
    </main>
  );
}

/** The same form over a page whose session has ended: what was typed below stays. */
export function SignInDialog() {
  return <KeystoneForm again />;
}

const PEOPLE: (Person & { about: string })[] = [
  { user: "alice", project: "physics", roles: ["member"], about: "a user" },
  { user: "bob", project: "chemistry", roles: ["member"], about: "a user of another project" },
  { user: "admin", project: "demo", roles: ["admin"], about: "an operator: sees hosts and all leases" },
];

function WhoAreYou() {
  const [error, setError] = useState("");
  const [user, setUser] = useState("");
  const [project, setProject] = useState("");
  const [admin, setAdmin] = useState(false);
  const be = async (person: Person) => {
    setError("");
    try {
      await choosePerson(person);
    } catch (problem) {
      setError(plain(problem));
    }
  };
  return (
    <section class="card" aria-labelledby="who">
      <h2 id="who">Who are you?</h2>
      <p class="muted">This is a trial without passwords: be whom you like, in each tab somebody else.</p>
      <ul class="choices people">
        {PEOPLE.map((person) => (
          <li key={person.user}>
            <button type="button" onClick={() => void be(person)}>
              <strong>
                {person.user} <span class="muted">of {person.project}</span>
              </strong>
              <span class="muted">{person.about}</span>
            </button>
          </li>
        ))}
      </ul>
      <details>
        <summary>Somebody else</summary>
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            if (user && project) void be({ user, project, roles: [admin ? "admin" : "member"] });
            else setError("Give a user and a project; any names will do.");
          }}
        >
          <Field label="User">
            {(control) => (
              <input {...control} value={user} onInput={(event) => setUser(event.currentTarget.value.trim())} />
            )}
          </Field>
          <Field label="Project">
            {(control) => (
              <input {...control} value={project} onInput={(event) => setProject(event.currentTarget.value.trim())} />
            )}
          </Field>
          <label class="check">
            <input type="checkbox" checked={admin} onChange={(event) => setAdmin(event.currentTarget.checked)} /> is an
            operator
          </label>
          <button type="submit" class="primary">
            Go on
          </button>
        </form>
      </details>
      <FormErrors sentences={error ? [error] : []} />
    </section>
  );
}

function KeystoneForm({ again }: { again?: boolean }) {
  const options = signInOptions.value;
  const domains = options?.domains ?? [];
  const byCredential = options?.methods.includes("application_credential") ?? false;
  const [method, setMethod] = useState<"password" | "application_credential">("password");
  const [values, setValues] = useState<Record<string, string>>({
    user: session.value?.user?.name ?? "",
    domain: session.value?.user?.domain ?? domains[0] ?? "Default",
  });
  const [receipt, setReceipt] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const send = async () => {
    setBusy(true);
    setError(null);
    try {
      setReceipt(await signIn(credentials(method, values, receipt, again ? session.value?.project?.id : undefined)));
    } catch (problem) {
      if (problem instanceof Refused && problem.has("receipt_expired", "session")) setReceipt(null);
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  // Whose session has ended types the password at once.
  const first = again ? "password" : null;
  const set = (name: string, value: string) => setValues({ ...values, [name]: value });
  const input = (name: string, label: string, complete: AutoFill, secret = false) => (
    <Field label={label} key={name}>
      {(control) => (
        <input
          {...control}
          {...(secret ? { type: "password" as const } : {})}
          // biome-ignore lint/a11y/noAutofocus: only in a dialog, which takes the focus anyway
          autoFocus={name === first}
          autocomplete={complete}
          value={values[name] ?? ""}
          onInput={(event) => set(name, event.currentTarget.value)}
        />
      )}
    </Field>
  );
  const domain =
    domains.length > 0 ? (
      <Field label="Domain" key="domain">
        {(control) => (
          <select
            {...control}
            value={values.domain ?? ""}
            onChange={(event) => set("domain", event.currentTarget.value)}
          >
            {domains.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        )}
      </Field>
    ) : (
      input("domain", "Domain", "organization")
    );
  return (
    <KeystoneFrame again={again ?? false} send={() => void send()}>
      {receipt !== null
        ? input("passcode", "Passcode of your device", "one-time-code")
        : method === "password"
          ? [input("user", "User", "username"), domain, input("password", "Password", "current-password", true)]
          : [
              input("id", "Id of the application credential", "username"),
              input("secret", "Secret", "current-password", true),
            ]}
      <FormErrors sentences={error ? [plain(error)] : []} />
      <BusyButton busy={busy} doing="Signing in…" class="primary" type="submit">
        Sign in
      </BusyButton>
      {byCredential && receipt === null && (
        <button
          type="button"
          class="link"
          onClick={() => setMethod(method === "password" ? "application_credential" : "password")}
        >
          {method === "password" ? "Use an application credential" : "Use a password"}
        </button>
      )}
    </KeystoneFrame>
  );
}

function KeystoneFrame(props: { again: boolean; send: () => void; children: preact.ComponentChildren }) {
  if (props.again) {
    return (
      <Dialog title="Sign in again" onClose={() => (expired.value = false)} onSubmit={props.send}>
        <div class="stack">
          <p>To go on, sign in again. What you typed on the page is still there.</p>
          {props.children}
        </div>
      </Dialog>
    );
  }
  return (
    <section class="card">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          props.send();
        }}
      >
        {props.children}
      </form>
    </section>
  );
}

function credentials(
  method: "password" | "application_credential",
  values: Record<string, string>,
  receipt: string | null,
  project: string | undefined,
): Credentials {
  const { user = "", domain = "", password = "", passcode = "", id = "", secret = "" } = values;
  const wanted = project ? { project } : {};
  if (receipt !== null) return { method: "totp", receipt, passcode: passcode.replaceAll(" ", ""), ...wanted };
  if (method === "application_credential") return { method, id, secret };
  return { method, user, domain, password, ...wanted };
}
