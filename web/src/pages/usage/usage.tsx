// SPDX-License-Identifier: Apache-2.0
/** What was reserved in a period, and what of it was used: of the own project; for operators, of all of them. */
import { useState } from "preact/hooks";
import { kindsRead } from "../../api/kinds.ts";
import { useLive } from "../../api/live.ts";
import type { UsageReport, UsageRow } from "../../api/reports.ts";
import { may, projectName, session } from "../../api/session.ts";
import type { Property, ResourceType } from "../../api/types.ts";
import { BusyButton, Empty, PageHead, Skeleton, Trouble } from "../../parts/basics.tsx";
import { Choose } from "../../parts/filters.tsx";
import { saveCsv } from "../../parts/save.ts";
import { hrefOf, place, setParams } from "../../router.ts";
import { moment, plural } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { shortName, zone } from "../../time/zone.ts";
import { capital } from "../../words/events.ts";
import { typeName } from "../../words/lease.ts";
import { energyInWords } from "../../words/energy.ts";
import {
  GROUPS,
  MOST_MONTHS,
  type Group,
  type Period,
  STEPS,
  type Step,
  amountOf,
  barsOf,
  isLookedAt,
  partInWords,
  periodInWords,
  periodOf,
  sharesOf,
  sumsOf,
  typesOf,
  usageInWords,
} from "../../words/usage.ts";
import { BudgetCard } from "../spending/budgets.tsx";
import { UsageChart, layersOf } from "./chart.tsx";
import { UnmetDemand } from "./demand.tsx";
import { Figures } from "./figures.tsx";
import { Expected } from "./forecast.tsx";
import { PeriodChooser } from "./period.tsx";
import { readCsv, useUsage } from "./reading.ts";
import { Unbooked } from "./unbooked.tsx";

const EVERY_S = 300;
const STEP_WORDS: Readonly<Record<Step, string>> = { day: "Day", week: "Week", month: "Month" };

/** The page. */
export function UsagePage() {
  const { params } = place.value;
  const operator = may("blazar:calendar:get_owners");
  const period = periodOf(params, present.value, zone.value);
  const step = STEPS.find(({ value }) => value === params.get("step"))?.value ?? "week";
  const watch = useUsage(period, { group_by: "resource_type", step });
  const { data: report = null, error = null, loading = false } = watch?.state.value ?? {};
  const rows = report?.rows ?? [];
  const types = typesOf(rows);
  const type = types.find((one) => one === params.get("type")) ?? types[0];
  const whose = operator ? "All projects" : `The project ${session.value?.project?.name ?? "that you work in"}`;
  return (
    <>
      <PageHead title="Usage" lead={`${whose}: what was reserved, and what of it was used.`}>
        <Download period={period} step={step} group={groupOf(params, operator)} property={params.get("property")} />
      </PageHead>
      <PeriodChooser period={period} step={step}>
        {type !== undefined && types.length > 1 && (
          <Choose
            label="Of"
            options={types.map((value) => ({ value, text: namesOf(value) }))}
            chosen={type}
            onChange={(value) => setParams({ type: value === types[0] ? null : value })}
          />
        )}
      </PeriodChooser>
      <BudgetCard unit="hours" />
      {error !== null && <Trouble error={error} retry={() => void watch?.read()} />}
      {!watch && <Empty title="This is too long">Choose days of at most {plural(MOST_MONTHS, "month")}.</Empty>}
      {loading && <Skeleton lines={8} />}
      {report && type === undefined && (
        <>
          <Nothing period={period} operator={operator} />
          <UnmetDemand period={period} />
          {operator && <Unbooked period={period} />}
        </>
      )}
      {report && type !== undefined && (
        <>
          <OverTime
            report={report}
            rows={rows.filter((row) => row.resource_type === type)}
            type={type}
            step={step}
            period={period}
          />
          <Shares period={period} type={type} operator={operator} />
          <UnmetDemand period={period} type={type} />
          {operator && <Unbooked period={period} />}
          {operator && <Expected type={type} />}
        </>
      )}
    </>
  );
}

/** The name of a type for a list of choices; words of kinds of other packages are learnt when these are read. */
function namesOf(type: ResourceType): string {
  return kindsRead.value ? typeName(type) : "";
}

function Nothing({ period, operator }: { period: Period; operator: boolean }) {
  const action = (
    <a class="button" href={hrefOf("")}>
      Find a time
    </a>
  );
  return (
    <Empty title={`Nothing was reserved in ${periodInWords(period)}`} action={operator ? undefined : action}>
      What leases have is counted here from their start on, until it is given back.
    </Empty>
  );
}

interface OverTimeProps {
  report: UsageReport;
  rows: readonly UsageRow[];
  type: ResourceType;
  step: Step;
  period: Period;
}

function OverTime({ report, rows, type, step, period }: OverTimeProps) {
  const bars = barsOf(report, step, rows);
  const sum = sumsOf(rows);
  const through = Date.parse(report.computed_through);
  const summary = `${periodInWords(period)}: ${usageInWords(sum, type)}`;
  const past = bars.filter((bar) => bar.from < through);
  return (
    <section class="card usage" aria-labelledby="over-time">
      <h2 id="over-time">{periodInWords(period)}</h2>
      <p class="usage-sum">{usageInWords(sum, type)}.</p>
      {sum.energy !== null && <p class="muted">Hosts drew {energyInWords(sum.energy, sum.carbon)}.</p>}
      {type === "physical:host" && (report.lent_seconds ?? 0) > 0 && (
        <p class="muted">Of it {amountOf(report.lent_seconds ?? 0, type)} were lent to preemptible servers.</p>
      )}
      <UsageChart
        bars={bars}
        layers={layersOf(sum)}
        step={step}
        zone={report.time_zone}
        summary={summary}
        through={through}
      />
      <p class="muted">
        Days are those of {shortName(report.time_zone)}
        {through < Date.parse(report.to) && (
          <>; told is what was so until {moment(through, zone.value, present.value)}</>
        )}
        .
        {sum.unseen > 0 &&
          isLookedAt(sum) &&
          " A lease is looked at from time to time; what was so holds until the next look."}
      </p>
      <Figures
        head={STEP_WORDS[step]}
        title={`Figures by ${step}`}
        figures={past.map((bar) => ({
          key: `${bar.from}`,
          label: partInWords(bar, step, report.time_zone),
          sums: bar.sums,
        }))}
        sum={sum}
        overlapping
      />
    </section>
  );
}

/** Which groups there are to choose from: of one project there is nothing to tell apart by projects. */
function groupsFor(operator: boolean) {
  return GROUPS.filter(({ value }) => operator || value !== "project");
}

function groupOf(params: URLSearchParams, operator: boolean): Group {
  const groups = groupsFor(operator);
  return groups.find(({ value }) => value === params.get("by"))?.value ?? groups[0]!.value;
}

/** Who, or what, had how much of it. */
function Shares({ period, type, operator }: { period: Period; type: ResourceType; operator: boolean }) {
  const { params } = place.value;
  const group = groupOf(params, operator);
  const properties = useLive<{ properties: Property[] }>(
    group === "property" ? "v1/properties" : null,
    { resource_type: type },
    EVERY_S,
  );
  const names = properties?.state.value.data?.properties.map(({ name }) => name) ?? [];
  const property = params.get("property") ?? names[0];
  const asked = group !== "property" || property !== undefined;
  const query = {
    group_by: `${group},resource_type`,
    step: "all",
    ...(group === "property" && property !== undefined ? { property } : {}),
  };
  const watch = useUsage(period, asked ? query : null);
  const { data = null, error = null } = watch?.state.value ?? {};
  const rows = data?.rows.filter((row) => row.resource_type === type) ?? [];
  const head = group === "property" ? (property ?? "") : GROUPS.find(({ value }) => value === group)!.text;
  return (
    <section class="card usage" aria-labelledby="shares">
      <div class="row spread">
        <h2 id="shares">By {head}</h2>
        <div class="row">
          <Choose
            label="By"
            options={groupsFor(operator)}
            chosen={group}
            onChange={(by) => setParams({ by: by === groupsFor(operator)[0]!.value ? null : by, property: null })}
          />
          {group === "property" && names.length > 0 && (
            <Choose
              label="Property"
              options={names.map((value) => ({ value, text: value }))}
              chosen={property ?? ""}
              onChange={(value) => setParams({ property: value })}
            />
          )}
        </div>
      </div>
      {error !== null && <Trouble error={error} retry={() => void watch?.read()} />}
      {asked && !data && error === null && <Skeleton lines={4} />}
      {data && (
        <Figures
          head={capital(head)}
          title={`Figures by ${head}`}
          figures={sharesOf(rows, group).map(({ value, sums }) => ({
            key: `${value}`,
            label: labelOfShare(group, value),
            sums,
          }))}
          sum={sumsOf(rows)}
          overlapping={group === "region" || group === "property"}
          shares
        />
      )}
      {group === "property" && properties?.state.value.data && names.length === 0 && (
        <p class="muted">These resources have no properties.</p>
      )}
    </section>
  );
}

const LEASE_KINDS: Readonly<Record<string, string>> = {
  scheduled: "scheduled",
  immediate: "immediate",
  retries: "tried again",
  best_effort: "room is made",
};

/** What a row is: names where they are known, and what the service does not tell in words. */
function labelOfShare(group: Group, value: string | null) {
  if (value === null || value === "") {
    return <span class="muted">{group === "user" ? "others in the project" : "none"}</span>;
  }
  if (group === "project") {
    return <a href={hrefOf("all-leases", { project: value })}>{projectName(value)}</a>;
  }
  if (group === "user" && value === session.value?.user?.id) return `${session.value.user.name} (you)`;
  return group === "lease_kind" ? (LEASE_KINDS[value] ?? value) : value;
}

interface DownloadProps {
  period: Period;
  step: Step;
  group: Group;
  property: string | null;
}

/** Saves the figures of the page, of all types, for spreadsheets, as the service writes them. */
function Download({ period, step, group, property }: DownloadProps) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const by = group === "property" && property === null ? "lease_kind" : group;
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      const groups = { group_by: `${by},resource_type`, ...(by === "property" ? { property: property! } : {}) };
      saveCsv(await readCsv(period, { ...groups, step }), `usage-${period.first}-${period.last}.csv`);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return (
    <>
      <BusyButton type="button" busy={busy} doing="Reading…" onClick={() => void save()}>
        Save as CSV
      </BusyButton>
      {error !== null && <Trouble error={error} />}
    </>
  );
}
