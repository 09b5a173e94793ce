// SPDX-License-Identifier: Apache-2.0
/** For operators: hosts, their state and properties; registering, disabling, restricting. */
import { useState } from "preact/hooks";
import { useLive } from "../../api/live.ts";
import { may } from "../../api/session.ts";
import type { Candidate } from "../../api/types.ts";
import { Empty, PageHead } from "../../parts/basics.tsx";
import { opened } from "../../parts/opened.ts";
import { leftOutInWords } from "../../words/values.ts";
import { HostList } from "./list.tsx";
import { RegisterDialog } from "./register.tsx";

/** Says how many hosts of the cloud the list and all numbers leave out. */
function Unregistered() {
  const asked = may("blazar:resources:get_candidates", "host") ? "v1/resources/host/candidates" : null;
  const watch = useLive<{ candidates: Candidate[] }>(asked, { registered: false }, 120);
  const left = watch?.state.value.data?.candidates.length ?? 0;
  return left > 0 ? <p class="muted">{leftOutInWords(left)}</p> : null;
}

/** The page. */
export function HostsPage() {
  const [open, setOpen] = opened("register");
  const [registered, setRegistered] = useState(0);
  const register = may("blazar:resources:post", "host") && (
    <button type="button" class="primary" onClick={() => setOpen(true)}>
      Register hosts
    </button>
  );
  const done = () => {
    setOpen(false);
    setRegistered(registered + 1);
  };
  return (
    <>
      <PageHead title="Hosts" lead="What can be reserved as whole hosts, and carries reserved servers.">
        {register}
      </PageHead>
      <Unregistered key={`left ${registered}`} />
      <HostList
        key={registered}
        empty={
          <Empty title="No host is registered" action={register}>
            Register some of the cloud's hypervisors, so that users can reserve them.
          </Empty>
        }
      />
      {open && register && <RegisterDialog onDone={done} onClose={() => setOpen(false)} />}
    </>
  );
}
