/* SPDX-License-Identifier: BSD-3-Clause */
/* The time line: a row for each rank or group of ranks. From afar the shares of slices of time are stacked; close up the longest calls
   are drawn one by one. */

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
const DIGIT = Object.fromEntries([...DIGITS].map((digit, i) => [digit, i]));
const TIME_LEFT = 118, TIME_TOP = 30, CALLS_DRAWN = 1500, ARROWS_DRAWN = 300;
const TRACK_HEIGHT = 36, CONNECTIONS_DRAWN = 600;

function timeView(t) {
    const [from, until] = chosen.view || [0, t.span];
    return { from: Math.max(0, Math.min(from, t.span)), until: Math.max(Math.min(until, t.span), 1) };
}

/* Changes the part that is shown: by a factor around its middle, or by a share of its width. */
function changeView(t, factor, shift) {
    const { from, until } = timeView(t), wide = Math.min(Math.max((until - from) * factor, 100), t.span);
    const middle = (from + until) / 2 + shift * (until - from);
    const begin = Math.min(Math.max(middle - wide / 2, 0), t.span - wide);
    chosen.view = wide >= t.span ? null : [begin, begin + wide];
    draw();
}

function stackedRow(t, row, view, place, y, height) {
    const part = svg("g", null), base = new Array(512).fill(y + height);
    row.shares.forEach((text, activity) => {
        let path = "";
        for (let i = 0; i < text.length; i++) {
            const share = DIGIT[text[i]], from = t.offset + i * t.slice, until = from + t.slice;
            if (!share || until <= view.from || from >= view.until)
                continue;
            const x = place(Math.max(from, view.from)), wide = Math.max(place(Math.min(until, view.until)) - x, 0.4);
            const size = share / 63 * height;
            base[i] -= size;
            path += `M${round(x)} ${round(base[i])}h${round(wide)}v${round(size)}h${round(-wide)}z`;
        }
        if (path)
            part.append(svg("path", { d: path, class: "a" + activity }));
    });
    return part;
}

/* The calls of the part that is shown, or null if slices tell more. */
function callsIn(t, view) {
    if (t.per > 1 && view.until - view.from > t.slice * 64)
        return null;
    const list = t.calls.filter((call) => call[LONG.begin] < view.until && call[LONG.begin] + call[LONG.ns] > view.from);
    const close = view.until - view.from < t.span / 4 || t.calls.length < CALLS_DRAWN / 2;
    return close && list.length > 0 && list.length <= CALLS_DRAWN ? list : null;
}

function callText(t, call) {
    const name = t.operations[call[LONG.operation]];
    return `rank ${call[LONG.rank]}, thread ${call[LONG.thread]}: ${name} at ${nanos(call[LONG.begin])}, ${nanos(call[LONG.ns])}` +
        (call[LONG.peer] >= 0 ? `, peer ${call[LONG.peer]}` : "") + (call[LONG.bytes] ? `, ${bytes(call[LONG.bytes])}` : "") +
        (call[LONG.place] ? `, ${call[LONG.place]}` : "");
}

/* Longer calls below shorter ones: what a call contains lies on it, a little lower. */
function drawCalls(image, t, list, view, place, rowOf, height) {
    const depth = new Map();
    for (const call of [...list].sort((a, b) => a[LONG.begin] - b[LONG.begin] || b[LONG.ns] - a[LONG.ns])) {
        const key = call[LONG.rank] + "/" + call[LONG.thread], end = call[LONG.begin] + call[LONG.ns];
        const open = (depth.get(key) || []).filter((until) => until > call[LONG.begin]);
        const inset = Math.min(open.length * 3, height / 2), x = place(Math.max(call[LONG.begin], view.from));
        const wide = Math.max(place(Math.min(end, view.until)) - x, 1), y = rowOf(call[LONG.rank]);
        depth.set(key, [...open, end]);
        image.append(titled(box(x, y + inset, wide, height - inset, `call${wide > 4 ? " wide" : ""} a${call[LONG.activity]}`), callText(t, call)));
    }
}

function drawArrows(image, t, view, place, rowOf, height) {
    const list = t.messages.filter((m) => m[2] >= view.from && m[2] + m[3] <= view.until).slice(0, ARROWS_DRAWN);
    for (const [from, to, sent, ns] of list) {
        const x1 = place(sent), x2 = place(sent + ns), y1 = rowOf(from) + height / 2, y2 = rowOf(to) + height / 2;
        const angle = Math.atan2(y2 - y1, x2 - x1), tip = (a) => `L${round(x2 - 7 * Math.cos(angle + a))} ${round(y2 - 7 * Math.sin(angle + a))}`;
        image.append(titled(svg("g", null, line(x1, y1, x2, y2, "arrow"), svg("path", { class: "arrowhead", d: `M${round(x2)} ${round(y2)}${tip(0.4)}${tip(-0.4)}z` })),
            `message from rank ${from} to rank ${to}, sent at ${nanos(sent)}, handled ${nanos(ns)} later`));
    }
    return list.length;
}

function timeAxis(image, view, place, bottom, width) {
    const wide = view.until - view.from, step = ticks(wide, Math.max(2, Math.floor((width - TIME_LEFT) / 120)))[1];
    for (let at = Math.ceil(view.from / step) * step; at <= view.until; at += step)
        image.append(line(place(at), TIME_TOP - 6, place(at), bottom, "grid"),
            label(Math.min(place(at), width - 34), TIME_TOP - 12, nanos(at), { "text-anchor": "middle" }));
}

/* Bars of slices, as high as how many there were at a time, on the average. */
function drawTrack(image, t, track, view, place, y, name, color) {
    const peak = most(track, ([, ns]) => ns);
    for (const [slice, ns] of track) {
        const from = t.offset + slice * t.slice, until = from + t.slice;
        if (until <= view.from || from >= view.until)
            continue;
        const x = place(Math.max(from, view.from)), size = Math.max(ns / peak * TRACK_HEIGHT, 1);
        image.append(titled(box(x, y + TRACK_HEIGHT - size, Math.max(place(Math.min(until, view.until)) - x, 1), size, color),
            `${name}: ${short(ns / t.slice)} at a time at ${nanos(Math.max(from, 0))}`));
    }
}

/* One bar for each connection, beside those that were made at the same time. */
function drawConnections(image, list, view, place, y) {
    const ends = [], bars = [...list].sort((a, b) => a[CONNECTION.begin] - b[CONNECTION.begin]).map((made) => {
        let lane = ends.findIndex((end) => end <= made[CONNECTION.begin]);
        lane = lane < 0 ? ends.length : lane;
        ends[lane] = made[CONNECTION.begin] + made[CONNECTION.ns];
        return [made, lane];
    });
    const high = TRACK_HEIGHT / Math.max(ends.length, 3);
    for (const [made, lane] of bars) {
        const x = place(Math.max(made[CONNECTION.begin], view.from)), end = place(Math.min(made[CONNECTION.begin] + made[CONNECTION.ns], view.until));
        image.append(titled(box(x, y + lane * high, Math.max(end - x, 1), high * 0.8, "connection a8"),
            `rank ${made[CONNECTION.rank]} was connected to rank ${made[CONNECTION.peer]}` + (made[CONNECTION.rail] < 0 ? "" : ` on rail ${made[CONNECTION.rail]}`) +
            ` in ${nanos(made[CONNECTION.ns])}, from ${nanos(made[CONNECTION.begin])}`));
    }
}

/* Rows below those of the ranks, for all ranks together. */
function drawTracks(image, t, tracks, view, place, y, plot) {
    for (const [name, track, color] of tracks) {
        const list = t.connections.filter((made) => made[CONNECTION.begin] < view.until && made[CONNECTION.begin] + made[CONNECTION.ns] > view.from);
        image.append(box(TIME_LEFT, y, plot, TRACK_HEIGHT, "empty"), label(TIME_LEFT - 10, y + TRACK_HEIGHT / 2 + 4, name, { "text-anchor": "end" }));
        if (name === "connections" && t.connections.length === t.connected && list.length <= CONNECTIONS_DRAWN)
            drawConnections(image, list, view, place, y);
        else
            drawTrack(image, t, track, view, place, y, name, color);
        y += TRACK_HEIGHT + 5;
    }
}

function timePicture(model, width) {
    const t = model.timeline, view = timeView(t), rows = t.rows.length, height = rows > 32 ? 10 : rows > 12 ? 16 : 30, gap = rows > 32 ? 2 : 5;
    const tracks = [["connections", t.connecting, "a8"], ["registration", t.registering, "a9"]].filter(([, track]) => track.length);
    const below = TIME_TOP + rows * (height + gap), bottom = below + (tracks.length ? 8 + tracks.length * (TRACK_HEIGHT + 5) : 0), plot = width - TIME_LEFT - 12;
    const place = (ns) => TIME_LEFT + (ns - view.from) / (view.until - view.from) * plot;
    const rowOf = (rank) => TIME_TOP + Math.floor(rank / t.per) * (height + gap);
    const image = picture(width, bottom + 6, "Time line of ranks", { tabindex: 0, id: "timeline-picture" });
    const list = callsIn(t, view), each = every(15 / (height + gap));
    timeAxis(image, view, place, bottom, width);
    t.rows.forEach((row, i) => {
        const y = TIME_TOP + i * (height + gap);
        image.append(box(TIME_LEFT, y, plot, height, "empty"));
        if (i === chosen.row)
            image.append(svg("path", { class: "arrowhead", d: `M${TIME_LEFT - 6} ${round(y + height / 2 - 4)}l5 4l-5 4z` }));
        if (i % each === 0)
            image.append(label(TIME_LEFT - 10, y + height / 2 + 4, ranksOf(row.first, row.last), { "text-anchor": "end", class: i === chosen.row && "strong" }));
        if (!list)
            image.append(stackedRow(t, row, view, place, y, height));
    });
    if (list)
        drawCalls(image, t, list, view, place, rowOf, height);
    for (const [rank, at, text] of t.marks)
        if (at >= view.from && at <= view.until)
            image.append(titled(line(place(at), rowOf(rank) - 2, place(at), rowOf(rank) + height + 2, "tick-mark"), `rank ${rank} at ${nanos(at)}: ${text}`));
    drawTracks(image, t, tracks, view, place, below + 8, plot);
    const arrows = chosen.arrows ? drawArrows(image, t, view, place, rowOf, height) : 0;
    return { image, place, plot, view, list, arrows };
}

/* Dragging chooses a part; a key acts on what is shown. */
function timeControls(model, drawn, readout) {
    const t = model.timeline, { image, plot, view } = drawn;
    const at = (event) => {
        const area = image.getBoundingClientRect(), zoom = image.viewBox.baseVal.width / area.width;
        const share = ((event.clientX - area.left) * zoom - TIME_LEFT) / plot;
        return view.from + Math.min(Math.max(share, 0), 1) * (view.until - view.from);
    };
    let begin = null;
    const mark = box(0, TIME_TOP, 0, image.viewBox.baseVal.height - TIME_TOP, "chosen");
    image.addEventListener("pointerdown", (event) => { begin = at(event); image.append(mark); });
    image.addEventListener("pointermove", (event) => {
        if (begin === null)
            return;
        const [low, high] = [begin, at(event)].sort((a, b) => a - b);
        mark.setAttribute("x", round(drawn.place(low)));
        mark.setAttribute("width", round(drawn.place(high) - drawn.place(low)));
    });
    image.addEventListener("pointerup", (event) => {
        const [low, high] = [begin === null ? 0 : begin, at(event)].sort((a, b) => a - b);
        const isDragged = begin !== null && high - low > (view.until - view.from) / 100;
        begin = null;
        mark.remove();
        if (isDragged) {
            chosen.view = [low, high];
            draw();
        }
    });
    const act = { "+": () => changeView(t, 0.5, 0), "=": () => changeView(t, 0.5, 0), "-": () => changeView(t, 2, 0),
        ArrowLeft: () => changeView(t, 1, -0.25), ArrowRight: () => changeView(t, 1, 0.25), Home: () => { chosen.view = null; draw(); },
        ArrowUp: () => { chosen.row = Math.max(chosen.row - 1, 0); draw(); },
        ArrowDown: () => { chosen.row = Math.min(chosen.row + 1, t.rows.length - 1); draw(); } };
    image.addEventListener("keydown", (event) => {
        if (!act[event.key] || event.ctrlKey || event.metaKey || event.altKey)
            return;
        event.preventDefault();
        act[event.key]();
    });
    readout.textContent = rowText(t, t.rows[chosen.row] || t.rows[0], view);
    const button = (text, name, key) => el("button", { type: "button", id: name, "aria-label": text, click: act[key] }, text);
    return el("div", { class: "controls" }, button("Zoom in", "time-in", "+"), button("Zoom out", "time-out", "-"),
        button("Earlier", "time-left", "ArrowLeft"), button("Later", "time-right", "ArrowRight"), button("All", "time-all", "Home"),
        el("label", null, fill(el("input", { type: "checkbox", id: "time-arrows", change: (event) => { chosen.arrows = event.target.checked; draw(); } }),
            { checked: chosen.arrows }, []), "Messages"));
}

function rowShares(t, row, view) {
    return row.shares.map((text) => {
        let share = 0, slices = 0;
        for (let i = 0; t.offset + i * t.slice < view.until; i++) {
            if (t.offset + (i + 1) * t.slice <= view.from)
                continue;
            slices++;
            share += (DIGIT[text[i]] || 0) / 63;
        }
        return slices ? share / slices : 0;
    });
}

function rowText(t, row, view) {
    const parts = rowShares(t, row, view).map((share, i) => [share, t.activities[i]]).filter(([share]) => share >= 0.0005)
        .sort((a, b) => b[0] - a[0]).map(([share, name]) => `${name} ${percent(share)}`);
    return `${ranksOf(row.first, row.last)}, ${nanos(view.from)} to ${nanos(view.until)}: ` + (parts.join(", ") || "no calls");
}

function timelineSection(model, width) {
    const t = model.timeline;
    if (!t)
        return null;
    const drawn = timePicture(model, width), readout = el("p", { class: "readout", "aria-live": "polite" });
    const controls = timeControls(model, drawn, readout);
    const used = t.activities.map((name, i) => [name, i]).filter(([, i]) => t.rows.some((row) => row.shares[i]));
    return el("section", { id: "timeline" }, el("h2", null, "Time line"),
        el("p", { class: "lead" }, "The share of time in calls of the library, each without calls inside of it; what is left empty is the program's own. " +
            "Keys: + and − zoom, ← and → move, ↑ and ↓ choose a row, Home shows all; drag over a part to see only that." +
            (t.per > 1 ? ` A row stands for ${t.per} ranks.` : "") +
            (t.connected ? " Connections: from when the peer was asked for, or asked, until messages may be sent." : "")),
        controls,
        el("ul", { class: "keys" }, ...used.map(([name, i]) => el("li", null, el("span", { class: "swatch a" + i }), name)),
            t.marks.length ? el("li", null, el("span", { class: "swatch mark-swatch" }), "texts of the program") : null),
        drawn.image, readout,
        el("p", { class: "soft" }, (drawn.list ? `${plural(drawn.list.length, "call")} drawn one by one (the longest of each rank).` :
            "Zoom in to see single calls.") + (chosen.arrows ? ` ${plural(drawn.arrows, "message")} of a sample of ${count(t.messages.length)} of ${count(t.sent)}.` : "")),
        t.connected ? folded("timeline-connections", "Connections", () => table(`Connections made, the longest first, ${Math.min(t.connections.length, 200)} of ${count(t.connected)}`,
            [["rank"], ["peer"], ["rail"], ["began at"], ["took"]],
            [...t.connections].sort((a, b) => b[CONNECTION.ns] - a[CONNECTION.ns]).slice(0, 200).map((made) => [String(made[CONNECTION.rank]), String(made[CONNECTION.peer]),
                made[CONNECTION.rail] < 0 ? "" : String(made[CONNECTION.rail]), nanos(made[CONNECTION.begin]), nanos(made[CONNECTION.ns])]))) : null,
        folded("timeline-table", "As a table", () => table("Share of the time of each thread, in the part that is shown",
            [["ranks", true], ...used.map(([name]) => [name])],
            t.rows.map((row) => { const shares = rowShares(t, row, drawn.view); return [ranksOf(row.first, row.last), ...used.map(([, i]) => percent(shares[i]))]; }))));
}
