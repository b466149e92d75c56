// Plots over time, for the page of one run and for the page that lays two engines over each other (the second's lines are
// dashed). All plots share their time axis: what is zoomed in one is zoomed in all.
"use strict";
weir.plots = (host) => {
  const { el, num } = weir;
  const names = host.dataset.runs.split(" ");
  const labels = (host.dataset.labels || "").split(",");
  const runs = names.map((name) => weir.runs.get(name)).filter(Boolean);
  const plots = [];
  if (!runs.length || runs.every((run) => run.charts.length === 0)) {
    host.append(el("p", { class: "quiet" }, "No series were recorded."));
    return;
  }

  // One grid of times for all: the runs' periods are equal, or their points are joined.
  const same = runs.every((run) => run.p === runs[0].p);
  const grids = runs.map((run) => Array.from({ length: run.n }, (_, i) => +((i + 1) * run.p).toPrecision(9)));
  const times = same
    ? grids.reduce((a, b) => (b.length > a.length ? b : a))
    : [...new Set(grids.flat())].sort((a, b) => a - b);
  function onGrid(run, values) {
    if (same) return times.map((_, i) => (i < values.length ? values[i] : null));
    const own = new Map(values.map((value, i) => [+((i + 1) * run.p).toPrecision(9), value]));
    return times.map((time) => (own.has(time) ? own.get(time) : undefined));
  }

  // Charts with the same key share a plot.
  function gather() {
    const charts = new Map();
    runs.forEach((run, which) => {
      for (const chart of run.charts) {
        if (!charts.has(chart.k)) charts.set(chart.k, { key: chart.k, title: chart.t, unit: chart.u, note: chart.note, lines: [] });
        for (const line of chart.lines) {
          charts.get(chart.k).lines.push({
            name: runs.length > 1 ? `${line.n}, ${labels[which] || names[which]}` : line.n,
            ink: line.i, thin: line.thin, cap: line.cap, off: line.off, dashed: which > 0, values: onGrid(run, line.v),
          });
        }
      }
    });
    return [...charts.values()];
  }

  const end = times[times.length - 1] || 1;
  const events = runs[0].ev || [];
  // The time that is cut off before metrics are computed. Plots begin after it, so that they show what the numbers tell of;
  // the start of a run often dwarfs the rest.
  const cut = Math.max(...runs.map((run) => run.w));
  const begin = cut < end ? cut : 0;
  const from = el("input", { type: "number", min: 0, max: end, step: "any", value: begin, "aria-label": "From, seconds" });
  const to = el("input", { type: "number", min: 0, max: end, step: "any", value: end, "aria-label": "To, seconds" });
  const whole = el("button", { type: "button", onclick: () => zoom(0, end) }, "Whole run");
  const measured = el("button", { type: "button", onclick: () => zoom(begin, end) }, "After warm-up");
  const opening = begin > 0 ? `The first ${+begin.toPrecision(4)} s are cut off from all numbers and shaded in the plots. ` : "";
  host.append(
    el("div", { class: "bar" },
      el("h2", null, "Over time"),
      el("div", { class: "window" }, el("label", null, "From ", from), el("label", null, " to ", to, " s"), begin > 0 ? measured : null, whole)),
    ...(events.length ? [el("p", { class: "events" }, "What changes: ", events.map(([at, what]) => `at ${+at.toPrecision(4)} s ${what}`).join("; ") + ".")] : []),
    el("p", { class: "quiet hint" }, opening + "Drag across a plot to zoom in all of them; double-click for the whole run. A name in a legend switches its line."),
  );
  let zooming = false;
  function zoom(low, high) {
    if (zooming || !(high > low)) return;
    zooming = true;
    plots.forEach((plot) => plot.setScale("x", { min: low, max: high }));
    zooming = false;
    from.value = +low.toFixed(3);
    to.value = +high.toFixed(3);
  }
  const typed = () => zoom(Math.max(0, +from.value), Math.min(end, +to.value));
  from.addEventListener("change", typed);
  to.addEventListener("change", typed);

  const font = () => `12px ${getComputedStyle(document.body).fontFamily}`;
  const size = (box) => ({ width: Math.max(240, box.clientWidth), height: box.clientWidth < 520 ? 220 : 260 });

  // What a plot shows, in words.
  function words(chart) {
    const said = chart.lines.filter((line) => !line.off).slice(0, 8).map((line) => {
      const values = line.values.filter((value, i) => Number.isFinite(value) && times[i] > begin);
      if (!values.length) return `${line.name}: nothing measured`;
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      return `${line.name}: mean ${num(mean)}, from ${num(Math.min(...values))} to ${num(Math.max(...values))}`;
    });
    return `${chart.title} in ${chart.unit} from ${+begin.toPrecision(4)} to ${+end.toPrecision(4)} seconds. ${said.join("; ")}.`;
  }

  function table(chart) {
    const details = el("details", { class: "data" }, el("summary", null, "Numbers of this plot"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.children.length > 1) return;
      const head = el("tr", null, el("th", { scope: "col", class: "n" }, "time, s"),
        chart.lines.map((line) => el("th", { scope: "col", class: "n" }, `${line.name}, ${chart.unit}`)));
      const rows = times.map((time, i) =>
        el("tr", null, el("th", { scope: "row", class: "n" }, String(time)),
          chart.lines.map((line) => el("td", { class: "n" }, Number.isFinite(line.values[i]) ? num(line.values[i]) : ""))));
      details.append(el("div", { class: "scroll tall", role: "region", tabindex: 0, "aria-label": `Numbers of ${chart.title}` },
        el("table", null, el("thead", null, head), el("tbody", null, rows))));
    }, { once: false });
    return details;
  }

  function axis(extra) {
    return { stroke: () => weir.colour("quiet"), font: font(), labelFont: font(), grid: { stroke: () => weir.colour("grid"), width: 1 },
      ticks: { stroke: () => weir.colour("grid"), width: 1, size: 4 }, ...extra };
  }

  // Fingers zoom too: a horizontal drag selects, vertical ones scroll the page.
  function touch(plot) {
    const over = plot.over;
    let start = null;
    const place = (event) => Math.min(Math.max(0, event.clientX - over.getBoundingClientRect().left), over.clientWidth);
    over.style.touchAction = "pan-y";
    over.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") start = place(event);
    });
    over.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const now = place(event);
      plot.setSelect({ left: Math.min(start, now), width: Math.abs(now - start), top: 0, height: over.clientHeight }, false);
    });
    const done = (event) => {
      if (start === null) return;
      const now = place(event);
      const [low, high] = [Math.min(start, now), Math.max(start, now)];
      start = null;
      plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      if (high - low > 12 && event.type === "pointerup") zoom(plot.posToVal(low, "x"), plot.posToVal(high, "x"));
    };
    over.addEventListener("pointerup", done);
    over.addEventListener("pointercancel", done);
  }

  // Plots of internal states stand apart, two beside each other where there is room.
  let inside = null;
  function place(chart) {
    if (!/^(queue|controllers)-/.test(chart.key)) return host;
    if (!inside) {
      inside = el("div", { class: "inside" });
      host.append(el("h2", null, "Inside the queue and the controllers"), inside);
    }
    return inside;
  }

  function draw(chart) {
    const box = el("div", { class: "plot", role: "img", "aria-label": words(chart), "data-drawn": "false" });
    const values = [];
    const buttons = chart.lines.map((line, i) => {
      const shown = el("span", { class: "value" });
      values.push(shown);
      const button = el("button", { type: "button", "aria-pressed": String(!line.off), class: `line ${line.ink}${line.dashed ? " dashed" : ""}${line.thin ? " thin" : ""}${line.cap ? " cap" : ""}` },
        line.name, shown);
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        plot.setSeries(i + 1, { show: on });
      });
      return button;
    });
    const legend = el("div", { class: "lines", role: "group", "aria-label": `Lines of ${chart.title}` }, buttons);
    const card = el("figure", { class: "card" },
      el("figcaption", null, el("h3", null, chart.title, el("span", { class: "quiet" }, ` ${chart.unit}`)), chart.note ? el("p", { class: "quiet" }, chart.note) : null),
      legend, box, table(chart));
    place(chart).append(card);
    const options = {
      ...size(box),
      legend: { show: false },
      padding: [8, 18, 0, 0],
      cursor: { sync: { key: "weir", setSeries: false }, drag: { x: true, y: false }, points: { size: 6 } },
      scales: { x: { time: false, range: (_, low, high) => [low === times[0] ? 0 : low, high] }, y: { range: (_, low, high) => room(low, high) } },
      axes: [
        axis({ label: "time, s", labelSize: 18, size: 30 }),
        axis({ label: `${chart.title.split(": ").pop().split(" at link ")[0].toLowerCase()}, ${chart.unit}`, labelSize: 18, size: 52, values: (_, list) => list.map((v) => (v === null ? "" : short(v))) }),
      ],
      series: [{}, ...chart.lines.map((line) => ({
        label: line.name, show: !line.off, stroke: () => weir.colour(line.ink), width: line.thin ? 1 : 2, alpha: line.thin ? 0.75 : 1,
        dash: line.cap ? [2, 3] : line.dashed ? [6, 4] : undefined, points: { show: false }, spanGaps: !same,
      }))],
      hooks: {
        drawClear: [(plot) => weir.shade(plot, cut)],
        draw: [(plot) => {
          weir.markEvents(plot, events, true);
          const any = chart.lines.some((line) => line.values.some((value) => Number.isFinite(value)));
          if (any && plot.bbox.width > 0) box.dataset.drawn = "true";
        }],
        setScale: [(plot, key) => {
          if (key === "x") zoom(plot.scales.x.min, plot.scales.x.max);
        }],
        setCursor: [(plot) => {
          const at = plot.cursor.idx;
          chart.lines.forEach((line, i) => {
            const value = at === null || at === undefined ? null : line.values[at];
            values[i].textContent = Number.isFinite(value) ? num(value) : "";
          });
        }],
      },
    };
    const plot = new uPlot(options, [times, ...chart.lines.map((line) => line.values)], box);
    touch(plot);
    plots.push(plot);
  }

  // From zero, with a little room above.
  function room(low, high) {
    if (low === null || high === null) return [0, 1];
    const bottom = Math.min(0, low);
    return [bottom, high > bottom ? high + (high - bottom) * 0.06 : bottom + 1];
  }
  function short(value) {
    const size = Math.abs(value);
    if (size >= 1e6) return +(value / 1e6).toPrecision(4) + "M";
    if (size >= 1e4) return +(value / 1e3).toPrecision(4) + "k";
    return String(+value.toPrecision(4));
  }

  zooming = true;
  gather().forEach(draw);
  zooming = false;
  zoom(begin, end);
  weir.onTheme(() => plots.forEach((plot) => plot.redraw(false, true)));
  let waiting = 0;
  new ResizeObserver(() => {
    clearTimeout(waiting);
    waiting = setTimeout(() => plots.forEach((plot) => {
      const wanted = size(plot.root.parentElement);
      if (wanted.width !== plot.width) plot.setSize(wanted);
    }), 60);
  }).observe(host);
};
document.addEventListener("DOMContentLoaded", () => {
  const host = document.getElementById("plots");
  if (host) weir.plots(host);
});
