// The results of a small lab as plots on its index: goodput and queue delay over time, the cells side by side, all on the same
// scales. Each cell shows its first valid run; the scripts of these runs are loaded when the page is open.
"use strict";
weir.pictures = (host, head, cells) => {
  const { el, num } = weir;
  const KINDS = [["goodput", "Goodput"], ["delay", "Queue delay"]];
  const chosen = cells.map((cell) => cell.runs.find((run) => !run.x) || cell.runs[0]);
  const name = (run) => `${head.engines[run.e]}/${run.id}`;
  const load = (run) => new Promise((done) => {
    const script = el("script", { src: `report/${head.engines[run.e]}/${weir.href(run.id)}.js` });
    script.onload = script.onerror = done;
    document.head.append(script);
  });
  const timesOf = (run) => Array.from({ length: run.n }, (_, i) => +((i + 1) * run.p).toPrecision(9));
  const plots = [];
  // As on the pages of runs, plots begin after the warm-up: they show the time of which the numbers are.
  const begin = (run) => (run.w < run.n * run.p ? run.w : 0);

  Promise.all(chosen.map(load)).then(() => {
    const runs = chosen.map((run) => weir.runs.get(name(run)));
    if (runs.every((run) => !run)) return;
    const lines = (run, kind) => (((run || {}).charts || []).find((chart) => chart.k === kind) || { lines: [] }).lines
      .filter((line) => !line.off && (!line.thin || line.cap));
    for (const [kind, title] of KINDS) {
      const all = runs.flatMap((run) => lines(run, kind));
      if (!all.length) continue;
      const unit = runs.flatMap((run) => (run || {}).charts || []).find((chart) => chart.k === kind).u;
      // A capacity far above all goodputs would flatten the other lines.
      const top = (capped) => Math.max(0, ...runs.flatMap((run) => lines(run, kind).filter((line) => capped || !line.cap).flatMap((line) => line.v.filter((value, k) => Number.isFinite(value) && (k + 1) * run.p > begin(run)))));
      const high = Math.min(top(true), 1.6 * top(false)) * 1.06 || 1;
      const names = new Map(all.map((line) => [line.n, line]));
      const grid = el("div", { class: "pictures" + (runs.length === 4 ? " by-two" : "") });
      const drawing = () => weir.save.drawGrid(runs.map((run, i) => run && weir.save.drawLines({ title: `${title}: ${weir.labelOf(head, chosen[i])}`,
        x: { label: "time, s", low: begin(run), high: run.n * run.p }, y: { label: unit, low: 0, high },
        lines: lines(run, kind).map((line) => ({ name: line.n, colour: weir.colour(line.i), dash: line.cap ? [2, 3] : null, width: line.cap ? 1 : 2, points: timesOf(run).map((time, k) => [time, line.v[k]]) })) })).filter(Boolean));
      // One row for each cell and time, so that cells of different lengths fit into one table.
      const rows = () => [["cell", "time_s", ...[...names.keys()].map((name) => `${name} (${unit})`)], ...runs.flatMap((run, i) => (run ? timesOf(run).map((time, k) =>
        [weir.labelOf(head, chosen[i]), time, ...[...names.keys()].map((name) => (lines(run, kind).find((line) => line.n === name) || { v: [] }).v[k])]) : []))];
      host.append(el("div", { class: "bar" }, el("h3", null, title, el("span", { class: "quiet" }, ` ${unit}, first repeat of each cell, after the warm-up`)), weir.save.buttons(title, drawing, rows)),
        el("div", { class: "lines still" }, [...names.values()].map((line) => el("span", { class: `line ${line.i}${line.cap ? " cap" : ""}` }, line.n))), grid);
      runs.forEach((run, i) => {
        if (!run) return;
        const box = el("div", { class: "plot small", role: "img", "data-drawn": "false",
          "aria-label": `${title} in ${unit}, ${weir.labelOf(head, chosen[i])}: ` + lines(run, kind).map((line) => `${line.n} mean ${num(weir.mean(line.v.filter((v, k) => Number.isFinite(v) && (k + 1) * run.p > run.w)).mean)}`).join(", ") });
        grid.append(el("figure", null, el("figcaption", null, weir.labelOf(head, chosen[i])), box));
        draw(box, run, lines(run, kind), high);
      });
    }
    weir.onTheme(() => plots.forEach((plot) => plot.redraw(false, true)));
  });

  function draw(box, run, lines, high) {
    const times = timesOf(run);
    const axis = { stroke: () => weir.colour("quiet"), font: `11px ${getComputedStyle(document.body).fontFamily}`,
      grid: { stroke: () => weir.colour("grid"), width: 1 }, ticks: { show: false } };
    const plot = new uPlot({
      width: Math.max(200, box.clientWidth), height: 150, legend: { show: false }, padding: [6, 18, 0, 0],
      cursor: { show: false },
      scales: { x: { time: false, range: () => [begin(run), times[times.length - 1] || 1] }, y: { range: () => [0, high] } },
      axes: [{ ...axis, size: 24, values: (_, list) => list.map((v) => v + " s") }, { ...axis, size: 42 }],
      series: [{}, ...lines.map((line) => ({ stroke: () => weir.colour(line.i), width: line.cap ? 1 : 1.5, dash: line.cap ? [2, 3] : undefined, points: { show: false } }))],
      hooks: {
        draw: [(plot) => {
          weir.markEvents(plot, run.ev || [], false);
          box.dataset.drawn = "true";
        }],
      },
    }, [times, ...lines.map((line) => line.v)], box);
    plots.push(plot);
    new ResizeObserver(() => requestAnimationFrame(() => {
      const width = Math.max(200, box.clientWidth);
      if (width !== plot.width) plot.setSize({ width, height: 150 });
    })).observe(box);
  }
};
