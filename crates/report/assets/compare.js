// The comparison: one metric over the tree. A column is a leaf (a cell with its repeats), the axis below names the levels,
// and levels can be put in another order or narrowed to one value. Only the columns in sight are drawn.
"use strict";
weir.onLab((head, all) => {
  const { el, num, href, ticks } = weir;
  const host = document.getElementById("compare");
  const HEIGHT = 300;
  const TOP = 14;
  const LABEL = 22;
  const LETTER = 7.3;
  const engineName = { sim: "simulator", live: "live Linux" };
  const className = { "not-ect": "Not-ECT", ect0: "ECT(0)", ect1: "ECT(1)", ce: "CE" };

  // What can be shown. `of(run)` gives a number, or [mean, p1, p25, p50, p75, p99].
  const link = (run) => run.l.find((one) => one.i === state.link) || null;
  const byClass = (place) => head.classes.map((name, bits) => ({
    name: className[name] || name, ink: "c" + bits, of: (run) => ((((link(run) || {}).c) || []).find((c) => c[0] === bits) || [])[place],
  }));
  const byGroup = (place) => head.groups.map((name, i) => ({ name, ink: "g" + (i % 8), of: (run) => (run.g.find((g) => g[0] === i) || [])[place] }));
  const one = (name, of) => [{ name, ink: "n0", of }];
  const metrics = [
    { key: "delay", name: "Queue delay", unit: "ms", kind: "box", series: () => {
      const classes = byClass(4);
      const seen = classes.filter((c) => all.some((run) => c.of(run)));
      return seen.length > 1 ? seen : one("all packets", (run) => (link(run) || {}).d);
    } },
    { key: "used", name: "Link utilisation by class", unit: "%", kind: "stack", ceiling: 100, series: () => byClass(1) },
    { key: "goodput", name: "Goodput by group", unit: "Mbit/s", kind: "stack", series: () => byGroup(1) },
    { key: "drop", name: "Drop probability", unit: "%", kind: "dot", series: () => byClass(2) },
    { key: "mark", name: "Mark probability", unit: "%", kind: "dot", series: () => byClass(3) },
    { key: "aqm", name: "Probability that the AQM sets", unit: "%", kind: "box", series: () => [["of drops", "n1"], ["of marks", "n0"]].map(([name, ink], i) =>
      ({ name, ink, of: (run) => ((link(run) || {}).a || [])[i] })) },
    { key: "rtt", name: "RTT by group", unit: "ms", kind: "box", series: () => byGroup(2) },
    { key: "above-base", name: "RTT above its base", unit: "ms", kind: "box", series: () => head.groups.map((name, i) => ({ name, ink: "g" + (i % 8), of: (run) => {
      const group = run.g.find((g) => g[0] === i);
      return group && group[2] && Number.isFinite(group[6]) ? group[2].map((rtt) => Math.max(0, rtt - group[6])) : null;
    } })) },
    { key: "rate-ratio", name: "Rate ratio", unit: "first to second group", kind: "dot", log: true, series: () => one("rate ratio", (run) => run.rr) },
    { key: "window-ratio", name: "Window ratio", unit: "first to second group", kind: "dot", log: true, series: () => one("window ratio", (run) => run.wr) },
    { key: "jain", name: "Jain’s index", unit: "1 is even", kind: "dot", ceiling: 1, series: () => one("Jain’s index", (run) => run.j) },
    { key: "again", name: "Segments sent again", unit: "%", kind: "dot", series: () => byGroup(3) },
    { key: "window", name: "Congestion window by group", unit: "segments", kind: "dot", series: () => byGroup(5) },
    ...[["completion", "flows", 2, "Completion time", "s", "box"], ["requests", "requests", 2, "Request time", "ms", "box"],
      ["request-rate", "requests", 3, "Requests answered", "1/s", "dot"], ["frames", "frames", 2, "Frame delay", "ms", "box"],
      ["on-time", "frames", 4, "Frames on time", "%", "dot"], ["frames-lost", "frames", 5, "Frames lost", "%", "dot"]].map(([key, what, place, name, unit, kind]) =>
      ({ key, name: name + " by group", unit, kind, series: () => head.groups.map((group, i) => ({ name: group, ink: "g" + (i % 8), of: (run) => {
        const waits = (run.g.find((g) => g[0] === i) || [])[9] || [];
        return (waits.find((wait) => wait[0] === what) || [])[place];
      } })) })),
  ];

  // Metrics of a link say which; those of groups do not need one.
  const OF_LINKS = ["delay", "used", "drop", "mark", "aqm"];
  const titleOf = (metric) => (OF_LINKS.includes(metric.key) ? `${metric.name} at link ${head.links[state.link]}` : metric.name);
  // The links that carry data come first.
  const carries = (i) => all.some((run) => run.l.some((one) => one.i === i && one.t));
  const linkOrder = head.links.map((_, i) => i).sort((a, b) => carries(b) - carries(a) || a - b);
  const often = new Map();
  all.forEach((run) => often.set(run.b, (often.get(run.b) || 0) + 1));
  const state = {
    metric: "delay",
    link: [...often.entries()].sort((a, b) => b[1] - a[1]).map((entry) => entry[0])[0] ?? 0,
    order: head.levels.map((_, i) => i),
    only: head.levels.map(() => null),
    engines: head.engines.map(() => true),
    log: false,
  };
  // A level is called by as much of its name as no other has, from the end.
  const shortName = head.levels.map((name) => {
    const parts = name.split(".");
    const last = (n) => parts.slice(-n).join(".");
    const own = parts.findIndex((_, n) => head.levels.every((other) => other === name || !("." + other).endsWith("." + last(n + 1))));
    return last(own + 1 || parts.length);
  });
  const has = (metric) => metric.series().some((series) => all.some((run) => filled(series.of(run))));
  const filled = (value) => value !== null && value !== undefined && (Array.isArray(value) || Number.isFinite(value));
  const offered = metrics.filter(has);
  if (!offered.length) {
    host.append(el("p", { class: "quiet" }, "Nothing was measured that could be compared."));
    return;
  }
  if (!offered.some((metric) => metric.key === state.metric)) state.metric = offered[0].key;

  // Controls.
  const pick = el("div", { class: "pick", role: "group", "aria-label": "Metric" }, offered.map((metric) =>
    el("button", { type: "button", "data-key": metric.key, onclick: () => set({ metric: metric.key }) }, metric.name)));
  const levels = el("div", { class: "levels" });
  const figure = el("figure", { class: "card" });
  host.append(pick, levels, figure);

  // What is chosen stands in the address, so that a link leads to the same picture.
  function written() {
    const parts = new URLSearchParams();
    if (OF_LINKS.includes(state.metric) && head.links.length > 1) parts.set("link", head.links[state.link]);
    if (state.order.some((level, place) => level !== place)) parts.set("order", state.order.map((level) => head.levels[level]).join(","));
    state.only.forEach((value, level) => value !== null && parts.set("only." + head.levels[level], head.values[level][value]));
    state.engines.forEach((on, i) => on || parts.append("without", head.engines[i]));
    if (state.log) parts.set("log", "1");
    return "#" + state.metric + ([...parts].length ? "&" + parts : "");
  }
  function read() {
    const [metric, ...rest] = location.hash.slice(1).split("&");
    if (!offered.some((one) => one.key === metric)) return;
    const parts = new URLSearchParams(rest.join("&"));
    const place = (list, name) => (list.includes(name) ? list.indexOf(name) : null);
    state.metric = metric;
    state.link = place(head.links, parts.get("link")) ?? state.link;
    const order = (parts.get("order") || "").split(",").map((name) => head.levels.indexOf(name));
    if (order.length === head.levels.length && head.levels.every((_, level) => order.includes(level))) state.order = order;
    state.only = head.levels.map((name, level) => place(head.values[level], parts.get("only." + name)));
    state.engines = head.engines.map((name) => !parts.getAll("without").includes(name));
    state.log = parts.get("log") === "1";
  }
  read();
  window.addEventListener("hashchange", () => {
    if (location.hash === written()) return;
    read();
    render();
  });
  function set(change) {
    Object.assign(state, change);
    history.replaceState(null, "", written());
    render();
  }
  function move(place, by) {
    const order = state.order.slice();
    const [level] = order.splice(place, 1);
    order.splice(place + by, 0, level);
    set({ order });
  }
  function controls() {
    pick.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.key === state.metric)));
    const choices = (list, chosen, change, label) => el("select", { "aria-label": label, onchange: (event) => change(event.target.value) },
      list.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, text)));
    levels.replaceChildren(
      ...state.order.map((level, place) => el("span", { class: "level-control" },
        el("span", { class: "quiet" }, head.levels[level]),
        choices([["", "all"], ...head.values[level].map((value, i) => [i, value])], state.only[level] ?? "",
          (value) => set({ only: state.only.map((old, i) => (i === level ? (value === "" ? null : +value) : old)) }), `Only this ${head.levels[level]}`),
        state.order.length > 1 ? el("button", { type: "button", disabled: place === 0, "aria-label": `Move ${head.levels[level]} outwards`, onclick: () => move(place, -1) }, "‹") : null,
        state.order.length > 1 ? el("button", { type: "button", disabled: place === state.order.length - 1, "aria-label": `Move ${head.levels[level]} inwards`, onclick: () => move(place, 1) }, "›") : null)),
      ...(head.links.length > 1 ? [el("span", { class: "level-control" }, el("span", { class: "quiet" }, "link"),
        choices(linkOrder.map((i) => [i, head.links[i] + (carries(i) ? "" : " (acknowledgements)")]), state.link, (value) => set({ link: +value }), "Link"))] : []),
      ...(head.engines.length > 1 ? head.engines.map((name, i) => el("button", { type: "button", class: "engine " + name, "aria-pressed": String(state.engines[i]),
        onclick: () => set({ engines: state.engines.map((on, j) => (i === j ? !on : on)) }) }, engineName[name] || name)) : []),
      el("button", { type: "button", class: "scale", "aria-pressed": String(state.log), title: "Logarithmic scale; stacks come apart", onclick: () => set({ log: !state.log }) }, "log"),
    );
  }

  // The leaves in the order of the levels, each with its runs by engine.
  function leaves() {
    const found = new Map();
    for (const run of all) {
      if (!state.engines[run.e] || state.only.some((value, level) => value !== null && run.p[level] !== value)) continue;
      const key = run.p.join(" ");
      if (!found.has(key)) found.set(key, { p: run.p, runs: head.engines.map(() => []) });
      found.get(key).runs[run.e].push(run);
    }
    const list = [...found.values()];
    list.sort((a, b) => {
      for (const level of state.order) if (a.p[level] !== b.p[level]) return a.p[level] - b.p[level];
      return 0;
    });
    return list;
  }

  const average = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
  // Over repeats: the mean of numbers, or of each percentile.
  function pooled(runs, series) {
    const values = runs.map(series.of).filter(filled);
    if (!values.length) return null;
    return Array.isArray(values[0]) ? values[0].map((_, i) => average(values.map((value) => value[i]))) : average(values);
  }

  let redraw = () => {};
  function render() {
    controls();
    const chosen = offered.find((metric) => metric.key === state.metric);
    // Logarithms do not add up: what is stacked stands side by side.
    const metric = state.log && chosen.kind === "stack" ? { ...chosen, kind: "dot" } : chosen;
    const series = metric.series().filter((series) => all.some((run) => filled(series.of(run)) && (metric.kind !== "stack" || series.of(run) > 0)));
    const list = leaves();
    const shown = head.engines.map((_, i) => i).filter((i) => state.engines[i]);
    const cells = list.map((leaf) => shown.map((engine) => series.map((one) => pooled(leaf.runs[engine], one))));
    const scale = scaleOf(metric, list, cells, series, shown);
    figure.replaceChildren();
    const legend = el("div", { class: "lines still" }, series.map((one) => el("span", { class: "line " + one.ink }, one.name)),
      shown.length > 1 ? shown.map((e) => el("span", { class: "key " + head.engines[e] }, engineName[head.engines[e]] || head.engines[e])) : null);
    const repeats = Math.max(1, ...list.flatMap((leaf) => leaf.runs.map((runs) => runs.length)));
    const note = [
      metric.kind === "box" ? "Whiskers p1 and p99, box p25 to p75, line p50, dot mean" : "",
      repeats > 1 ? `mean over up to ${repeats} repeats${metric.kind === "dot" ? ", each a small dot" : ""}` : "",
    ].filter(Boolean).join("; ");
    figure.append(el("figcaption", null, el("h2", null, titleOf(metric), el("span", { class: "quiet" }, " " + metric.unit)), note ? el("p", { class: "quiet" }, note + ".") : null), legend);
    if (!list.length || !series.length || !shown.length) {
      figure.append(el("p", { class: "quiet" }, "Nothing to draw with this choice."));
      redraw = () => {};
      return;
    }
    // The headline follows the choice.
    document.querySelector("h1").textContent = summary(metric, series, list, cells);
    chart(metric, series, list, cells, scale, shown);
    figure.append(table(metric, series, list, cells, shown));
  }

  function scaleOf(metric, list, cells, series, shown) {
    let low = Infinity;
    let high = -Infinity;
    let least = Infinity;
    const see = (value) => {
      if (!Number.isFinite(value) || (metric.log && value <= 0)) return;
      low = Math.min(low, value);
      if (value > 0) least = Math.min(least, value);
      high = Math.max(high, value);
    };
    cells.flat().forEach((row) => {
      if (metric.kind === "stack") see(row.reduce((sum, value) => sum + (value || 0), 0));
      else row.forEach((value) => (Array.isArray(value) ? value.forEach(see) : see(value)));
    });
    if (metric.kind === "dot") list.forEach((leaf) => shown.forEach((e) => leaf.runs[e].forEach((run) => series.forEach((one) => see(one.of(run))))));
    if (!Number.isFinite(high)) [low, high] = [0, 1];
    if (metric.log) {
      // Even above and below one, and at least a factor of two.
      const reach = Math.max(2, high, 1 / low) * 1.1;
      const y = (value) => TOP + (HEIGHT - TOP) * (0.5 - Math.log(Math.max(value, 1 / reach)) / Math.log(reach) / 2);
      const marks = [1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16, 64].filter((value) => value >= 1 / reach && value <= reach);
      return { y, ticks: marks, write: (value) => (value < 1 ? `1/${1 / value}` : String(value)), base: y(1) };
    }
    if (state.log && high > 0) {
      // Whole decades, no more than four below the highest value; what is less, nothing too, lies on the ground.
      const ends = [Math.floor(Math.log10(Math.max(least, high / 1e4))), Math.ceil(Math.log10(high))];
      if (ends[0] === ends[1]) ends[0] -= 1;
      const y = (value) => HEIGHT - (HEIGHT - TOP) * Math.max(0, (Math.log10(Math.max(value, 1e-300)) - ends[0]) / (ends[1] - ends[0]));
      const marks = Array.from({ length: ends[1] - ends[0] + 1 }, (_, i) => 10 ** (ends[0] + i));
      return { y, ticks: marks, write: (value) => String(+value.toPrecision(1)), base: HEIGHT };
    }
    const top = metric.ceiling && high <= metric.ceiling ? metric.ceiling : high * 1.05 || 1;
    const y = (value) => HEIGHT - (HEIGHT - TOP) * (value / top);
    return { y, ticks: ticks(0, top, 5), write: (value) => String(value), base: HEIGHT };
  }

  // How a leaf is called, and where it leads.
  const labelOf = (leaf) => state.order.map((level) => `${head.levels[level]} ${head.values[level][leaf.p[level]]}`).join(" · ");
  function pageOf(leaf) {
    const engines = leaf.runs.map((runs, i) => (runs.length ? i : -1)).filter((i) => i >= 0);
    const first = leaf.runs[engines[0]][0];
    const both = engines.length > 1 && leaf.runs[engines[1]].some((run) => run.id === first.id);
    return weir.pageOf(head, first, both ? "both" : head.engines[engines[0]]);
  }
  const said = (value) => (Array.isArray(value) ? `mean ${num(value[0])}, p1 ${num(value[1])}, p50 ${num(value[3])}, p99 ${num(value[5])}` : num(value));

  function summary(metric, series, list, cells) {
    const worth = (c) => {
      const numbers = c.flat().map((value) => (Array.isArray(value) ? value[0] : value)).filter(Number.isFinite);
      return metric.kind === "stack" ? average(c.map((row) => row.reduce((sum, value) => sum + (value || 0), 0))) : average(numbers);
    };
    const values = cells.map(worth);
    const known = values.map((value, i) => [value, i]).filter(([value]) => Number.isFinite(value)).sort((a, b) => a[0] - b[0]);
    if (!known.length) return `${titleOf(metric)}: nothing measured.`;
    const [low, high] = [known[0], known[known.length - 1]];
    return `${titleOf(metric)} in ${metric.unit} over ${list.length} cells: lowest ${num(low[0])} (${labelOf(list[low[1]]) || "the only cell"}), highest ${num(high[0])} (${labelOf(list[high[1]]) || "the only cell"}).`;
  }

  function chart(metric, series, list, cells, scale, shown) {
    const marksIn = metric.kind === "stack" ? shown.length : shown.length * series.length;
    const box = el("div", { class: "tree-plot", "data-drawn": "false" });
    const scroll = el("div", { class: "tree-scroll", tabindex: 0, role: "group", "aria-label": summary(metric, series, list, cells) });
    const left = Math.min(110, Math.max(58, ...shortName.map((name) => name.length * LETTER + 14)));
    figure.append(box);
    box.append(scroll);
    const room = Math.max(160, box.clientWidth - left);
    const inner = state.order[state.order.length - 1];
    const longest = inner === undefined ? 0 : Math.max(...list.map((leaf) => head.values[inner][leaf.p[inner]].length));
    const narrow = Math.max(20, marksIn * 13 + 8);
    const wide = Math.min(340, Math.max(narrow, room / list.length));
    const tilted = longest * LETTER > wide - 4;
    const leafRow = inner === undefined ? 0 : tilted ? Math.min(130, longest * LETTER + 10) : LABEL;
    const depth = state.order.length;
    const height = HEIGHT + 6 + leafRow + Math.max(0, depth - 1) * LABEL + 6;
    const width = Math.ceil(wide * list.length);

    const axis = el("svg", { width: left, height, class: "y-axis", "aria-hidden": "true" });
    scale.ticks.forEach((tick) => axis.append(el("text", { x: left - 8, y: scale.y(tick) + 4, "text-anchor": "end" }, scale.write(tick))));
    axis.append(el("text", { class: "unit", transform: `translate(12 ${(HEIGHT + TOP) / 2}) rotate(-90)`, "text-anchor": "middle" }, `${metric.name.toLowerCase()}, ${metric.unit}`.slice(0, 44)));
    state.order.forEach((level, place) => {
      const y = HEIGHT + 6 + leafRow + (depth - 2 - place) * LABEL + 14;
      axis.append(el("text", { class: "level-name", x: left - 8, y: place === depth - 1 ? HEIGHT + 20 : y, "text-anchor": "end" }, fit(shortName[level], left - 10), el("title", null, head.levels[level])));
    });
    box.prepend(axis);
    const svg = el("svg", { width, height });
    scroll.append(svg);

    let drawn = "";
    redraw = () => {
      const first = Math.max(0, Math.floor(scroll.scrollLeft / wide) - 2);
      const last = Math.min(list.length, Math.ceil((scroll.scrollLeft + scroll.clientWidth) / wide) + 2);
      const now = `${first} ${last}`;
      if (now === drawn) return;
      drawn = now;
      const nodes = scale.ticks.map((tick) => el("line", { class: "grid", x1: first * wide, x2: last * wide, y1: scale.y(tick), y2: scale.y(tick) }));
      let marks = 0;
      for (let i = first; i < last; i += 1) {
        const drawnHere = column(metric, series, list[i], cells[i], scale, shown, i * wide, wide, nodes);
        marks += drawnHere;
      }
      axisBelow(nodes, list, first, last, wide, leafRow, tilted, depth);
      svg.replaceChildren(...nodes);
      box.dataset.drawn = String(marks > 0);
    };
    scroll.addEventListener("scroll", () => requestAnimationFrame(() => redraw()), { passive: true });
    redraw();
  }

  // One leaf: its marks, and over them a link with all its numbers.
  function column(metric, series, leaf, cell, scale, shown, x, wide, nodes) {
    let marks = 0;
    const group = el("g", null);
    const slots = metric.kind === "stack" ? shown.length : shown.length * series.length;
    const slot = Math.min(30, (wide - 6) / slots);
    const begin = x + wide / 2 - (slot * slots) / 2;
    shown.forEach((engine, e) => {
      const live = head.engines[engine] !== "sim" && head.engines.length > 1 ? " live" : "";
      let sum = 0;
      series.forEach((one, s) => {
        const value = cell[e][s];
        if (!filled(value)) return;
        const place = metric.kind === "stack" ? e : s * shown.length + e;
        const middle = begin + (place + 0.5) * slot;
        const half = Math.max(2.5, slot * 0.36);
        if (metric.kind === "stack") {
          const [high, low] = [scale.y(sum + value), scale.y(sum)];
          group.append(el("rect", { class: `bar ${one.ink}${live}`, x: middle - half, width: 2 * half, y: high, height: Math.max(0, low - high) }));
          sum += value;
        } else if (metric.kind === "box") {
          boxAt(group, `${one.ink}${live}`, value, middle, half, scale.y);
        } else {
          leaf.runs[engine].forEach((run, r, runs) => {
            const own = one.of(run);
            if (runs.length > 1 && filled(own)) group.append(el("circle", { class: `repeat ${one.ink}`, cx: middle, cy: scale.y(own), r: 1.8 }));
          });
          group.append(el("circle", { class: `dot ${one.ink}${live}`, cx: middle, cy: scale.y(value), r: 4.5 }));
        }
        marks += 1;
      });
    });
    const spoiled = leaf.runs.flat().some((run) => run.x);
    if (spoiled) group.append(el("text", { class: "spoiled", x: x + wide / 2, y: TOP - 3, "text-anchor": "middle" }, "spoiled"));
    const lines = [labelOf(leaf), ...shown.map((engine, e) => series.map((one, s) =>
      `${engineName[head.engines[engine]] || head.engines[engine]}, ${one.name}: ${said(cell[e][s])} ${metric.unit}`).join("\n"))];
    nodes.push(group, el("a-svg", { href: pageOf(leaf) },
      el("rect", { class: "over", x, width: wide, y: 0, height: HEIGHT }, el("title", null, lines.join("\n")))));
    return marks;
  }

  function boxAt(group, ink, [mean, p1, p25, p50, p75, p99], x, half, y) {
    const line = (x1, x2, y1, y2) => el("line", { class: "whisker " + ink, x1, x2, y1, y2 });
    group.append(
      line(x, x, y(p1), y(p25)), line(x, x, y(p75), y(p99)), line(x - half / 2, x + half / 2, y(p1), y(p1)), line(x - half / 2, x + half / 2, y(p99), y(p99)),
      el("rect", { class: "box " + ink, x: x - half, width: 2 * half, y: y(p75), height: Math.max(1, y(p25) - y(p75)) }),
      el("line", { class: "median " + ink, x1: x - half, x2: x + half, y1: y(p50), y2: y(p50) }),
      el("circle", { class: "mean " + ink, cx: x, cy: y(mean), r: 2.6 }),
    );
  }

  function fit(text, width) {
    const room = Math.floor(width / LETTER);
    return text.length <= room ? text : room > 1 ? text.slice(0, room - 1) + "…" : "";
  }

  function axisBelow(nodes, list, first, last, wide, leafRow, tilted, depth) {
    const prefix = (leaf, place) => state.order.slice(0, place + 1).map((level) => leaf.p[level]).join(" ");
    for (let place = 0; place < depth; place += 1) {
      const inner = place === depth - 1;
      const level = state.order[place];
      const y = inner ? HEIGHT + 6 : HEIGHT + 6 + leafRow + (depth - 2 - place) * LABEL;
      for (let from = first; from < last; ) {
        let to = from + 1;
        while (to < last && prefix(list[to], place) === prefix(list[from], place)) to += 1;
        const text = head.values[level][list[from].p[level]];
        const [x1, x2] = [from * wide, to * wide];
        const middle = (x1 + x2) / 2;
        if (inner && tilted) {
          nodes.push(el("text", { transform: `translate(${middle + 4} ${y + 4}) rotate(-90)`, "text-anchor": "end" }, fit(text, leafRow - 4), el("title", null, text)));
        } else {
          nodes.push(el("text", { x: middle, y: y + 14, "text-anchor": "middle" }, fit(text, x2 - x1 - 4), el("title", null, text)));
        }
        if (!inner) nodes.push(el("line", { class: "bracket", x1: x1 + 4, x2: x2 - 4, y1: y + 1, y2: y + 1 }));
        const edge = to < list.length && prefix(list[to], place) !== prefix(list[to - 1], place);
        if (!inner && edge) nodes.push(el("line", { class: "divide", x1: x2, x2, y1: TOP, y2: y + LABEL }));
        from = to;
      }
    }
  }

  function table(metric, series, list, cells, shown) {
    const details = el("details", { class: "data" }, el("summary", null, "Numbers of this plot"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.children.length > 1) return;
      const parts = metric.kind === "box" ? ["mean", "p1", "p25", "p50", "p75", "p99"] : [""];
      const names = shown.flatMap((e) => series.flatMap((one) => parts.map((part) =>
        [one.name, shown.length > 1 ? engineName[head.engines[e]] || head.engines[e] : "", part].filter(Boolean).join(", "))));
      const top = el("tr", null, state.order.map((level) => el("th", { scope: "col" }, head.levels[level])), names.map((name) => el("th", { scope: "col", class: "n" }, `${name}, ${metric.unit}`)));
      const rows = list.map((leaf, i) => el("tr", null,
        state.order.map((level) => el("th", { scope: "row" }, head.values[level][leaf.p[level]])),
        shown.flatMap((_, e) => series.flatMap((_, s) => parts.map((_, part) => {
          const value = cells[i][e][s];
          const number = Array.isArray(value) ? value[part] : value;
          return el("td", { class: "n" }, Number.isFinite(number) ? num(number) : "");
        })))));
      details.append(el("div", { class: "scroll tall", role: "region", tabindex: 0, "aria-label": `Numbers of ${metric.name}` },
        el("table", null, el("thead", null, top), el("tbody", null, rows))));
    });
    return details;
  }

  render();
  let waiting = 0;
  let width = host.clientWidth;
  new ResizeObserver(() => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (host.clientWidth !== width) {
        width = host.clientWidth;
        render();
      }
    }, 80);
  }).observe(host);
});
