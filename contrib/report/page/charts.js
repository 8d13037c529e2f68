/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of numbers: histograms over powers of two, bars of ranks, lines over time. Each returns elements and keeps nothing. */

const LEFT = 190, RIGHT = 84;

/* One panel a row, all over the same axis of powers of two. Rows: {name, bins: [[exponent, count], ...], title}. */
function histograms(rows, width, axis, format, text) {
    const all = rows.flatMap((row) => row.bins.map(([exponent]) => exponent));
    const first = Math.min(...all), last = Math.max(...all) + 1;
    const plot = width - LEFT - RIGHT, step = plot / Math.max(last - first, 8), height = 46, gap = 14, top = 20;
    const bottom = top + rows.length * (height + gap);
    const image = picture(width, bottom + 40, text);
    const each = Math.max(1, Math.ceil(64 / step));
    const end = first + Math.max(last - first, 8);
    for (let exponent = first; exponent <= end; exponent++)
        if ((exponent - first) % each === 0) {
            const x = LEFT + (exponent - first) * step;
            image.append(line(x, top - 6, x, bottom, "grid"), label(x, bottom + 14, power(exponent, format), { "text-anchor": "middle" }));
        }
    image.append(label(LEFT + plot / 2, bottom + 34, axis, { "text-anchor": "middle", class: "ink" }),
        label(width - 4, 12, "calls", { "text-anchor": "end" }));
    rows.forEach((row, i) => {
        const base = top + (i + 1) * (height + gap) - gap, peak = most(row.bins, (bin) => bin[1]);
        image.append(line(LEFT, base, LEFT + plot, base, "axis"),
            label(LEFT - 12, base - height / 2 + 4, row.name, { "text-anchor": "end", class: "ink" }),
            label(width - 4, base - height / 2 + 4, few(sum(row.bins, (bin) => bin[1])), { "text-anchor": "end", class: "ink" }));
        for (const [exponent, number] of row.bins) {
            const size = Math.max(1.5, number / peak * height);
            image.append(titled(box(LEFT + (exponent - first) * step + 0.75, base - size, Math.max(step - 1.5, 1), size, "bar"),
                `${row.name}: ${power(exponent, format)} to ${power(exponent + 1, format)}: ${count(number)}`));
        }
    });
    return image;
}

/* Bars over groups of ranks: the mean, and the range where a group has several. Values: by rank. */
function rankBars(values, width, format, text) {
    const per = Math.ceil(values.length / 64), groups = [];
    for (let i = 0; i < values.length; i += per) {
        const part = values.slice(i, i + per);
        groups.push({ first: part[0].rank, last: part[part.length - 1].rank, mean: sum(part, (v) => v.value) / part.length,
            least: Math.min(...part.map((v) => v.value)), most: Math.max(...part.map((v) => v.value)) });
    }
    const left = 84, height = 190, top = 14, plot = width - left - 12, base = top + height;
    const marks = ticks(most(groups, (group) => group.most), 4, format), full = marks[marks.length - 1];
    const image = picture(width, base + 46, text);
    for (const mark of marks) {
        const y = base - mark / full * height;
        image.append(line(left, y, width - 12, y, "grid"), label(left - 8, y + 4, format(mark), { "text-anchor": "end" }));
    }
    const step = plot / groups.length, bar = Math.min(step * 0.78, 60), each = every(46 / step);
    groups.forEach((group, i) => {
        const x = left + i * step + (step - bar) / 2, size = group.mean / full * height;
        const shape = svg("g", null, box(x, base - size, bar, Math.max(size, 0.5), "bar"));
        if (per > 1)
            shape.append(line(x + bar / 2, base - group.most / full * height, x + bar / 2, base - group.least / full * height, "range"));
        image.append(titled(shape, `${ranksOf(group.first, group.last)}: ${format(group.mean)}` +
            (per > 1 ? `, from ${format(group.least)} to ${format(group.most)}` : "")));
        if (i % each === 0)
            image.append(label(x + bar / 2, base + 16, String(group.first), { "text-anchor": "middle" }));
    });
    const mean = sum(values, (v) => v.value) / values.length, y = base - mean / full * height;
    image.append(line(left, base, width - 12, base, "axis"), titled(line(left, y, width - 12, y, "mean"), "mean " + format(mean)),
        label(left + plot / 2, base + 38, per > 1 ? `first of ${per} ranks` : "rank", { "text-anchor": "middle", class: "ink" }));
    return image;
}

/* Panels over one axis of time. Panels: {name, format, lines: [{name, points: [[seconds, value], ...]}]}. */
function trends(panels, width, text, axis = "time since the start of the job") {
    /* Where there is no space for the names of lines beside that of the panel, they stand below it. */
    const isNarrow = width < 640, below = isNarrow ? 18 : 0;
    const left = 84, height = 96, gap = 40 + below, top = 26 + below, plot = width - left - 12;
    const points = panels.flatMap((panel) => panel.lines.flatMap((one) => one.points));
    const from = Math.min(...points.map((p) => p[0])), until = Math.max(...points.map((p) => p[0]));
    const place = (seconds) => left + (seconds - from) / Math.max(until - from, 1e-9) * plot;
    const bottom = top + panels.length * (height + gap) - gap, image = picture(width, bottom + 46, text);
    const step = ticks(until - from, Math.max(3, Math.floor(plot / 110)))[1], digits = Math.max(0, -Math.floor(Math.log10(step)));
    panels.forEach((panel, i) => {
        const base = top + i * (height + gap) + height;
        const marks = ticks(most(panel.lines.flatMap((one) => one.points), (p) => p[1]), 2, panel.format), full = marks[marks.length - 1];
        for (const mark of marks) {
            const y = base - mark / full * height;
            image.append(line(left, y, width - 12, y, "grid"), label(left - 8, y + 4, panel.format(mark), { "text-anchor": "end" }));
        }
        image.append(label(left, base - height - 10 - below, panel.name, { class: "strong" }));
        const apart = panel.lines.length > 2 ? 84 : 130, first = isNarrow ? left : width - apart * panel.lines.length + 10;
        panel.lines.forEach((one, k) => {
            const path = one.points.map((p, n) => (n ? "L" : "M") + round(place(p[0])) + " " + round(base - p[1] / full * height)).join("");
            const name = "trend t" + k, key = first + k * apart;
            image.append(titled(svg("path", { d: path, class: name }), one.name));
            if (one.points.length === 1) /* two records have one rate */
                image.append(titled(svg("circle", { cx: round(place(one.points[0][0])), cy: round(base - one.points[0][1] / full * height), r: 3, class: name }), one.name));
            if (panel.lines.length > 1)
                image.append(box(key, base - height - 15, 12, 4, "b" + k), label(key + 18, base - height - 10, one.name));
        });
    });
    for (let at = Math.ceil(from / step); at * step <= until; at++)
        image.append(label(Math.min(place(at * step), width - 26), bottom + 18, (at * step).toFixed(digits) + " s", { "text-anchor": "middle" }));
    image.append(line(left, bottom, width - 12, bottom, "axis"),
        label(left + plot / 2, bottom + 40, axis, { "text-anchor": "middle", class: "ink" }));
    return image;
}
