# SPDX-License-Identifier: Apache-2.0
"""A plot of the utilization with and without a waiting list, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 320, 60, 270, 40
COLOURS = {"refuse_only": "#9aa5b1", "utilization": "#1f6f8b"}
NAMES = {"refuse_only": "refuse what does not fit", "utilization": "waiting list"}


def plot(runs: Sequence[Mapping[str, object]]) -> str:
    """Return bars of the means of all seeds; whiskers are the lowest and the highest of them."""
    mixes = sorted({str(run["mix"]) for run in runs}, key=lambda mix: int(mix.split("-")[1]))
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13"><rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    ]
    for percent in range(0, 101, 20):
        y = _y(percent / 100)
        drawn.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y}" y2="{y}" stroke="#dddddd"/>')
        drawn.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{percent} %</text>')
    for number, mix in enumerate(mixes):
        middle = LEFT + (WIDTH - LEFT - 20) * (number + 0.5) / len(mixes)
        drawn.append(f'<text x="{middle:.0f}" y="{BOTTOM + 20}" text-anchor="middle">{mix} hosts</text>')
        for place, name in enumerate(NAMES):
            values = [float(str(run[name])) for run in runs if run["mix"] == mix]
            mean, x = sum(values) / len(values), middle + (place - 1) * 58 + 4
            drawn.append(
                f'<rect x="{x:.0f}" y="{_y(mean)}" width="50" height="{BOTTOM - _y(mean):.1f}" fill="{COLOURS[name]}"/>'
                f'<line x1="{x + 25:.0f}" x2="{x + 25:.0f}" y1="{_y(min(values))}" y2="{_y(max(values))}" '
                f'stroke="#000000" stroke-width="2"/>'
                f'<text x="{x + 25:.0f}" y="{_y(max(values)) - 5}" text-anchor="middle">{mean * 100:.1f}</text>'
            )
    for place, (name, text) in enumerate(NAMES.items()):
        x = LEFT + place * 220
        drawn.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{COLOURS[name]}"/>')
        drawn.append(f'<text x="{x + 18}" y="23">{text}</text>')
    return "\n".join([*drawn, "</svg>", ""])


def _y(share: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * share, 1)
