// Up to six cells laid over each other: what was measured over time, and its distribution. A cell has a colour; it is shown by its
// first sound repeat. The series of a run are scripts of their own, which are loaded when they are asked for.
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

  // Draws cells `{ name, run }` into a host. `chosen` is `{ chart, line }`; `choose` is told what is chosen in their place, `said` the
  // headline.
  async function draw({ host, head, base, cells, chosen, choose, said }) {
    const runs = await Promise.all(cells.map((cell) => load(head, cell.run, base)));
    const sources = runs.map((series, i) => series && { series, shares: series.sh, name: (line) => `${cells[i].name}: ${line}`, colour: () => () => weir.colour(INKS[i]) }).filter(Boolean);
    host.replaceChildren();
    const charts = sources.length ? weir.gather(sources) : [];
    if (!charts.length) {
      host.append(el("p", { class: "quiet" }, "No series were recorded of these cells."));
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
    // Of several lines of a cell, the second and further ones are dashed.
    const style = (line) => ({ ...line, off: false, name: wanted === "*" ? line.name : line.name.slice(0, -line.plain.length - 2), dashed: wanted === "*" && names.indexOf(line.plain) % 2 === 1 });
    const kept = (line) => (wanted === "*" ? !line.off : line.plain === wanted);
    // A distribution is of a link or a class as a whole; the mean's line has its name and more.
    const same = (line) => wanted === "*" || line.plain === wanted || wanted.startsWith(line.plain + ",");
    const shown = { ...chart, lines: chart.lines.filter(kept).map(style), spreads: chart.spreads.filter(same).map(style) };
    const plot = weir.timePlot(group, shown);
    host.append(plot.node);
    plot.draw();
    const means = shown.lines.filter((line) => !line.cap).map((line) => [line.name, weir.average(line.values.filter((value, i) => Number.isFinite(value) && shown.times[i] > cut))]);
    const title = `${chart.title}${wanted === "*" ? "" : ` of ${wanted}`} in ${chart.unit}, mean over time`;
    const known = means.filter(([, mean]) => mean !== null).sort((a, b) => a[1] - b[1]);
    const [least, most] = [known[0], known[known.length - 1]];
    said(!known.length ? `${title}: nothing measured.` : known.length < 4 ? `${title}: ${means.map(([name, mean]) => `${name} ${num(mean)}`).join("; ")}.` : `${title}: lowest ${num(least[1])} (${least[0]}), highest ${num(most[1])} (${most[0]}).`);
  }
  return { draw, INKS };
})();
