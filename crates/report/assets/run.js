// The plots of one run's page, and of the page with both engines' runs (the second run's lines are dashed).
"use strict";
weir.plots = (host) => {
  const { el } = weir;
  const names = host.dataset.runs.split(" ");
  const labels = (host.dataset.labels || "").split(",");
  const runs = names.map((name) => weir.runs.get(name)).filter(Boolean);
  if (!runs.length || runs.every((run) => run.charts.length === 0)) {
    host.append(el("p", { class: "quiet" }, "No series were recorded."));
    return;
  }
  const lineName = (name, which) => (runs.length > 1 ? `${name}, ${labels[which] || names[which]}` : name);

  const end = Math.max(...runs.map((run) => run.n * run.p)) || 1;
  const events = runs[0].ev || [];
  // The warm-up, which metrics leave out. Plots begin after it: they show the time of which the numbers are, and the values at the
  // start of a run are often far greater than the others.
  const cut = Math.max(...runs.map((run) => run.w));
  const begin = cut < end ? cut : 0;
  const group = weir.zoomGroup({ begin, end, cut, events });
  const opening = begin > 0 ? `The first ${weir.plain(begin)} s are the warm-up: metrics leave them out, and plots shade them. ` : "";
  host.append(
    el("div", { class: "bar" }, el("h2", null, "Over time"), weir.zoomFields(group)),
    ...(events.length ? [el("p", { class: "events" }, "Events: ", events.map(([at, what]) => `at ${+at.toPrecision(4)} s ${what}`).join("; ") + ".")] : []),
    el("p", { class: "quiet hint" }, opening + "Drag across a plot to zoom in all of them; double-click for the whole run. A click on a name in a legend hides or shows its line."),
  );

  // Plots of internal states are separate, two in a row if there is room.
  const inside = new Map();
  const HEADINGS = { overlay: "The overlay", queue: "Inside the queues", stations: "Inside the stations" };
  function place(chart) {
    const kind = chart.key.split("-")[0];
    if (!HEADINGS[kind]) return host;
    if (!inside.has(kind)) {
      // The plots of an overlay have the width of the page.
      inside.set(kind, el("div", { class: kind === "overlay" ? "overlay" : "inside" }));
      host.append(el("h2", null, HEADINGS[kind]), inside.get(kind));
      if (kind === "overlay" && runs.length === 1) {
        weir.topology(inside.get(kind), group, runs[0]);
        if (runs[0].overlay.admission) weir.admission(inside.get(kind), group, runs[0]);
      }
    }
    return inside.get(kind);
  }

  const charts = weir.gather(runs.map((run, which) => ({ series: run, shares: run.sh, name: (name) => lineName(name, which), dashed: which > 0 })));
  for (const chart of charts) {
    const plot = weir.timePlot(group, chart);
    place(chart).append(plot.node);
    plot.draw();
  }
  const flows = document.getElementById("flows");
  if (flows && weir.flows) weir.flows(flows, group, runs, lineName);
  group.zoom(begin, end);
};

document.addEventListener("DOMContentLoaded", () => {
  const host = document.getElementById("plots");
  if (host) weir.plots(host);
});
