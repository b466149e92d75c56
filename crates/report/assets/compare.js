// The comparison of a lab's cells. The first view has a column for each leaf (a cell with its repeats); the axis below names the
// levels, which can be reordered or narrowed to one value; only visible columns are drawn. Other views show chosen cells in one
// plot, and a metric as bars, along a level or over two levels. The address holds all choices.
"use strict";
weir.onLab((head, all) => {
  const { el, num, engineName } = weir;
  const host = document.getElementById("compare");
  const MOST_CHOSEN = 6;
  const MOST_LISTED = 200;
  const MOST_GAPS = 12;
  const VIEWS = [["cells", "All cells"], ["overlay", "Over time and distribution"], ["bars", "Bars"], ["lines", "Along a level"], ["heat", "Heat map"]];
  const { STATS } = weir;
  const base = host.dataset.base;
  const className = { "not-ect": "Not-ECT", ect0: "ECT(0)", ect1: "ECT(1)", ce: "CE" };

  // The metrics that can be shown. `of(run)` gives a number, or [mean, p1, p25, p50, p75, p99].
  const link = (run) => run.l.find((one) => one.i === state.link) || null;
  const [ofRun, ofLink, ofClass, ofGroup] = ["run", "link", "class", "group"].map((kind) => weir.reader(head, kind));
  const ofPair = ((read) => (run, name) => read({ v: run.pair }, name))(weir.reader(head, "pair"));
  const byClass = (metric) => () => head.classes.map((name, bits) => ({
    name: className[name] || name, ink: "c" + bits, of: (run) => ofClass((((link(run) || {}).c) || []).find((one) => one.i === bits), metric),
  }));
  const groupIn = (run, i) => run.g.find((one) => one.i === i);
  const byGroup = (metric) => () => head.groups.map((name, i) => ({ name, ink: "g" + (i % 8), group: i, metric, of: (run) => ofGroup(groupIn(run, i), metric) }));
  // Why a run has no value of a series.
  const whyNot = (run, { group, metric }) => ((run.a || []).find(([i, m]) => i === group && head.of.group[m] === metric) || [])[2] || "no value";
  const one = (name, of) => [{ name, ink: "n0", of }];
  const DELAY = "queue_delay_ms";
  const metrics = [
    { key: "delay", name: "Queue delay", unit: "ms", kind: "box", series: () => {
      const seen = byClass(DELAY)().filter((c) => all.some((run) => c.of(run)));
      return seen.length > 1 ? seen : one("all packets", (run) => ofLink(link(run), DELAY));
    } },
    { key: "used", name: "Link utilisation by class", unit: "%", kind: "stack", ceiling: 100, series: byClass("utilisation_percent") },
    { key: "goodput", name: "Goodput by group", unit: "Mbit/s", kind: "stack", series: byGroup("goodput_mbps") },
    { key: "drop", name: "Drop probability", unit: "%", kind: "dot", series: byClass("drop_probability_percent") },
    { key: "mark", name: "Mark probability", unit: "%", kind: "dot", series: byClass("mark_probability_percent") },
    { key: "aqm", name: "Probability set by the AQM", unit: "%", kind: "box", series: () =>
      [["of drops", "n1", "aqm_drop_probability_percent"], ["of marks", "n0", "aqm_mark_probability_percent"]].map(([name, ink, metric]) =>
        ({ name, ink, of: (run) => ofLink(link(run), metric) })) },
    { key: "rtt", name: "RTT by group", unit: "ms", kind: "box", series: byGroup("rtt_ms") },
    { key: "above-base", name: "RTT above its base", unit: "ms", kind: "box", series: () => head.groups.map((name, i) => ({ name, ink: "g" + (i % 8), of: (run) => {
      const [rtts, base] = ["rtt_ms", "rtt_base_ms"].map((metric) => ofGroup(groupIn(run, i), metric));
      return rtts && Number.isFinite(base) ? rtts.map((rtt) => Math.max(0, rtt - base)) : null;
    } })) },
    { key: "rate-ratio", name: "Rate ratio", unit: "first to second group", kind: "dot", log: true, series: () => one("rate ratio", (run) => ofPair(run, "rate_ratio")) },
    { key: "window-ratio", name: "Window ratio", unit: "first to second group", kind: "dot", log: true, series: () => one("window ratio", (run) => ofPair(run, "window_ratio")) },
    { key: "jain", name: "Jain’s index", unit: "1 is even", kind: "dot", ceiling: 1, series: () => one("Jain’s index", (run) => ofRun(run, "jain_index")) },
    { key: "again", name: "Segments retransmitted", unit: "%", kind: "dot", series: byGroup("retransmission_percent") },
    { key: "window", name: "Congestion window by group", unit: "segments", kind: "dot", series: byGroup("cwnd_segments") },
    ...[["completion", "completion_time_s", "Completion time", "s", "box"], ["requests", "request_time_ms", "Request time", "ms", "box"],
      ["request-rate", "requests_per_s", "Requests answered", "1/s", "dot"], ["frames", "frame_delay_ms", "Frame delay", "ms", "box"],
      ["on-time", "frames_on_time_percent", "Frames on time", "%", "dot"], ["frames-lost", "frames_lost_percent", "Frames lost", "%", "dot"]].map(([key, metric, name, unit, kind]) =>
      ({ key, name: name + " by group", unit, kind, series: byGroup(metric) })),
  ];

  // All other metrics of the registry, for every subject: loaded when one of them is chosen.
  const more = new Map();
  weir.metrics = (list) => list.forEach(({ m, title, unit, of, name, v }) => {
    const values = new Map(all.map((run, i) => [run, v[i]]));
    const key = `${of}:${name}:${m}`;
    const whole = `${title}${name ? ` of ${of} ${name}` : " of the run"}`;
    more.set(key, { key, name: whole, unit, kind: v.some(Array.isArray) ? "box" : "dot", of, series: () => [{ name: name || "the run", ink: "n0", metric: m, group: of === "group" ? head.groups.indexOf(name) : undefined, of: (run) => values.get(run) }] });
  });
  let asked = null;
  const loadMore = () => (asked ??= new Promise((done) => {
    const script = el("script", { src: base + "metrics.js" });
    script.onload = script.onerror = done;
    document.head.append(script);
  }));

  // Metrics of a link have a choice of the link; those of groups do not.
  const OF_LINKS = ["delay", "used", "drop", "mark", "aqm"];
  const titleOf = (metric) => (OF_LINKS.includes(metric.key) ? `${metric.name} at link ${head.links[state.link]}` : metric.name);
  // Links that carry data come first.
  const carries = (i) => all.some((run) => run.l.some((one) => one.i === i && one.t));
  const linkOrder = head.links.map((_, i) => i).sort((a, b) => carries(b) - carries(a) || a - b);
  const often = new Map();
  all.forEach((run) => often.set(run.b, (often.get(run.b) || 0) + 1));
  const state = {
    metric: "delay",
    link: [...often.entries()].sort((a, b) => b[1] - a[1]).map((entry) => entry[0])[0] ?? 0,
    order: head.levels.map((_, i) => i),
    only: head.levels.map(() => null),
    mean: [],
    engines: head.engines.map(() => true),
    log: false,
    view: "cells",
    cells: [],
    stat: "mean",
    along: null,
    by: null,
    facet: null,
    of: null,
    chart: null,
    line: null,
  };
  // A level's short name: the last parts of its name, as many as make it unique.
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
    host.append(el("p", { class: "quiet" }, "No measured values can be compared."));
    return;
  }
  if (!offered.some((metric) => metric.key === state.metric)) state.metric = offered[0].key;

  // The cells in one plot: those in the address, else the first ones.
  const keyOf = (run) => [...run.p.map((v, level) => head.values[level][v]), ...(head.engines.length > 1 ? [head.engines[run.e]] : [])].join("|");
  const cellOf = new Map();
  all.forEach((run) => cellOf.set(keyOf(run), [...(cellOf.get(keyOf(run)) || []), run]));
  const shortLabel = (run) => weir.labelOf(head, run);
  // The names of chosen cells: only the labels in which they differ.
  function apart(keys) {
    const runs = keys.map((key) => cellOf.get(key)[0]);
    const differs = (of) => new Set(runs.map(of)).size > 1;
    const told = head.levels.map((_, level) => level).filter((level) => differs((run) => run.p[level]));
    return runs.map((run) => [...told.map((level) => `${weir.levelName(head, level)} ${head.values[level][run.p[level]]}`), ...(differs((run) => run.e) ? [engineName[head.engines[run.e]]] : [])].join(" · ") || shortLabel(run));
  }
  const inUnit = (metric) => (metric.unit ? ` in ${metric.unit}` : "");
  // Levels with more than one value.
  const varied = head.levels.map((_, level) => level).filter((level) => head.values[level].length > 1);
  state.cells = [...cellOf.keys()].slice(0, Math.min(MOST_CHOSEN, Math.max(2, cellOf.size)));
  const isNumeric = (level) => head.values[level].every((label) => weir.views.numeric(label) !== null);
  state.along = varied.find(isNumeric) ?? varied[0] ?? null;
  state.by = varied.find((level) => level !== state.along) ?? null;

  // Controls.
  const views = el("div", { class: "pick views", role: "group", "aria-label": "View" }, VIEWS.filter(([key]) => (key !== "lines" || varied.length > 0) && (key !== "heat" || varied.length > 1)).map(([key, name]) =>
    el("button", { type: "button", "data-view": key, onclick: () => set({ view: key }) }, name)));
  const pick = el("div", { class: "pick", role: "group", "aria-label": "Metric" }, offered.map((metric) =>
    el("button", { type: "button", "data-key": metric.key, onclick: () => set({ metric: metric.key }) }, metric.name)));
  const levels = el("div", { class: "levels" });
  const figure = el("figure", { class: "card" });
  const list = el("details", { class: "chosen" });
  const overlaid = el("div", null);
  const others = el("select", { "aria-label": "Every metric", onfocus: () => offerMore(), onmousedown: () => offerMore(), onchange: (event) => event.target.value && set({ metric: event.target.value }) }, el("option", { value: "" }, "every metric …"));
  if (head.metrics) pick.append(others);
  async function offerMore() {
    await loadMore();
    if (others.options.length > 1) return;
    const kinds = new Map();
    more.forEach((metric) => kinds.set(metric.of, [...(kinds.get(metric.of) || []), metric]));
    kinds.forEach((metrics, of) => others.append(el("optgroup", { label: `of a ${of}` }, metrics.map((metric) => el("option", { value: metric.key }, `${metric.name}${metric.unit ? ", " + metric.unit : ""}`)))));
    others.value = more.has(state.metric) ? state.metric : "";
  }
  host.append(views, pick, levels, list, overlaid, figure);

  // The address holds the choices, so that a link leads to the same plot.
  function written() {
    const parts = new URLSearchParams();
    if (OF_LINKS.includes(state.metric) && head.links.length > 1) parts.set("link", head.links[state.link]);
    if (state.order.some((level, place) => level !== place)) parts.set("order", state.order.map((level) => head.levels[level]).join(","));
    state.only.forEach((value, level) => value !== null && parts.set("only." + head.levels[level], head.values[level][value]));
    state.engines.forEach((on, i) => on || parts.append("without", head.engines[i]));
    if (["lines", "heat"].includes(state.view)) state.mean.forEach((level) => parts.append("mean", head.levels[level]));
    if (state.log) parts.set("log", "1");
    if (state.view !== "cells") parts.set("view", state.view);
    if (["overlay", "bars"].includes(state.view)) state.cells.forEach((cell) => parts.append("cell", cell));
    if (["bars", "lines", "heat"].includes(state.view) && state.stat !== "mean") parts.set("stat", state.stat);
    if (["lines", "heat"].includes(state.view)) ["along", "by", "facet"].forEach((name) => state[name] !== null && parts.set(name, head.levels[state[name]]));
    if (state.view === "heat" && state.of) parts.set("of", state.of);
    if (state.view === "overlay") ["chart", "line"].forEach((name) => state[name] && parts.set(name, state[name]));
    return "#" + encodeURIComponent(state.metric) + ([...parts].length ? "&" + parts : "");
  }
  function read() {
    const [metric, ...rest] = location.hash.slice(1).split("&");
    const name = decodeURIComponent(metric);
    if (!offered.some((one) => one.key === name) && !/^(run|link|class|group):/.test(name)) return;
    const parts = new URLSearchParams(rest.join("&"));
    const place = (list, name) => (list.includes(name) ? list.indexOf(name) : null);
    state.metric = name;
    state.link = place(head.links, parts.get("link")) ?? state.link;
    const order = (parts.get("order") || "").split(",").map((name) => head.levels.indexOf(name));
    if (order.length === head.levels.length && head.levels.every((_, level) => order.includes(level))) state.order = order;
    state.only = head.levels.map((name, level) => place(head.values[level], parts.get("only." + name)));
    state.mean = parts.getAll("mean").map((name) => head.levels.indexOf(name)).filter((level) => level >= 0);
    state.engines = head.engines.map((name) => !parts.getAll("without").includes(name));
    state.log = parts.get("log") === "1";
    state.view = VIEWS.some(([key]) => key === parts.get("view")) ? parts.get("view") : "cells";
    const chosen = parts.getAll("cell").filter((cell) => cellOf.has(cell)).slice(0, MOST_CHOSEN);
    if (chosen.length) state.cells = chosen;
    state.stat = STATS.includes(parts.get("stat")) ? parts.get("stat") : "mean";
    if (parts.has("along")) ["along", "by", "facet"].forEach((name) => (state[name] = place(head.levels, parts.get(name))));
    [state.chart, state.line, state.of] = ["chart", "line", "of"].map((name) => parts.get(name));
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
  const choices = (list, chosen, change, label) => el("select", { "aria-label": label, onchange: (event) => change(event.target.value) },
    list.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, text)));
  function controls() {
    views.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.view === state.view)));
    if (more.has(state.metric)) offerMore();
    pick.hidden = state.view === "overlay";
    levels.hidden = state.view === "overlay";
    list.hidden = !["overlay", "bars"].includes(state.view);
    overlaid.hidden = state.view !== "overlay";
    figure.hidden = state.view === "overlay";
    pick.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.key === state.metric)));
    const free = ["cells", "lines", "heat"].includes(state.view);
    const taken = { lines: [state.along, state.by, state.facet], heat: [state.along, state.by, state.facet] }[state.view] || [];
    const axes = { lines: [["along", "Along"], ["by", "A line for each"], ["facet", "A plot for each"]], heat: [["along", "Across"], ["by", "Down"], ["facet", "A map for each"]] }[state.view] || [];
    levels.replaceChildren(
      ...axes.map(([key, name]) => el("span", { class: "level-control" }, el("span", { class: "quiet" }, name),
        choices([...(key === "along" || (key === "by" && state.view === "heat") ? [] : [["", "nothing"]]), ...varied.map((level) => [level, head.levels[level]])], state[key] ?? "", (value) => {
          const level = value === "" ? null : +value;
          // If the level was chosen elsewhere, both change places.
          const other = axes.map(([one]) => one).find((one) => one !== key && level !== null && state[one] === level);
          set({ ...(other ? { [other]: state[key] } : {}), [key]: level });
        }, name))),
      ...(free ? state.order : []).filter((level) => !taken.includes(level) && (state.view === "cells" || varied.includes(level))).map((level, place) => el("span", { class: "level-control" },
        el("span", { class: "quiet" }, head.levels[level]),
        choices([...(state.view === "cells" ? [["", "all"]] : []), ...head.values[level].map((value, i) => [i, value]), ...(state.view === "cells" ? [] : [["mean", "mean over all"]])],
          state.view === "cells" ? state.only[level] ?? "" : fixedAt(level) ?? "mean",
          (value) => set({ mean: [...state.mean.filter((one) => one !== level), ...(value === "mean" ? [level] : [])], only: state.only.map((old, i) => (i === level ? (value === "" || value === "mean" ? null : +value) : old)) }), `Only this ${head.levels[level]}`),
        state.view === "cells" && state.order.length > 1 ? el("button", { type: "button", disabled: place === 0, "aria-label": `Move ${head.levels[level]} outwards`, onclick: () => move(place, -1) }, "‹") : null,
        state.view === "cells" && state.order.length > 1 ? el("button", { type: "button", disabled: place === state.order.length - 1, "aria-label": `Move ${head.levels[level]} inwards`, onclick: () => move(place, 1) }, "›") : null)),
      ...(head.links.length > 1 && OF_LINKS.includes(state.metric) ? [el("span", { class: "level-control" }, el("span", { class: "quiet" }, "link"),
        choices(linkOrder.map((i) => [i, head.links[i] + (carries(i) ? "" : " (acknowledgements)")]), state.link, (value) => set({ link: +value }), "Link"))] : []),
      ...(state.view === "heat" && members().length > 1 ? [el("span", { class: "level-control" }, el("span", { class: "quiet" }, "of"), choices(members().map(({ name }) => [name, name]), state.of, (of) => set({ of }), "Of"))] : []),
      ...(state.view !== "cells" && boxed() ? [el("span", { class: "level-control" }, el("span", { class: "quiet" }, "value"), choices(STATS.map((stat) => [stat, stat]), state.stat, (stat) => set({ stat }), "Value"))] : []),
      ...(head.engines.length > 1 && free ? head.engines.map((name, i) => el("button", { type: "button", class: "engine " + name, "aria-pressed": String(state.view === "cells" ? state.engines[i] : i === engineOn()),
        onclick: () => set({ engines: state.engines.map((on, j) => (state.view === "cells" ? (i === j ? !on : on) : i === j)) }) }, engineName[name] || name)) : []),
      ...(["cells", "lines"].includes(state.view) ? [el("button", { type: "button", class: "scale", "aria-pressed": String(state.log), title: state.view === "lines" ? "Logarithmic scale along the level" : "Logarithmic scale; stacked values become separate", onclick: () => set({ log: !state.log }) }, "log")] : []),
    );
    if (!list.hidden) chooser();
  }

  // The list of cells, of which up to six may be chosen. If there are very many, it holds those that the search field finds.
  let searched = "";
  function chooser() {
    const box = (key) => {
      const input = el("input", { type: "checkbox", checked: state.cells.includes(key), onchange: () => {
        const cells = input.checked ? [...state.cells, key].slice(-MOST_CHOSEN) : state.cells.filter((cell) => cell !== key);
        if (cells.length) set({ cells });
        else input.checked = true;
      } });
      return el("label", null, input, " ", shortLabel(cellOf.get(key)[0]));
    };
    const rows = el("div", { class: "cells" });
    const fill = () => {
      const words = searched.toLowerCase().split(/\s+/).filter(Boolean);
      const found = [...cellOf.keys()].filter((key) => state.cells.includes(key) || words.every((word) => shortLabel(cellOf.get(key)[0]).toLowerCase().includes(word)));
      rows.replaceChildren(...found.slice(0, MOST_LISTED).map(box), ...(found.length > MOST_LISTED ? [el("p", { class: "quiet" }, `${found.length - MOST_LISTED} more: type a part of their names.`)] : []));
    };
    const find = el("input", { type: "search", value: searched, autocomplete: "off", placeholder: "part of a name", "aria-label": "Find cells", oninput: () => {
      searched = find.value;
      fill();
    } });
    list.replaceChildren(el("summary", null, `${state.cells.length} of ${cellOf.size} cells (at most ${MOST_CHOSEN})`), ...(cellOf.size > 8 ? [find] : []), rows);
    fill();
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
  // The mean over repeats: of numbers, or of each percentile.
  function pooled(runs, series) {
    const values = runs.map(series.of).filter(filled);
    if (!values.length) return null;
    return Array.isArray(values[0]) ? values[0].map((_, i) => average(values.map((value) => value[i]))) : average(values);
  }

  const metricOf = (key) => offered.find((metric) => metric.key === key) || more.get(key);
  // The subjects for which a metric has values.
  const members = () => metricOf(state.metric).series().filter((one) => all.some((run) => filled(one.of(run))));
  const boxed = () => state.view !== "overlay" && (metricOf(state.metric) || {}).kind === "box";
  // One number of a run; of a distribution, the chosen statistic.
  const single = (value) => weir.statistic(value, state.stat);
  const { meanOf, meanOver } = weir.means(single, whyNot);
  // In lines and maps, a level without an axis is fixed at one of its labels; the mean over it is only taken if that is asked for.
  const fixedAt = (level) => (state.mean.includes(level) ? null : state.only[level] ?? 0);

  const engineOn = () => Math.max(0, state.engines.indexOf(true));

  function overlay() {
    const names = apart(state.cells);
    const sound = (runs) => (runs.some((run) => !run.x) ? runs.filter((run) => !run.x) : runs);
    const cells = state.cells.map((key, i) => ({ name: names[i], runs: sound(cellOf.get(key)) }));
    const chart = state.chart || { delay: "delay", goodput: "goodput", rtt: "rtt", again: "again", window: "window", completion: "completion", requests: "requests", frames: "frames", "on-time": "on-time" }[state.metric];
    const why = (runs, name) => (runs.flatMap((run) => run.a || []).find(([i]) => head.groups[i] === name) || [])[2] || "nothing measured";
    weir.overlay.draw({ host: overlaid, head, base, cells, why, chosen: { chart, line: state.line }, choose: (chosen) => set(chosen), said: (text) => (document.querySelector("h1").textContent = text) });
  }

  // Bars, lines along a level, and heat maps: drawings with their numbers.
  function drawing(metric, series) {
    const width = Math.max(240, figure.clientWidth - 36);
    const engine = head.engines.length > 1 && state.view !== "bars" ? `, ${engineName[head.engines[engineOn()]]}` : "";
    const stat = (metric.kind === "box" ? `, ${state.stat}` : "") + engine;
    const [rows, gaps] = [[], []];
    const tell = (labels, value) => {
      rows.push([...labels, value.mean, value.half]);
      if (value.why) gaps.push(`${labels.filter(Boolean).join(", ")}: ${value.why}`);
    };
    if (state.view === "bars") {
      const names = apart(state.cells);
      const cells = state.cells.map((key, i) => ({ name: names[i], values: series.map((one) => ({ ...one, value: meanOf(cellOf.get(key), one) })) }));
      cells.forEach((cell) => cell.values.forEach(({ name, value }) => tell([cell.name, name], value)));
      return { figures: [["", weir.views.bars({ width, cells, unit: metric.unit })]], keys: series, rows, gaps, columns: ["cell", "of"], stat };
    }
    const { along, by, facet } = state;
    const facets = facet === null ? [null] : head.values[facet].map((_, i) => i);
    // Engines are never averaged: if several are on, the first is shown.
    const rest = varied.filter((level) => ![along, by, facet].includes(level));
    const runs = all.filter((run) => run.e === engineOn() && rest.every((level) => [null, run.p[level]].includes(fixedAt(level))));
    const about = rest.map((level) => (fixedAt(level) === null ? `, mean over ${weir.levelName(head, level)}` : `, ${weir.levelName(head, level)} ${head.values[level][fixedAt(level)]}`)).join("");
    const at = (x, y, z, one) => {
      const cells = new Map();
      runs.filter((run) => run.p[along] === x && (y === null || run.p[by] === y) && (z === null || run.p[facet] === z)).forEach((run) => cells.set(keyOf(run), [...(cells.get(keyOf(run)) || []), run]));
      return meanOver([...cells.values()], one);
    };
    const width3 = facets.length > 1 ? Math.max(260, Math.min(width, (width - 24) / 2)) : width;
    const labels = head.values[along];
    const named = (z) => (z === null ? "" : `${weir.levelName(head, facet)} ${head.values[facet][z]}`);
    if (state.view === "heat") {
      const one = series.find((one) => one.name === state.of) || series[0];
      const maps = facets.map((z) => head.values[by].map((_, y) => labels.map((_, x) => at(x, y, z, one))));
      const known = maps.flat(2).map((value) => value.mean).filter(Number.isFinite);
      const figures = maps.map((values, i) => {
        values.forEach((row, y) => row.forEach((value, x) => tell([named(facets[i]), head.values[by][y], labels[x]], value)));
        return [named(facets[i]), weir.views.heat({ width: width3, rows: head.values[by], columns: labels, values, low: Math.min(...known, 0), high: Math.max(...known), unit: metric.unit, label: weir.levelName(head, along) })];
      });
      return { figures, keys: [], rows, gaps, columns: ["plot", head.levels[by], head.levels[along]], stat: `${series.length > 1 ? ` of ${one.name}` : ""}${stat}${about}` };
    }
    const lines = facets.map((z) => (by === null ? [null] : head.values[by].map((_, i) => i)).flatMap((y, i) => series.map((one, s) => ({
      name: [y === null ? null : head.values[by][y], series.length > 1 || y === null ? one.name : null].filter(Boolean).join(", "), ink: y === null ? one.ink : "g" + (i % 8), dash: y !== null && s > 0 ? "6 4" : null,
      values: labels.map((_, x) => at(x, y, z, one)) }))));
    const high = Math.max(...lines.flat().flatMap((line) => line.values.flatMap(({ mean, half, each }) => [...each, (mean || 0) + (half || 0)]))) * 1.06 || 1;
    const figures = lines.map((list, i) => {
      list.forEach((line) => line.values.forEach((value, x) => tell([named(facets[i]), line.name, labels[x]], value)));
      return [named(facets[i]), weir.views.lines({ width: width3, labels, lines: list, high, log: state.log, label: weir.levelName(head, along), unit: metric.unit })];
    });
    return { figures, keys: lines[0], rows, gaps, columns: ["plot", "line", head.levels[along]], stat: stat + about };
  }

  function view(metric) {
    const series = members();
    const { figures, keys, rows, gaps, columns, stat } = drawing(metric, series);
    const title = `${titleOf(metric)}${stat}`;
    const head95 = [...columns, ["mean", metric.unit].filter(Boolean).join(", "), "95 % interval, ±"];
    const written = rows.filter((row) => row[row.length - 2] !== null);
    const drawn = () => weir.save.drawCopies(`${title}, ${metric.unit}`, figures.map(([, svg]) => svg), keys.map((key) => [key.name, weir.colour(key.ink)]));
    const repeats = state.view !== "heat" && Math.max(...[...cellOf.values()].map((runs) => runs.length)) > 1;
    const note = `Means over repeats, with their 95 % intervals${repeats ? "; small dots are repeats" : ""}.`;
    figure.replaceChildren(...[el("figcaption", null, el("h2", null, title, el("span", { class: "quiet" }, " " + metric.unit)), weir.save.buttons(title, drawn, () => [head95, ...written]), el("p", { class: "quiet" }, note)),
      el("div", { class: "lines still" }, keys.map((key) => el("span", { class: "line " + key.ink + (key.dash ? " dashed" : "") }, key.name))),
      el("div", { class: figures.length > 1 ? "facets" : "" }, figures.map(([name, svg]) => el("div", { class: "scroll-x", tabindex: 0, role: "group", "aria-label": `${title} ${name}` }, name ? el("h3", null, name) : null, svg))),
      gaps.length ? el("ul", { class: "gaps quiet" }, gaps.slice(0, MOST_GAPS).map((text) => el("li", null, text)), gaps.length > MOST_GAPS ? el("li", null, `and ${gaps.length - MOST_GAPS} more such cells`) : null) : null,
      numbers(title, head95, written)].filter(Boolean));
    figure.dataset.drawn = String(written.length > 0);
    const known = written.map((row) => [row[row.length - 2], row.slice(0, -2).filter(Boolean).join(", ")]).sort((a, b) => a[0] - b[0]);
    document.querySelector("h1").textContent = !known.length ? `${title}: nothing measured.`
      : state.view === "bars" && written.length < 4 ? `${title}${inUnit(metric)}: ${written.map((row) => `${series.length > 1 ? row.slice(0, 2).join(", ") : row[0]} ${num(row[2])}`).join("; ")}.`
        : `${title}${inUnit(metric)}: lowest ${num(known[0][0])} (${known[0][1]}), highest ${num(known[known.length - 1][0])} (${known[known.length - 1][1]}).`;
  }
  function numbers(title, columns, rows) {
    const details = el("details", { class: "data" }, el("summary", null, "Numbers of this plot"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.children.length > 1) return;
      const cell = (value, i) => (i < columns.length - 2 ? el("td", null, value) : el("td", { class: "n" }, Number.isFinite(value) ? num(value) : ""));
      details.append(el("div", { class: "scroll tall", role: "region", tabindex: 0, "aria-label": `Numbers of ${title}` }, el("table", null,
        el("thead", null, el("tr", null, columns.map((name, i) => el("th", { scope: "col", class: i < columns.length - 2 ? null : "n" }, name)))), el("tbody", null, rows.map((row) => el("tr", null, row.map(cell)))))));
    });
    return details;
  }

  function render() {
    if (!metricOf(state.metric)) {
      // The metric is not loaded yet, or is unknown.
      loadMore().then(() => {
        if (!more.has(state.metric)) state.metric = offered[0].key;
        render();
      });
      return;
    }
    controls();
    const chosen = metricOf(state.metric);
    if (state.view === "overlay") return overlay();
    if (state.view !== "cells") return view(chosen);
    delete figure.dataset.drawn;
    // Logarithms cannot be stacked: the bars are side by side.
    const metric = state.log && chosen.kind === "stack" ? { ...chosen, kind: "dot" } : chosen;
    const series = metric.series().filter((series) => all.some((run) => filled(series.of(run)) && (metric.kind !== "stack" || series.of(run) > 0)));
    const list = leaves();
    const shown = head.engines.map((_, i) => i).filter((i) => state.engines[i]);
    const cells = list.map((leaf) => shown.map((engine) => series.map((one) => pooled(leaf.runs[engine], one))));
    const tree = weir.tree({ head, state, shortName, engineName, filled, labelOf, pageOf, summary, figure, whyNot });
    const scale = tree.scaleOf(metric, list, cells, series, shown);
    figure.replaceChildren();
    const legend = el("div", { class: "lines still" }, series.map((one) => el("span", { class: "line " + one.ink }, one.name)),
      shown.length > 1 ? shown.map((e) => el("span", { class: "key " + head.engines[e] }, engineName[head.engines[e]] || head.engines[e])) : null);
    const repeats = Math.max(1, ...list.flatMap((leaf) => leaf.runs.map((runs) => runs.length)));
    const note = [
      metric.kind === "box" ? "Whiskers p1 and p99, box p25 to p75, line p50, dot mean" : "",
      repeats > 1 ? `mean over up to ${repeats} repeats${metric.kind === "dot" ? ", each a small dot, with its 95 % interval" : ""}` : "",
    ].filter(Boolean).join("; ");
    const whole = () => {
      tree.redraw(true);
      const drawn = weir.save.drawCopies(`${titleOf(metric)}, ${metric.unit}`, [...figure.querySelectorAll(".tree-plot svg")], series.map((one) => [one.name, weir.colour(one.ink)]));
      tree.redraw();
      return drawn;
    };
    const table95 = () => [[...state.order.map((level) => head.levels[level]), "engine", "of", ...(metric.kind === "box" ? STATS : ["mean"])], ...list.flatMap((leaf, i) => shown.flatMap((engine, e) => series.map((one, s) =>
      [...state.order.map((level) => head.values[level][leaf.p[level]]), head.engines[engine], one.name, ...[cells[i][e][s]].flat()])))];
    figure.append(el("figcaption", null, el("h2", null, titleOf(metric), el("span", { class: "quiet" }, " " + metric.unit)), weir.save.buttons(titleOf(metric), whole, table95), note ? el("p", { class: "quiet" }, note + ".") : null), legend);
    if (!list.length || !series.length || !shown.length) {
      figure.append(el("p", { class: "quiet" }, "Nothing to draw with this choice."));
      return;
    }
    // The headline follows the choice.
    document.querySelector("h1").textContent = summary(metric, series, list, cells);
    tree.chart(metric, series, list, cells, scale, shown);
    figure.append(tree.table(metric, series, list, cells, shown));
  }

  // Name and address of a leaf.
  const labelOf = (leaf) => state.order.map((level) => `${head.levels[level]} ${head.values[level][leaf.p[level]]}`).join(" · ");
  function pageOf(leaf) {
    const engines = leaf.runs.map((runs, i) => (runs.length ? i : -1)).filter((i) => i >= 0);
    const first = leaf.runs[engines[0]][0];
    const both = engines.length > 1 && leaf.runs[engines[1]].some((run) => run.id === first.id);
    return base + weir.pageOf(head, first, both ? "both" : head.engines[engines[0]]);
  }

  function summary(metric, series, list, cells) {
    const worth = (c) => {
      const numbers = c.flat().map((value) => (Array.isArray(value) ? value[0] : value)).filter(Number.isFinite);
      return metric.kind === "stack" ? average(c.map((row) => row.reduce((sum, value) => sum + (value || 0), 0))) : average(numbers);
    };
    const values = cells.map(worth);
    const known = values.map((value, i) => [value, i]).filter(([value]) => Number.isFinite(value)).sort((a, b) => a[0] - b[0]);
    if (!known.length) return `${titleOf(metric)}: nothing measured.`;
    const [low, high] = [known[0], known[known.length - 1]];
    return `${titleOf(metric)}${inUnit(metric)} over ${list.length} cells: lowest ${num(low[0])} (${labelOf(list[low[1]]) || "the only cell"}), highest ${num(high[0])} (${labelOf(list[high[1]]) || "the only cell"}).`;
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
