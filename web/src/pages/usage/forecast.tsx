// SPDX-License-Identifier: Apache-2.0
/** For operators: how much of a kind is promised in the days to come, and how much is expected to be. */
import { kindOfType } from "../../api/kinds.ts";
import { useLive } from "../../api/live.ts";
import type { Forecast, ForecastRow } from "../../api/reports.ts";
import type { ResourceType } from "../../api/types.ts";
import { Skeleton, Trouble } from "../../parts/basics.tsx";
import { useWidth } from "../../parts/width.ts";
import { formatted } from "../../time/format.ts";
import { accuracyInWords, forecastInWords } from "../../words/demand.ts";
import { sentence } from "../../words/events.ts";
import { highestMark, hoursOf } from "../../words/usage.ts";

const EVERY_S = 300;
const USUAL_WIDTH = 1000;
const HEIGHT = 220;
const LEFT = 52;
const BOTTOM = 24;
const TOP = 8;
/** The room of the number of a day, in pixels. */
const LABEL = 26;

/** The card. */
export function Expected({ type }: { type: ResourceType }) {
  const kind = kindOfType(type);
  const watch = useLive<{ forecast: Forecast }>(
    kind ? "v1/reports/forecast" : null,
    { days: 28, group_by: "kind" },
    EVERY_S,
  );
  if (!watch || !kind) return null;
  const { data, error, loading } = watch.state.value;
  const rows = data?.forecast.rows.filter((row) => row.kind === kind.name) ?? [];
  const because = rows.find((row) => row.because)?.because;
  return (
    <section class="card usage" aria-labelledby="expected">
      <h2 id="expected">To come: all {kind.nouns}</h2>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      {loading && <Skeleton lines={5} />}
      {data && rows.length === 0 && <p class="muted">There are no {kind.nouns}.</p>}
      {data && rows.length > 0 && (
        <>
          <p class="usage-sum">{forecastInWords(rows)}</p>
          <ForecastChart rows={rows} summary={forecastInWords(rows)} />
          {because && <p class="muted">{`Nothing is expected yet of some days: ${because}.`}</p>}
          <p class="muted">
            {sentence(data.forecast.method)} {accuracyInWords(data.forecast.accuracy)}
          </p>
          <details>
            <summary>The figures</summary>
            <ForecastFigures rows={rows} />
          </details>
        </>
      )}
    </section>
  );
}

const dayAt = (row: ForecastRow) => Date.parse(`${row.day}T00:00:00Z`);

function ForecastChart({ rows, summary }: { rows: readonly ForecastRow[]; summary: string }) {
  const [figure, width] = useWidth<HTMLElement>(USUAL_WIDTH);
  const most = highestMark(
    Math.max(...rows.map((row) => Math.max(row.promised, row.registered, row.expected?.upper ?? 0))) / 3600,
  );
  const room = (width - LEFT) / rows.length;
  const thick = Math.max(1, room * 0.7);
  const y = (seconds: number) => TOP + (HEIGHT - BOTTOM - TOP) * (1 - seconds / 3600 / most);
  const left = (index: number) => LEFT + room * index + (room - thick) / 2;
  const every = Math.ceil(LABEL / room);
  const there = rows.map(
    (row, index) => `${LEFT + room * index},${y(row.registered)} ${LEFT + room * (index + 1)},${y(row.registered)}`,
  );
  return (
    <figure class="chart usage-chart" ref={figure}>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={summary}>
        {[0, most / 2, most].map((hours) => (
          <g key={hours}>
            <line class="chart-line" x1={LEFT} x2={width} y1={y(hours * 3600)} y2={y(hours * 3600)} />
            <text x={LEFT - 8} y={y(hours * 3600) + 4} text-anchor="end">
              {hours.toLocaleString("en")}
            </text>
          </g>
        ))}
        {rows.map((row, index) => (
          <Day key={row.day} row={row} x={left(index)} width={thick} y={y} />
        ))}
        <polyline class="chart-there" points={there.join(" ")} />
        {rows.map(
          (row, index) =>
            index % every === 0 && (
              <text key={row.day} x={left(index) + thick / 2} y={HEIGHT - 6} text-anchor="middle">
                {formatted(dayAt(row), "UTC", "day-number")}
              </text>
            ),
        )}
      </svg>
      <figcaption>
        <ul class="legend">
          <li class="muted">Hours a day:</li>
          <li>
            <span class="legend-block chart-key-used" aria-hidden="true" /> promised
          </li>
          {rows.some(({ expected }) => expected !== null) && (
            <li>
              <span class="legend-block chart-key-expected" aria-hidden="true" /> expected, from the last 8 weeks; the
              line is the middle half of cases
            </li>
          )}
          <li>
            <span class="legend-block chart-key-there" aria-hidden="true" /> all there is
          </li>
        </ul>
      </figcaption>
    </figure>
  );
}

function Day(props: { row: ForecastRow; x: number; width: number; y: (seconds: number) => number }) {
  const { row, x, width, y } = props;
  const { expected } = row;
  const bottom = y(0);
  const middle = x + width / 2;
  const day = formatted(dayAt(row), "UTC", "day");
  return (
    <g>
      <rect class="chart-used" x={x} y={y(row.promised)} width={width} height={bottom - y(row.promised)}>
        <title>{`${day}: ${hoursOf(row.promised)} hours promised`}</title>
      </rect>
      {expected && (
        <>
          <rect class="chart-expected" x={x} y={y(expected.median)} width={width} height={bottom - y(expected.median)}>
            <title>{`${day}: ${hoursOf(expected.median)} hours expected, ${hoursOf(expected.lower)} to ${hoursOf(expected.upper)} in the middle half of cases`}</title>
          </rect>
          <line class="chart-between" x1={middle} x2={middle} y1={y(expected.upper)} y2={y(expected.lower)} />
        </>
      )}
    </g>
  );
}

function ForecastFigures({ rows }: { rows: readonly ForecastRow[] }) {
  const known = rows.some(({ expected }) => expected !== null);
  return (
    <div class="table-scroll">
      <table class="list stacked figures">
        <caption class="visually-hidden">Promised and expected by day, in hours</caption>
        <thead>
          <tr>
            <th scope="col">Day</th>
            <th scope="col">All there is</th>
            <th scope="col">Promised</th>
            <th scope="col">Expected</th>
            {known && (
              <>
                <th scope="col">From</th>
                <th scope="col">To</th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.day}>
              <th scope="row">{formatted(dayAt(row), "UTC", "day")}</th>
              <td class="number" data-head="All there is">
                {hoursOf(row.registered)}
              </td>
              <td class="number" data-head="Promised">
                {hoursOf(row.promised)}
              </td>
              <td class="number" data-head="Expected">
                {row.expected ? hoursOf(row.expected.median) : "not known"}
              </td>
              {known && (
                <>
                  <td class="number" data-head="From">
                    {row.expected ? hoursOf(row.expected.lower) : ""}
                  </td>
                  <td class="number" data-head="To">
                    {row.expected ? hoursOf(row.expected.upper) : ""}
                  </td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
