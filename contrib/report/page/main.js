/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws the page from its data, at once and as often as wanted: what the reader chose is in `chosen`. A served page asks for new data
   each second. */

const PARTS = [["findings", "Findings"], ["matrix", "Who talks to whom"], ["timeline", "Time line"], ["sizes", "Sizes"], ["times", "Times"],
    ["balance", "Balance"], ["samples", "Over time"], ["lines", "Source lines"], ["settings", "Settings"], ["counters", "Counters"], ["ranks", "Ranks"]];

let current = null;

function widthOf(main) {
    return Math.round(Math.min(Math.max(main.clientWidth - 82, 420), 1160));
}

/* The whole page. The same data gives the same page. */
function render(model) {
    const main = document.getElementById("main"), focus = document.activeElement && document.activeElement.id, width = widthOf(main);
    const scrolled = [...main.querySelectorAll(".scroll")].map((part) => [part.getAttribute("aria-label"), part.scrollTop]);
    current = model;
    document.title = model.title || (model.program ? "Report of " + model.program : "Report of a job");
    document.getElementById("head").replaceChildren(...headOf(model).filter(Boolean));
    const sections = [findingsSection(model), matrixSection(model, width), timelineSection(model, width), sizesSection(model, width),
        timesSection(model, width), balanceSection(model, width), samplesSection(model, width), linesSection(model), settingsSection(model),
        countersSection(model), ranksSection(model)].filter(Boolean);
    main.replaceChildren(...sections);
    const present = new Set(sections.map((section) => section.id));
    document.getElementById("nav").replaceChildren(...PARTS.filter(([id]) => present.has(id)).map(([id, text]) => el("a", { href: "#" + id, id: "nav-" + id }, text)));
    document.getElementById("foot").replaceChildren(el("p", null, "Made by gasnet_report of " + model.release + "."));
    for (const [name, top] of scrolled)
        for (const part of main.querySelectorAll(".scroll"))
            if (top && part.getAttribute("aria-label") === name)
                part.scrollTop = top;
    const again = focus && document.getElementById(focus);
    if (again && again !== document.activeElement)
        again.focus({ preventScroll: true });
}
function draw() {
    render(current);
}

/* ---- live ---- */

async function update() {
    const answer = await fetch("data.json" + location.search, { cache: "no-store" });
    if (answer.status === 503) /* no record has come yet */
        return;
    if (!answer.ok)
        throw new Error("status " + answer.status);
    render(await answer.json());
}
function follow() {
    const next = () => setTimeout(follow, 1000);
    if (document.hidden)
        next();
    else
        update().then(next, () => {
            const live = document.getElementById("live");
            if (live)
                live.textContent = "No answer any more: the job or --top has ended. This is the last state.";
        });
}

function start() {
    const text = document.getElementById("data").textContent.trim(), isServed = location.protocol.startsWith("http");
    if (text)
        render(JSON.parse(text));
    else
        document.getElementById("head").replaceChildren(el("h1", null, "Report of a job"), el("p", { class: "live", id: "live" }, "Waiting for the first numbers."));
    if (isServed && (!text || current.live))
        follow();
    let wait = 0;
    window.addEventListener("resize", () => {
        clearTimeout(wait);
        wait = setTimeout(() => current && draw(), 150);
    });
}
start();
