// SPDX-License-Identifier: Apache-2.0
/** Who is signed in, for which project; switching and signing out. */
import { CircleUser } from "lucide";
import { useState } from "preact/hooks";
import { plain } from "../api/errors.ts";
import { session } from "../api/session.ts";
import { signOut, switchProject } from "../api/sign-in.ts";
import { Icon } from "../parts/icon.tsx";
import { Menu } from "../parts/menu.tsx";

/** The button with project and user. */
export function Account() {
  const now = session.value;
  if (!now) return null;
  const label = (
    <>
      <Icon of={CircleUser} />
      <span class="account">
        <span class="account-project">{now.project?.name ?? "no project"}</span>
        <span class="muted">{now.user?.name}</span>
      </span>
    </>
  );
  return (
    <Menu label={label} title="Account and project">
      {(close) => <Choices close={close} />}
    </Menu>
  );
}

function Choices({ close }: { close: () => void }) {
  const now = session.value;
  const [error, setError] = useState("");
  const others = !now?.can_switch ? [] : now.projects.filter((project) => project.id !== now.project?.id);
  const change = async (id: string) => {
    try {
      await switchProject(id);
      close();
    } catch (problem) {
      setError(plain(problem));
    }
  };
  return (
    <div class="stack">
      <p>
        <strong>{now?.user?.name}</strong>
        {now?.user?.domain && <span class="muted"> of {now.user.domain}</span>}
        <br />
        <span class="muted">
          project {now?.project?.name}
          {now && now.roles.length > 0 && `, as ${now.roles.join(", ")}`}
        </span>
      </p>
      {now?.mode === "keystone" && (
        <p class="hint">
          To be given a lease: project <code>{now.project?.id}</code>, user <code>{now.user?.id}</code>
        </p>
      )}
      {others.length > 0 && (
        <>
          <h3>Work in another project</h3>
          <ul class="choices">
            {others.map((project) => (
              <li key={project.id}>
                <button type="button" onClick={() => void change(project.id)}>
                  {project.name}
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
      {error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
      <button type="button" onClick={() => void signOut()}>
        {now?.mode === "standalone" ? "Be somebody else" : "Sign out"}
      </button>
    </div>
  );
}
