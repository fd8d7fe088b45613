"""What notebooks show of devices, networks and trainings: tables and pictures without scripts."""
import base64
import html

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 380, 220, 48, 12, 26, 28
# Of training and validation; readable on light and dark pages.
COLOURS = {"": "#3f7fbf", "val_": "#d9822b"}
MOST_POINTS = 400


def table(names, rows):
    head = "".join(f"<th>{html.escape(name.removesuffix('_bytes').replace('_', ' '))}</th>" for name in names)
    lines = "".join("<tr>" + "".join(f"<td>{html.escape(cell(name, value))}</td>" for name, value in zip(names, row)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def cell(name, value):
    if name == "memory_bytes":
        return f"{value / 2 ** 30:.1f} GiB"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def picture(svg, text):
    """As an image, whose styles stay its own."""
    return f'<img alt="{html.escape(text)}" style="max-width:100%" src="data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"/>'


def curves(history):
    """Losses and accuracies by epoch."""
    drawn = [chart(history, name) for name in ("loss", "accuracy") if history.get(name)]
    return f'<div style="display:flex;flex-wrap:wrap;gap:1em">{"".join(drawn)}</div>' if drawn else "<i>no epoch yet</i>"


def chart(history, name):
    lines = {prefix: history[prefix + name] for prefix in COLOURS if history.get(prefix + name)}
    numbers = [number for line in lines.values() for number in line if number == number and abs(number) < float("inf")]
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    low = 0.0 if name == "loss" and low < high / 2 else low
    high = high if high > low else low + (abs(low) or 1.0) * 0.1
    most = max(map(len, lines.values()))

    def place(epoch, number):
        x = LEFT + (WIDTH - LEFT - RIGHT) * (epoch - 1) / max(most - 1, 1)
        return f"{x:.1f},{TOP + (HEIGHT - TOP - BOTTOM) * (high - number) / (high - low):.1f}"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name} by epoch" '
             'font-family="sans-serif" font-size="12" fill="currentColor">', f'<text x="{LEFT}" y="16" font-weight="600">{name}</text>']
    for part in (0.0, 0.5, 1.0):
        y = TOP + (HEIGHT - TOP - BOTTOM) * (1 - part)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" stroke-opacity=".25"/>'
                     f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{low + part * (high - low):.3g}</text>')
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 8}">1</text><text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{most}</text>'
                 f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">epoch</text>')
    for number, (prefix, line) in enumerate(lines.items()):
        chosen = range(0, len(line), -(-len(line) // MOST_POINTS))
        points = " ".join(place(epoch + 1, line[epoch]) for epoch in chosen if low <= line[epoch] <= high)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[prefix]}" stroke-width="2"/>' if len(chosen) > 1
                     else f'<circle cx="{points.partition(",")[0]}" cy="{points.partition(",")[2]}" r="3" fill="{COLOURS[prefix]}"/>' if points else "")
        x = WIDTH - RIGHT - 76 * (len(lines) - number)
        parts.append(f'<text x="{x}" y="16" fill="{COLOURS[prefix]}">{"validation" if prefix else "training"} </text>')
    return "".join(parts) + "</svg>"
