/* SPDX-License-Identifier: BSD-3-Clause */
"use strict";
/* What all parts use. Text from the input reaches the page through text nodes and attributes alone, never as markup. */

const SVG = "http://www.w3.org/2000/svg";

/* Positions in the tables of the data (write_json.c). */
const CELL = { from: 0, to: 1, kind: 2, path: 3, count: 4, bytes: 5 };
const RAIL = { rail: 0, calls: 1, puts: 2, gets: 3, messages: 4, others: 5, connections: 6 };
const CONNECTION = { rank: 0, peer: 1, rail: 2, begin: 3, ns: 4 };
const CALLS = { operation: 0, path: 1, calls: 2, ns: 3, bytes: 4, times: 5, sizes: 6 };
const LONG = { rank: 0, thread: 1, operation: 2, activity: 3, begin: 4, ns: 5, peer: 6, bytes: 7, place: 8 };
const TRACE = { events: 0, span: 1, calls: 2, waits: 3, handlers: 4, lost: 5 };
const SAMPLE = { micros: 0, messages: 1, puts: 2, gets: 3, network: 4, neighbours: 5, credit: 6, space: 7, failovers: 8, back: 9,
    connections: 10, registrations: 11, ranks: 12, railsLeast: 13, railsMost: 14, memory: 15 };

/* What the reader chose; it stays while live data comes. */
const chosen = { metric: "bytes", kind: "all", path: "all", balance: "", times: "", view: null, row: 0, arrows: false, cell: null, open: {} };

function report(text) {
    const place = document.getElementById("errors");
    place.hidden = false;
    place.append(text + "\n");
}
window.addEventListener("error", (event) => report("script: " + event.message + " (" + event.lineno + ")"));
window.addEventListener("unhandledrejection", (event) => report("script: " + event.reason));
document.addEventListener("securitypolicyviolation", (event) => report("policy: " + event.violatedDirective + " " + event.blockedURI));

/* ---- elements ---- */

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {}))
        if (typeof value === "function")
            element.addEventListener(name, value);
        else if (value !== undefined && value !== false)
            element.setAttribute(name, value === true ? "" : value);
    for (const child of children)
        if (child !== null && child !== undefined)
            element.append(child);
    return element;
}
function el(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
}
function svg(tag, attributes, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
}
function label(x, y, text, more) {
    return svg("text", { x: round(x), y: round(y), ...more }, text);
}
function line(x1, y1, x2, y2, name) {
    return svg("path", { class: name, d: `M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}` });
}
function box(x, y, width, height, name) {
    return svg("rect", { x: round(x), y: round(y), width: round(width), height: round(height), class: name });
}
function titled(element, text) {
    element.append(svg("title", null, text));
    return element;
}
function round(number) {
    return Math.round(number * 100) / 100;
}
function choice(name, text, options, value, change) {
    const select = el("select", { id: name, change: () => change(select.value) },
        ...options.map(([key, shown]) => el("option", { value: key, selected: key === value }, shown)));
    return el("label", null, text, select);
}
function picture(width, height, text, more, ...children) {
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": text, ...more }, ...children);
}

/* The alternative to each picture. A column is [heading, is text]. */
function table(caption, columns, rows) {
    return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, el("table", null,
        el("caption", null, caption),
        el("thead", null, el("tr", null, ...columns.map(([text, isText]) => el("th", { scope: "col", class: isText && "text" }, text)))),
        el("tbody", null, ...rows.map((row) => el("tr", null, ...row.map((cell, i) => el("td", { class: columns[i][1] && "text" }, cell)))))));
}
function folded(name, text, make) {
    const details = el("details", { id: name, toggle: () => { chosen.open[name] = details.open; open(); } }, el("summary", null, text));
    const open = () => { if (details.open && details.childElementCount === 1) details.append(make()); };
    details.open = Boolean(chosen.open[name]);
    open();
    return details;
}

/* ---- numbers ---- */

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/* Three digits where that is enough. */
function short(number) {
    const size = Math.abs(number);
    if (size !== 0 && size < 0.01)
        return number.toExponential(1);
    const digits = size >= 100 || Number.isInteger(number) ? 0 : size >= 10 ? 1 : 2;
    return number.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
function count(number) {
    return whole.format(number);
}
function scaled(number, base, units) {
    let unit = 0;
    while (Math.abs(number) >= base && unit < units.length - 1) {
        number /= base;
        unit++;
    }
    return short(number) + units[unit];
}
function few(number) {
    return number < 10000 ? short(number) : scaled(number, 1000, ["", " k", " M", " G", " T", " P"]);
}
function bytes(number) {
    return scaled(number, 1024, [" B", " KiB", " MiB", " GiB", " TiB", " PiB"]);
}
function nanos(number) {
    return number < 1000 ? short(number) + " ns" : scaled(number / 1000, 1000, [" µs", " ms", " s"]);
}
function percent(share) {
    if (share === 0)
        return "0 %";
    return share > 0 && share < 0.001 ? "< 0.1 %" : (share * 100).toFixed(share < 0.1 ? 1 : 0) + " %";
}
function power(exponent, format) {
    return format(Math.pow(2, exponent));
}
/* The least power of two that is not below: labels of ranks stand at multiples of it. */
function every(number) {
    return Math.pow(2, Math.max(0, Math.ceil(Math.log2(number))));
}
function plural(number, one, many) {
    return count(number) + " " + (number === 1 ? one : many || one + "s");
}
function ranksOf(first, last) {
    return first === last ? "rank " + first : "ranks " + first + "–" + last;
}

/* Round numbers from 0 to at least `most`, few enough for the space; of bytes, round in KiB, MiB ...; of what is counted, whole. */
function ticks(most, wanted, format) {
    if (!(most > 0))
        return [0, 1];
    const rough = most / wanted, scale = format === bytes ? Math.pow(1024, Math.floor(Math.log2(rough) / 10)) : 1;
    const unit = Math.pow(10, Math.floor(Math.log10(rough / scale))) * scale;
    const step = Math.max([1, 2, 5, 10].find((n) => n * unit >= rough) * unit, format === few ? 1 : 0);
    const list = [];
    for (let i = 0; (i - 1) * step < most; i++)
        list.push(i * step);
    return list;
}
function sum(list, value) {
    return list.reduce((all, item) => all + value(item), 0);
}
function most(list, value) {
    return list.reduce((all, item) => Math.max(all, value(item)), 0);
}
