// Single flows of two results beside each other: for each quantity both lines, and below them their difference. The values of a pair
// of flows are a script of their own, which is loaded when the pair is chosen.
"use strict";
(() => {
  const { el } = weir;
  const loaded = new Map();
  const asked = new Map();

  // Called by the script of a pair. A quantity is followed by three lines: one for each result, and their difference.
  weir.trajectory = (number, head, list) => {
    const charts = [];
    for (let i = 0; i + 3 < list.length; i += 4) {
      const lines = list.slice(i + 1, i + 4);
      lines.forEach((values) => weir.fill(values, head.n));
      charts.push({ ...list[i], lines });
    }
    loaded.set(number, { ...head, charts });
  };
  function load(base, number) {
    if (!asked.has(number)) {
      asked.set(number, new Promise((done) => {
        const script = el("script", { src: `${base}trajectories/${number}.js` });
        script.onload = script.onerror = done;
        document.head.append(script);
      }));
    }
    return asked.get(number).then(() => loaded.get(number));
  }

  function draw(host, data) {
    const times = Array.from({ length: data.n }, (_, i) => +(data.t0 + i * data.p).toPrecision(9));
    const end = times.length ? times[times.length - 1] : 1;
    const group = weir.zoomGroup({ begin: 0, end, cut: 0, events: data.ev });
    group.key = "trajectory";
    host.replaceChildren(
      weir.zoomFields(group),
      ...(data.ev.length ? [el("p", { class: "events" }, "Marked: ", data.ev.map(([at, what]) => `at ${+at.toPrecision(4)} s ${what}`).join("; ") + ".")] : []),
    );
    const inside = el("div", { class: "inside" });
    host.append(inside);
    const plots = data.charts.flatMap((chart) => {
      const both = [{ name: data.names[0], ink: "g0", values: chart.lines[0] }, { name: data.names[1], ink: "g1", dashed: true, values: chart.lines[1] }];
      const difference = [{ name: `${data.names[0]} minus ${data.names[1]}`, ink: "n0", values: chart.lines[2] }];
      const shared = { unit: chart.u, times, spreads: [], shares: [] };
      const pair = [{ ...shared, key: chart.k, title: chart.t, note: chart.note, lines: both }, { ...shared, key: `${chart.k}-difference`, title: `${chart.t}: difference`, lines: difference }]
        .filter(({ lines }) => lines.some((line) => line.values.some((value) => Number.isFinite(value)))).map((one) => weir.timePlot(group, one));
      inside.append(el("div", { class: "held" }, pair.map((plot) => plot.node)));
      return pair;
    });
    plots.forEach((plot) => plot.draw());
    group.zoom(0, end);
    return plots;
  }

  document.addEventListener("DOMContentLoaded", () => {
    const section = document.getElementById("trajectories");
    if (!section) return;
    const pairs = [...section.querySelectorAll("dt[data-pair]")];
    const host = el("div", null);
    let drawn = [];
    let wanted = 0;
    async function show(number) {
      wanted = number;
      const data = await load(section.dataset.base, number);
      if (wanted !== number) return;
      drawn.forEach((plot) => plot.gone());
      drawn = data ? draw(host, data) : [];
      if (!data) host.replaceChildren(el("p", { class: "quiet" }, "The samples of this flow are not there."));
    }
    const choice = el("select", { "aria-label": "Flow", onchange: () => show(+choice.value) }, pairs.map((pair) => el("option", { value: pair.dataset.pair }, pair.textContent)));
    section.append(el("div", { class: "levels" }, el("label", null, "Flow ", choice)), host);
    show(+choice.value);
  });
})();
