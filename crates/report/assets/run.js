// The plots of one run's page, and of the page that lays two engines over each other (the second's lines are dashed).
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
  // The time that is cut off before metrics are computed. Plots begin after it, so that they show what the numbers tell of;
  // the start of a run often dwarfs the rest.
  const cut = Math.max(...runs.map((run) => run.w));
  const begin = cut < end ? cut : 0;
  const group = weir.zoomGroup({ begin, end, cut, events });
  const opening = begin > 0 ? `The first ${weir.plain(begin)} s are cut off from all numbers and shaded in the plots. ` : "";
  host.append(
    el("div", { class: "bar" }, el("h2", null, "Over time"), weir.zoomFields(group)),
    ...(events.length ? [el("p", { class: "events" }, "What changes: ", events.map(([at, what]) => `at ${+at.toPrecision(4)} s ${what}`).join("; ") + ".")] : []),
    el("p", { class: "quiet hint" }, opening + "Drag across a plot to zoom in all of them; double-click for the whole run. A name in a legend switches its line."),
  );

  // Plots of internal states stand apart, two beside each other where there is room.
  let inside = null;
  function place(chart) {
    if (!/^(queue|stations)-/.test(chart.key)) return host;
    if (!inside) {
      inside = el("div", { class: "inside" });
      host.append(el("h2", null, chart.key.startsWith("queue") ? "Inside the queues" : "Inside the stations"), inside);
    }
    return inside;
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

// The charts of several runs: those with the same key become one, on a grid of times that all have. Each source is
// `{ series: { p, n, charts }, shares, name(line), dashed, ink(line), keep(line) }`; the last two may be left out.
weir.gather = (sources) => {
  const grid = (series) => Array.from({ length: series.n }, (_, i) => +((i + 1) * series.p).toPrecision(9));
  const same = sources.every(({ series }) => series.p === sources[0].series.p);
  const grids = sources.map(({ series }) => grid(series));
  const times = same ? grids.reduce((a, b) => (b.length > a.length ? b : a), []) : [...new Set(grids.flat())].sort((a, b) => a - b);
  function onGrid(which, values) {
    if (same) return times.map((_, i) => (i < values.length ? values[i] : null));
    const own = new Map(values.map((value, i) => [grids[which][i], value]));
    return times.map((time) => (own.has(time) ? own.get(time) : undefined));
  }
  const charts = new Map();
  sources.forEach(({ series, shares, name, dashed, colour }, which) => {
    for (const chart of series.charts) {
      if (!charts.has(chart.k)) charts.set(chart.k, { key: chart.k, title: chart.t, unit: chart.u, note: chart.note, times, shares: shares || [], joined: !same, lines: [], spreads: [] });
      const all = charts.get(chart.k);
      const style = (line) => ({ name: name(line.n), plain: line.n, ink: line.i, dashed, ...(colour ? { colour: colour(line) } : {}) });
      for (const line of chart.lines) all.lines.push({ ...style(line), thin: line.thin, cap: line.cap, off: Boolean(line.off), values: onGrid(which, line.v) });
      for (const line of chart.d || []) all.spreads.push({ ...style(line), count: line.c, values: line.v });
    }
  });
  return [...charts.values()];
};

document.addEventListener("DOMContentLoaded", () => {
  const host = document.getElementById("plots");
  if (host) weir.plots(host);
});
