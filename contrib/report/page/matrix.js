/* SPDX-License-Identifier: BSD-3-Clause */
/* Who talks to whom: rows are ranks that start operations, columns their peers. Colour is the logarithm of the amount, on the scale
   cividis, which looks alike to all kinds of colour vision. */

const CIVIDIS = [[0, 34, 78], [40, 59, 112], [87, 93, 109], [123, 121, 119], [165, 154, 114], [208, 188, 97], [254, 232, 56]];

function cividis(share) {
    const at = (0.06 + 0.94 * Math.min(Math.max(share, 0), 1)) * (CIVIDIS.length - 1), low = Math.min(Math.floor(at), CIVIDIS.length - 2);
    return "rgb(" + CIVIDIS[low].map((c, i) => Math.round(c + (CIVIDIS[low + 1][i] - c) * (at - low))).join(",") + ")";
}

function isChosen(matrix, cell) {
    return (chosen.kind === "all" || matrix.kinds[cell[CELL.kind]] === chosen.kind) && (chosen.path === "all" || matrix.paths[cell[CELL.path]] === chosen.path);
}

/* Amounts of the chosen metric, kind and path, by row and column. */
function matrixAmounts(matrix, size) {
    const cells = Math.ceil(size / matrix.per), amounts = Array.from({ length: cells }, () => new Array(cells).fill(0));
    const column = chosen.metric === "bytes" ? CELL.bytes : CELL.count;
    for (const cell of matrix.cells)
        if (isChosen(matrix, cell))
            if (cell[CELL.from] < cells && cell[CELL.to] < cells)
                amounts[cell[CELL.from]][cell[CELL.to]] += cell[column];
    return amounts;
}

/* Between the last rank of a host and the first of the next one, in cells. */
function hostBorders(model, per) {
    const borders = [];
    for (let i = 1; i < model.ranks.length; i++)
        if (model.ranks[i].host !== model.ranks[i - 1].host)
            borders.push(model.ranks[i].rank / per);
    return borders;
}

function cellName(model, from, to) {
    const per = model.matrix.per, name = (i) => ranksOf(i * per, Math.min((i + 1) * per, model.size) - 1);
    return name(from) + " → " + name(to);
}

function scaleOf(amounts) {
    let least = Infinity, largest = 0;
    for (const row of amounts)
        for (const amount of row)
            if (amount > 0) {
                least = Math.min(least, amount);
                largest = Math.max(largest, amount);
            }
    const span = Math.log(largest / least);
    return { least, largest, share: (amount) => (span > 0 ? Math.log(amount / least) / span : 1) };
}

function matrixLegend(scale, format, x, width) {
    const part = svg("g", null);
    if (scale.least === scale.largest) {
        const step = svg("rect", { x: round(x), y: 8, width: 12, height: 12 });
        step.style.fill = cividis(1);
        return fill(part, null, [step, label(x + 20, 18, format(scale.least) + " each")]);
    }
    for (let i = 0; i < 48; i++) {
        const step = svg("rect", { x: round(x + i * width / 48), y: 8, width: round(width / 48 + 0.5), height: 12 });
        step.style.fill = cividis((i + 0.5) / 48);
        part.append(step);
    }
    part.append(label(x, 36, format(scale.least)), label(x + width, 36, format(scale.largest), { "text-anchor": "end" }));
    part.append(label(x + width / 2, 36, "logarithmic", { "text-anchor": "middle" }));
    return part;
}

function matrixPicture(model, amounts, width) {
    const format = chosen.metric === "bytes" ? bytes : (n) => few(n);
    const cells = amounts.length, left = 78, top = 84, per = model.matrix.per;
    const room = Math.min(width - left - 20, 680), step = Math.min(room / cells, 96), side = step * cells;
    const scale = scaleOf(amounts), total = Math.max(left + side + 20, left + 320);
    const image = picture(total, top + side + 14, "Matrix of ranks: rows start operations towards columns", { tabindex: 0, id: "matrix-picture" });
    if (scale.largest > 0)
        image.append(matrixLegend(scale, format, left, Math.min(Math.max(side, 260), 300)));
    image.append(label(left + side / 2, top - 24, "to rank", { "text-anchor": "middle", class: "ink" }),
        svg("text", { class: "ink", "text-anchor": "middle", transform: `translate(14 ${round(top + side / 2)}) rotate(-90)` }, "from rank"),
        box(left, top, side, side, "empty"));
    const each = every(30 / step);
    for (let i = 0; i < cells; i += each)
        image.append(label(left + (i + 0.5) * step, top - 7, String(i * per), { "text-anchor": "middle" }),
            label(left - 8, top + (i + 0.5) * step + 4, String(i * per), { "text-anchor": "end" }));
    for (let from = 0; from < cells; from++)
        for (let to = 0; to < cells; to++)
            if (amounts[from][to] > 0) {
                const gap = step > 12 ? 1 : 0, share = scale.share(amounts[from][to]);
                const cell = box(left + to * step + gap / 2, top + from * step + gap / 2, step - gap, step - gap);
                cell.style.fill = cividis(share);
                image.append(cell);
                if (step >= 64) {
                    const text = label(left + (to + 0.5) * step, top + (from + 0.5) * step + 4, format(amounts[from][to]), { "text-anchor": "middle" });
                    text.style.fill = share > 0.55 ? "#101820" : "#ffffff";
                    image.append(text);
                }
            }
    for (const border of hostBorders(model, per)) {
        image.append(line(left + border * step, top - 4, left + border * step, top + side, "host"),
            line(left - 4, top + border * step, left + side, top + border * step, "host"));
    }
    return { image, left, top, step, format };
}

/* A cursor that the pointer and the arrow keys move. */
function matrixCursor(model, amounts, drawn, readout) {
    const { image, left, top, step, format } = drawn, cells = amounts.length;
    const cursor = box(0, 0, step, step, "cursor");
    const show = (from, to) => {
        chosen.cell = [from, to];
        cursor.setAttribute("x", round(left + to * step));
        cursor.setAttribute("y", round(top + from * step));
        image.append(cursor);
        readout.textContent = cellName(model, from, to) + ": " + (amounts[from][to] ? format(amounts[from][to]) : "nothing");
    };
    const keys = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    image.addEventListener("keydown", (event) => {
        const by = keys[event.key], [from, to] = chosen.cell || [0, 0];
        if (!by)
            return;
        event.preventDefault();
        show(Math.min(Math.max(from + by[0], 0), cells - 1), Math.min(Math.max(to + by[1], 0), cells - 1));
    });
    image.addEventListener("pointermove", (event) => {
        const area = image.getBoundingClientRect(), zoom = image.viewBox.baseVal.width / area.width;
        const to = Math.floor(((event.clientX - area.left) * zoom - left) / step);
        const from = Math.floor(((event.clientY - area.top) * zoom - top) / step);
        if (from >= 0 && to >= 0 && from < cells && to < cells)
            show(from, to);
    });
    if (chosen.cell && chosen.cell[0] < cells && chosen.cell[1] < cells)
        show(...chosen.cell);
}

/* Beside the picture: what went by each path, and the largest cells. */
function matrixAside(model, amounts) {
    const matrix = model.matrix, column = chosen.metric === "bytes" ? CELL.bytes : CELL.count, format = chosen.metric === "bytes" ? bytes : count;
    const all = sum(matrix.cells, (cell) => cell[column]), heaviest = [];
    amounts.forEach((row, from) => row.forEach((amount, to) => { if (amount > 0) heaviest.push([amount, from, to]); }));
    heaviest.sort((a, b) => b[0] - a[0] || a[1] - b[1] || a[2] - b[2]);
    const by = matrix.kinds.flatMap((kind, k) => matrix.paths.map((path, p) => [kind + ", " + path,
        sum(matrix.cells.filter((cell) => cell[CELL.kind] === k && cell[CELL.path] === p), (cell) => cell[column])])).filter(([, amount]) => amount > 0);
    return el("div", { class: "aside" }, el("h3", null, "By path"),
        el("table", { id: "matrix-paths" }, el("tbody", null, ...by.map(([name, amount]) =>
            el("tr", null, el("td", { class: "text" }, name), el("td", null, format(amount)), el("td", null, percent(amount / all)))))),
        el("h3", null, "Largest cells"),
        el("table", null, el("tbody", null, ...heaviest.slice(0, 10).map(([amount, from, to]) => el("tr", null, el("td", { class: "text" }, cellName(model, from, to)), el("td", null, format(amount)))))));
}

/* What each rail carried; a striped call is one of each of its rails. */
function railsTable(matrix) {
    return table("Bytes over each rail, from the trace", [["rail"], ["calls"], ["puts"], ["gets"], ["messages"], ["others"], ["connections made"]],
        matrix.rails.map((rail) => [String(rail[RAIL.rail]), ...[RAIL.calls, RAIL.puts, RAIL.gets, RAIL.messages, RAIL.others, RAIL.connections].map((c) => count(rail[c]))]));
}

function matrixTable(model, amounts) {
    const rows = [];
    amounts.forEach((row, from) => row.forEach((amount, to) => { if (amount > 0) rows.push([amount, from, to]); }));
    rows.sort((a, b) => b[0] - a[0] || a[1] - b[1] || a[2] - b[2]);
    return table("The largest first" + (rows.length > 200 ? `; 200 of ${count(rows.length)}` : ""),
        [["from → to", true], [chosen.metric === "bytes" ? "bytes" : "operations"]],
        rows.slice(0, 200).map(([amount, from, to]) => [cellName(model, from, to), count(amount)]));
}

function matrixSection(model, width) {
    const matrix = model.matrix;
    if (!matrix)
        return null;
    const amounts = matrixAmounts(matrix, model.size), drawn = matrixPicture(model, amounts, width);
    const readout = el("p", { class: "readout", "aria-live": "polite" }, "Point at a cell, or use the arrow keys.");
    matrixCursor(model, amounts, drawn, readout);
    const present = (names, column) => [["all", "all"], ...names.filter((name, i) => matrix.cells.some((cell) => cell[column] === i)).map((name) => [name, name])];
    return el("section", { id: "matrix" }, el("h2", null, "Who talks to whom"),
        el("p", { class: "lead" }, "Operations that ranks started, from the trace. Lines are borders between hosts." +
            (matrix.per > 1 ? ` A cell stands for ${matrix.per} × ${matrix.per} ranks.` : "") +
            (matrix.rails.length ? " A rail is a port in use; what is cut into pieces goes over several." : "")),
        el("div", { class: "controls" },
            choice("matrix-metric", "Show", [["bytes", "bytes"], ["count", "operations"]], chosen.metric, (v) => { chosen.metric = v; draw(); }),
            choice("matrix-kind", "Of", present(matrix.kinds, CELL.kind), chosen.kind, (v) => { chosen.kind = v; draw(); }),
            choice("matrix-path", "Path", present(matrix.paths, CELL.path), chosen.path, (v) => { chosen.path = v; draw(); })),
        el("div", { class: "beside" }, el("div", { class: "with-readout" }, drawn.image, readout), matrixAside(model, amounts)), matrix.rails.length ? folded("matrix-rails", "Rails", () => railsTable(matrix)) : null,
        folded("matrix-table", "As a table", () => matrixTable(model, amounts)));
}
