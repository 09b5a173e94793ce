# SPDX-License-Identifier: Apache-2.0
"""A plot of what is saved against what is late, as SVG: a point for each month."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 340, 70, 620, 60, 290
COLOURS = {"ahead": "#1f6f8b", "at-once": "#b5541c"}
NAMES = {"ahead": "all booked ahead", "at-once": "a third starts at once"}


def draw_plot(runs: Sequence[Mapping[str, object]]) -> str:
    """Return a plot: the part of starts that are late over the part of idle energy that is saved."""
    top = max(0.5, *(100 * _late(run) for run in runs))
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13"><rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    ]
    for percent in range(0, 101, 20):
        x = LEFT + (RIGHT - LEFT) * percent / 100
        drawn.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{TOP}" y2="{BOTTOM}" stroke="#dddddd"/>')
        drawn.append(f'<text x="{x:.0f}" y="{BOTTOM + 18}" text-anchor="middle">{percent} %</text>')
    for part in range(5):
        y = BOTTOM - (BOTTOM - TOP) * part / 4
        drawn.append(f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y:.0f}" y2="{y:.0f}" stroke="#dddddd"/>')
        drawn.append(f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{top * part / 4:.2f} %</text>')
    for run in runs:
        x = LEFT + (RIGHT - LEFT) * float(str(run["saved"]))
        y = BOTTOM - (BOTTOM - TOP) * 100 * _late(run) / top
        hollow = "fill-opacity" if run["learned"] else "data-filled"
        drawn.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{COLOURS[str(run["mix"])]}" {hollow}="0.2" '
            f'stroke="{COLOURS[str(run["mix"])]}"/>'
        )
    for place, (name, text) in enumerate(NAMES.items()):
        drawn.append(f'<rect x="{LEFT + place * 200}" y="10" width="12" height="12" fill="{COLOURS[name]}"/>')
        drawn.append(f'<text x="{LEFT + place * 200 + 18}" y="21">{text}</text>')
    drawn.append(f'<text x="{LEFT}" y="46">starts that are late (up), idle energy saved (to the right)</text>')
    return "\n".join([*drawn, "</svg>", ""])


def _late(run: Mapping[str, object]) -> float:
    return int(str(run["late"])) / max(1, int(str(run["starts"])))
