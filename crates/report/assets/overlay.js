// Up to six cells in one plot: a metric over time, and its distribution. Each cell has a colour. Its valid repeats are joined: the
// line is their mean, the band goes from the least to the greatest of them, and the distribution is over the values of all. The
// series of each run are a script of their own, which is loaded when it is needed.
"use strict";
weir.overlay = (() => {
  const { el, num } = weir;
  const INKS = ["g0", "g1", "g2", "g3", "g4", "g5"];
  const loading = new Map();

  function load(head, run, base) {
    const name = `${head.engines[run.e]}/${run.id}`;
    const file = head.piece ? `series/${Math.floor(run.k / head.piece)}.js` : `${head.engines[run.e]}/${weir.href(run.id)}.js`;
    if (!loading.has(file)) {
      loading.set(file, new Promise((done) => {
        const script = el("script", { src: base + file });
        script.onload = script.onerror = done;
        document.head.append(script);
      }));
    }
    return loading.get(file).then(() => weir.runs.get(name));
  }

  // The share of values at or below `x`, in a distribution that is given by its values at some shares.
  function shareBelow(values, shares, x) {
    const after = values.findIndex((value) => value > x);
    if (after < 0) return 1;
    if (after === 0) return 0;
    const [a, b] = [values[after - 1], values[after]];
    return shares[after - 1] + (shares[after] - shares[after - 1]) * ((x - a) / (b - a));
  }
  // Joins the distributions of several runs: each run is weighted by its number of values.
  function joined(list, shares) {
    if (list.length === 1) return list[0];
    const count = list.reduce((sum, one) => sum + one.c, 0);
    const knots = [...new Set(list.flatMap((one) => one.v))].sort((a, b) => a - b);
    const below = knots.map((x) => list.reduce((sum, one) => sum + one.c * shareBelow(one.v, shares, x), 0) / count);
    let at = 0;
    const v = shares.map((share) => {
      while (at < knots.length - 1 && below[at] < share - 1e-12) at += 1;
      if (at === 0 || !(below[at] > below[at - 1])) return knots[at];
      const part = Math.min(1, (share - below[at - 1]) / (below[at] - below[at - 1]));
      return knots[at - 1] + (knots[at] - knots[at - 1]) * Math.max(0, part);
    });
    return { ...list[0], c: count, v };
  }
  // Joins the series of a cell's runs: means with least and greatest values, and joined distributions.
  function pooled(runs) {
    const first = runs[0];
    const same = runs.filter((run) => run.p === first.p);
    if (same.length < 2) return { ...first, repeats: 1 };
    const longest = same.reduce((a, b) => (b.n > a.n ? b : a));
    const charts = new Map();
    for (const run of same) {
      for (const chart of run.charts) {
        if (!charts.has(chart.k)) charts.set(chart.k, { ...chart, found: new Map(), spread: new Map() });
        const { found, spread } = charts.get(chart.k);
        chart.lines.forEach((line) => found.set(line.n, [...(found.get(line.n) || []), line]));
        (chart.d || []).forEach((one) => spread.set(one.n, [...(spread.get(one.n) || []), one]));
      }
    }
    const line = (list) => {
      const columns = Array.from({ length: longest.n }, (_, i) => list.map((one) => one.v[i]).filter(Number.isFinite));
      const of = (call) => columns.map((values) => (values.length ? call(values) : null));
      return { ...list[0], v: of(weir.average), ...(list[0].cap ? {} : { low: of((values) => Math.min(...values)), high: of((values) => Math.max(...values)) }) };
    };
    return { ...longest, repeats: same.length, charts: [...charts.values()].map((chart) => ({ ...chart, lines: [...chart.found.values()].map(line), d: [...chart.spread.values()].map((list) => joined(list, first.sh)) })) };
  }

  // Draws cells `{ name, runs }` into a host. `chosen` is `{ chart, line }`; `choose` is called with a new choice, `said` with the
  // headline.
  async function draw({ host, head, base, cells, why, chosen, choose, said }) {
    const all = await Promise.all(cells.map((cell) => Promise.all(cell.runs.map((run) => load(head, run, base)))));
    const runs = all.map((list) => list.filter(Boolean)).map((list) => (list.length ? pooled(list) : null));
    const sources = runs.map((series, i) => series && { series, shares: series.sh, name: (line) => `${cells[i].name}: ${line}`, colour: () => () => weir.colour(INKS[i]) }).filter(Boolean);
    host.replaceChildren();
    const charts = sources.length ? weir.gather(sources) : [];
    if (!charts.length) {
      host.append(el("p", { class: "quiet" }, "No series were recorded for these cells."));
      return;
    }
    const chart = charts.find((one) => one.key === chosen.chart) || charts[0];
    const names = [...new Set([...chart.lines, ...chart.spreads].map((line) => line.plain))];
    const first = (chart.lines.find((line) => !line.off && !line.cap) || chart.spreads[0]).plain;
    const wanted = names.includes(chosen.line) ? chosen.line : chosen.line === "*" ? "*" : first;
    const select = (label, list, value, change) => el("label", null, label + " ", el("select", { "aria-label": label, onchange: (event) => change(event.target.value) },
      list.map(([key, text]) => el("option", { value: key, selected: key === value }, text))));
    const end = Math.max(...sources.map(({ series }) => series.n * series.p));
    const cut = Math.max(...sources.map(({ series }) => series.w));
    const begin = cut < end ? cut : 0;
    const group = weir.zoomGroup({ begin, end, cut, events: sources[0].series.ev || [] });
    host.append(el("div", { class: "levels" }, select("What", charts.map((one) => [one.key, `${one.title}, ${one.unit}`]), chart.key, (key) => choose({ chart: key, line: null })),
      select("Of", [...names.map((name) => [name, name]), ...(names.length > 1 ? [["*", "all of them"]] : [])], wanted, (line) => choose({ chart: chart.key, line })), weir.zoomFields(group)));
    // If a cell has several lines, all but the first are dashed.
    const style = (line) => ({ ...line, off: false, name: wanted === "*" ? line.name : line.name.slice(0, -line.plain.length - 2), dashed: wanted === "*" && names.indexOf(line.plain) % 2 === 1 });
    const kept = (line) => (wanted === "*" ? !line.off : line.plain === wanted);
    // A distribution has the name of its link or class; the line of the mean has that name and more.
    const same = (line) => wanted === "*" || line.plain === wanted || wanted.startsWith(line.plain + ",");
    const repeats = Math.max(...sources.map(({ series }) => series.repeats));
    const note = repeats > 1 ? `Lines are means over ${repeats} repeats, bands their ranges; distributions are over all repeats.` : null;
    const shown = { ...chart, note: [chart.note, note].filter(Boolean).join(" ") || null, lines: chart.lines.filter(kept).map(style), spreads: chart.spreads.filter(same).map(style) };
    const plot = weir.timePlot(group, shown);
    host.append(plot.node);
    plot.draw();
    // Cells without a line stand below the plot, with the reason.
    const gaps = wanted === "*" ? [] : cells.filter((cell) => ![...shown.lines, ...shown.spreads].some((line) => line.name === cell.name));
    if (gaps.length) host.append(el("ul", { class: "gaps quiet" }, gaps.map((cell) => el("li", null, `${cell.name}: ${why(cell.runs, wanted)}`))));
    const means = shown.lines.filter((line) => !line.cap).map((line) => [line.name, weir.average(line.values.filter((value, i) => Number.isFinite(value) && shown.times[i] > cut))]);
    const title = `${chart.title}${wanted === "*" ? "" : ` of ${wanted}`} in ${chart.unit}, mean over time`;
    const known = means.filter(([, mean]) => mean !== null).sort((a, b) => a[1] - b[1]);
    const [least, most] = [known[0], known[known.length - 1]];
    said(!known.length ? `${title}: nothing measured.` : known.length < 4 ? `${title}: ${means.map(([name, mean]) => `${name} ${num(mean)}`).join("; ")}.` : `${title}: lowest ${num(least[1])} (${least[0]}), highest ${num(most[1])} (${most[0]}).`);
  }
  return { draw, joined, INKS };
})();
