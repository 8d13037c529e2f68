/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts that are mostly words and tables: head, findings, histograms, balance, over time, source lines, settings, ranks. */

function spanOf(model) {
    const seconds = most(model.ranks, (rank) => rank.micros / 1e6);
    return seconds || (model.timeline ? model.timeline.span / 1e9 : 0);
}

function headOf(model) {
    const hosts = new Set(model.ranks.map((rank) => rank.host)).size;
    const facts = [["ranks", count(model.size)], ["hosts", count(hosts)], ["time", short(spanOf(model)) + " s"]];
    if (model.program)
        facts.unshift(["program", model.program]);
    if (model.events)
        facts.push(["events in the trace", count(model.events)]);
    const files = [["statistics", 0], ["traces", 1], ["--top", 2]].filter(([, i]) => model.files[i])
        .map(([name, i]) => `${name}: ${plural(model.files[i], "file")}`).join(", ");
    if (files && !model.live)
        facts.push(["input", files]);
    return [el("h1", null, model.title || (model.program ? "Report of " + model.program : "Report of a job")),
        model.live ? el("p", { class: "live", id: "live" }, "Live, once a second") : null,
        el("dl", { class: "facts" }, ...facts.map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, value))))];
}

/* ---- findings ---- */

function findingItem(finding) {
    return el("li", { class: "finding " + finding.weight, "data-rule": finding.rule },
        el("p", { class: "mark" }, finding.weight), el("p", { class: "sentence" }, finding.sentence),
        finding.setting ? el("p", null, "See ", el("code", null, finding.setting), " in trunkline-settings(7).") : null,
        el("dl", { class: "evidence" }, ...finding.evidence.map(([what, value]) => el("div", null, el("dt", null, what), el("dd", null, value)))));
}

function findingsSection(model) {
    const section = el("section", { id: "findings" }, el("h2", null, "Findings"),
        model.findings.length ? el("ul", { class: "findings" }, ...model.findings.map(findingItem)) : el("p", { id: "nothing" }, "Nothing stands out."));
    const missing = [...Object.values(model.missing), ...model.notes];
    if (missing.length)
        section.append(el("h3", null, "What this report does not have"), el("ul", { class: "missing" }, ...missing.map((text) => el("li", null, text))));
    return section;
}

/* ---- histograms ---- */

function sizesSection(model, width) {
    let rows = model.sizes.map(([column, bins]) => ({ name: model.counters[column][3], bins }));
    let from = "counted by the library, over all ranks";
    if (rows.length === 0) {
        rows = model.calls.filter((call) => call[CALLS.sizes].length && call[CALLS.path]).map((call) => ({ name: `${call[CALLS.operation]}, ${call[CALLS.path]}`, bins: call[CALLS.sizes] }));
        from = "from the trace";
    }
    if (rows.length === 0)
        return null;
    return el("section", { id: "sizes" }, el("h2", null, "Sizes of transfers by path"),
        el("p", { class: "lead" }, `Transfers by their size, in powers of two, ${from}. Each panel has its own height; the number at the right is its sum.`),
        histograms(rows, width, "bytes of a transfer", bytes, "Histograms of sizes by path"),
        folded("sizes-table", "As a table", () => table("Transfers by size", [["path", true], ["from"], ["to, less than"], ["transfers"]],
            rows.flatMap((row) => row.bins.map(([exponent, number]) => [row.name, power(exponent, bytes), power(exponent + 1, bytes), count(number)])))));
}

function timesSection(model, width) {
    const rows = [...model.calls].sort((a, b) => b[CALLS.ns] - a[CALLS.ns]);
    if (rows.length === 0)
        return null;
    const name = (call) => call[CALLS.operation] + (call[CALLS.path] ? ", " + call[CALLS.path] : "");
    return el("section", { id: "times" }, el("h2", null, "Times of calls by path"),
        el("p", { class: "lead" }, "How long calls took, in powers of two, the kinds with the most time first. A non-blocking call ends before its transfer does."),
        histograms(rows.slice(0, 12).map((call) => ({ name: name(call), bins: call[CALLS.times] })), width, "time of a call", nanos, "Histograms of times of calls"),
        folded("times-table", "As a table", () => table("Calls by operation and path", [["operation", true], ["path", true], ["calls"], ["total"], ["mean"], ["bytes"]],
            rows.map((call) => [call[CALLS.operation], call[CALLS.path], count(call[CALLS.calls]), nanos(call[CALLS.ns]), nanos(call[CALLS.ns] / call[CALLS.calls]), count(call[CALLS.bytes])]))));
}

/* ---- balance ---- */

/* What ranks can be compared by: sums of counters by the beginning of their names, and figures of the trace. */
const BALANCE = [
    ["bytes moved", bytes, ["put_bytes_", "get_bytes_", "message_bytes_"]],
    ["bytes over the network", bytes, ["put_bytes_network", "get_bytes_network", "message_bytes_network"]],
    ["puts", few, ["puts_"]], ["gets", few, ["gets_"]],
    ["messages sent", few, ["short_re", "medium_re", "long_re"]],
    ["messages handled", few, ["shorts_received", "mediums_received", "longs_received"]],
    ["time waited for credits", nanos, ["credit_wait_ns"]], ["time waited for space", nanos, ["room_wait_ns"]],
    ["sleeps", few, ["sleeps"]], ["registrations", few, ["regions_registered"]]];
const BALANCE_TRACE = [["time in waits (trace)", TRACE.waits], ["time in handlers (trace)", TRACE.handlers], ["time in calls (trace)", TRACE.calls]];

function balances(model) {
    const list = [];
    for (const [name, format, starts] of BALANCE) {
        const columns = model.counters.map((c, i) => [c[0], i]).filter(([id]) => starts.some((s) => id.startsWith(s))).map(([, i]) => i);
        const values = model.ranks.filter((rank) => rank.counters).map((rank) => ({ rank: rank.rank, value: sum(columns, (i) => rank.counters[i]) }));
        if (values.some((v) => v.value > 0))
            list.push({ name, format, values });
    }
    for (const [name, column] of BALANCE_TRACE) {
        const values = model.ranks.filter((rank) => rank.trace).map((rank) => ({ rank: rank.rank, value: rank.trace[column] }));
        if (values.some((v) => v.value > 0))
            list.push({ name, format: nanos, values });
    }
    return list;
}

function balanceSection(model, width) {
    const list = balances(model);
    if (list.length === 0 || model.ranks.length < 2)
        return null;
    const one = list.find((item) => item.name === chosen.balance) || list[0];
    const mean = sum(one.values, (v) => v.value) / one.values.length, largest = one.values.reduce((a, b) => (b.value > a.value ? b : a));
    return el("section", { id: "balance" }, el("h2", null, "Balance of ranks"),
        el("div", { class: "controls" }, choice("balance-of", "Compare", list.map((item) => [item.name, item.name]), one.name, (v) => { chosen.balance = v; draw(); })),
        rankBars(one.values, width, one.format, "Bars of ranks: " + one.name),
        el("p", { class: "readout" }, `Mean ${one.format(mean)} (dashed); most: rank ${largest.rank}, ${one.format(largest.value)}, ${short(mean ? largest.value / mean : 0)} times the mean.`),
        folded("balance-table", "As a table", () => table(one.name, [["rank"], [one.name]], one.values.map((v) => [String(v.rank), one.format === nanos ? nanos(v.value) : count(v.value)]))));
}

/* ---- over time ---- */

function rates(samples, columns, unit) {
    const points = [];
    for (let i = 1; i < samples.length; i++) {
        const seconds = (samples[i][SAMPLE.micros] - samples[i - 1][SAMPLE.micros]) / 1e6;
        const by = sum(columns, (c) => samples[i][c] - samples[i - 1][c]);
        if (seconds > 0)
            points.push([samples[i][SAMPLE.micros] / 1e6, Math.max(by, 0) / seconds / unit(samples[i])]);
    }
    return points;
}

/* Bytes per second over each rail, of slices of the time line: 64 points at most. */
function railsOverTime(model, width) {
    const t = model.timeline;
    if (!t || !t.rails.some((rail) => rail.length))
        return null;
    const last = most(t.rails.flat(), ([slice]) => slice), per = Math.ceil((last + 1) / 64), seconds = t.slice * per / 1e9;
    const lines = t.rails.map((rail, i) => ({ name: (i === t.rails.length - 1 ? "from " : "rail ") + i, rail })).filter(({ rail }) => rail.length).map(({ name, rail }) => {
        const sums = new Array(Math.ceil((last + 1) / per)).fill(0);
        rail.forEach(([slice, moved]) => { sums[Math.floor(slice / per)] += moved; });
        return { name, points: sums.map((moved, i) => [Math.max(t.offset / 1e9 + (i + 0.5) * seconds, 0), moved / seconds]) };
    });
    return el("div", { id: "rails" }, el("h3", null, "Rails"),
        el("p", { class: "lead" }, "Bytes of puts, gets, messages and atomics of the program over each rail, of all ranks together, from the trace."),
        trends([{ name: "Bytes per second", format: bytes, lines }], width, "Bytes over rails", "time since the first event of the trace"),
        folded("rails-table", "As a table", () => table("Bytes over each rail", [["rail"], ["bytes"]],
            t.rails.map((rail, i) => [String(i), sum(rail, ([, moved]) => moved)]).filter(([, all]) => all > 0).map(([rail, all]) => [rail, count(all)]))));
}

function samplesSection(model, width) {
    const samples = model.samples, rails = railsOverTime(model, width);
    if (samples.length < 2)
        return rails && el("section", { id: "samples" }, el("h2", null, "Over time"), rails);
    const one = () => 1, threads = (s) => 1e9 * s[SAMPLE.ranks], level = (c) => samples.map((s) => [s[SAMPLE.micros] / 1e6, s[c]]);
    const panels = [
        { name: "Bytes per second", format: bytes, lines: [{ name: "network", points: rates(samples, [SAMPLE.network], one) }, { name: "neighbours", points: rates(samples, [SAMPLE.neighbours], one) }] },
        { name: "Operations per second", format: few, lines: [{ name: "messages", points: rates(samples, [SAMPLE.messages], one) }, { name: "puts and gets", points: rates(samples, [SAMPLE.puts, SAMPLE.gets], one) }] },
        { name: "Time stalled, of one thread of each rank", format: percent, lines: [{ name: "credits", points: rates(samples, [SAMPLE.credit], threads) }, { name: "space", points: rates(samples, [SAMPLE.space], threads) }] },
        { name: "Rails in use", format: few, lines: [{ name: "most", points: level(SAMPLE.railsMost) }, { name: "least", points: level(SAMPLE.railsLeast) }] },
        { name: "Failovers since the start", format: few, lines: [{ name: "failed", points: level(SAMPLE.failovers) }, { name: "came back", points: level(SAMPLE.back) }] }]
        .filter((panel) => panel.lines.some((item) => item.points.some((p) => p[1] > 0)));
    if (panels.length === 0)
        return rails && el("section", { id: "samples" }, el("h2", null, "Over time"), rails);
    return el("section", { id: "samples" }, el("h2", null, "Over time"),
        el("p", { class: "lead" }, `All ranks together, from ${plural(samples.length, "record")} of --top.`),
        trends(panels, width, "Rates over time"),
        folded("samples-table", "As a table", () => table("Sums since the start of the job",
            [["time"], ["messages"], ["puts"], ["gets"], ["bytes, network"], ["bytes, neighbours"], ["rails"], ["failovers"], ["back"]],
            samples.map((s) => [short(s[SAMPLE.micros] / 1e6) + " s", ...[SAMPLE.messages, SAMPLE.puts, SAMPLE.gets, SAMPLE.network, SAMPLE.neighbours].map((c) => count(s[c])),
                s[SAMPLE.railsLeast] === s[SAMPLE.railsMost] ? String(s[SAMPLE.railsMost]) : `${s[SAMPLE.railsLeast]}–${s[SAMPLE.railsMost]}`,
                count(s[SAMPLE.failovers]), count(s[SAMPLE.back])]))), rails);
}

/* ---- tables ---- */

function linesSection(model) {
    if (model.lines.length === 0)
        return null;
    return el("section", { id: "lines" }, el("h2", null, "Source lines"),
        el("p", { class: "lead" }, "The lines of the program with the most time in calls, without calls inside of these." +
            (model.line_count > model.lines.length ? ` ${model.lines.length} of ${count(model.line_count)}.` : "")),
        table("Lines of the program", [["line", true], ["operation", true], ["calls"], ["own time"], ["total"], ["longest"], ["bytes"]],
            model.lines.map(([operation, place, calls, ns, own, longest, moved]) => [place, operation, count(calls), nanos(own), nanos(ns), nanos(longest), count(moved)])));
}

function settingsSection(model) {
    if (!model.settings)
        return null;
    return el("section", { id: "settings" }, el("h2", null, "Settings that differ from their defaults"),
        model.settings.length ? table("Settings of this job", [["setting", true], ["value", true]], model.settings.map(([name, value]) => [el("code", null, name), value])) :
            el("p", null, "None."));
}

/* Sums are exact up to 2^53. */
function countersSection(model) {
    const ranks = model.ranks.filter((rank) => rank.counters);
    if (ranks.length === 0)
        return null;
    const rows = [];
    model.counters.forEach(([id, letter, unit, name], i) => {
        const all = sum(ranks, (rank) => rank.counters[i]);
        if (all === 0)
            return;
        const least = ranks.reduce((a, b) => (b.counters[i] < a.counters[i] ? b : a)), largest = ranks.reduce((a, b) => (b.counters[i] > a.counters[i] ? b : a));
        rows.push([name, letter, el("span", { "data-sum": id }, count(all)), `${count(least.counters[i])} (${least.rank})`,
            mean(all, ranks.length), `${count(largest.counters[i])} (${largest.rank})`, unit]);
    });
    return el("section", { id: "counters" }, el("h2", null, "Counters"),
        el("p", { class: "lead" }, `Of ${plural(ranks.length, "rank")}; see trunkline-counters(7). Ranks are in brackets.`),
        table("Counters that are not 0", [["counter", true], ["class", true], ["sum"], ["least (rank)"], ["mean"], ["most (rank)"], ["unit", true]], rows));
}
function mean(all, ranks) {
    return (all / ranks).toLocaleString("en-US", { maximumFractionDigits: 3 });
}

/* More rows than that take seconds at each drawing: ranks with an end of their own kind come before the others. */
function ranksShown(model, most) {
    const isOdd = (rank) => Number(rank.how !== "exit"), byRank = (a, b) => a.rank - b.rank;
    return model.ranks.length <= most ? model.ranks : [...model.ranks].sort((a, b) => isOdd(b) - isOdd(a) || byRank(a, b)).slice(0, most).sort(byRank);
}

function ranksSection(model) {
    const shown = ranksShown(model, 2048);
    const isLive = model.ranks.some((rank) => rank.now), isTraced = model.ranks.some((rank) => rank.trace);
    const columns = [["rank"], ["host", true], ["pid"], ["time"], ["end", true]];
    if (isLive)
        columns.push(["state", true], ["waits for", true], ["rails"], ["memory"]);
    if (isTraced)
        columns.push(["events"], ["in calls"], ["in waits"], ["in handlers"], ["lost"]);
    const rows = () => shown.map((rank) => {
        const row = [String(rank.rank), model.hosts[rank.host], rank.pid ? String(rank.pid) : "", rank.micros ? short(rank.micros / 1e6) + " s" : "", rank.how];
        const now = rank.now, trace = rank.trace;
        if (isLive)
            row.push(now ? now.state : "", now && now.for ? now.for + ("peer" in now ? " " + now.peer : "") + ", " + short(now.micros / 1e6) + " s" : "",
                now ? String(now.rails) : "", now ? bytes(now.memory * 1024) : "");
        if (isTraced)
            row.push(...(trace ? [count(trace[0]), nanos(trace[2]), nanos(trace[3]), nanos(trace[4]), count(trace[5])] : ["", "", "", "", ""]));
        return row;
    });
    return el("section", { id: "ranks" }, el("h2", null, "Ranks"),
        table("Ranks of the job" + (shown.length < model.ranks.length ? `; ${count(shown.length)} of ${count(model.ranks.length)}, first those that did not end by exit` : ""), columns, rows()));
}
