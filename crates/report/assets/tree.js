// A metric over the whole tree: a column for each leaf (a cell with its repeats); the axis below names the levels. Only visible
// columns are drawn. `of` holds the choices of the comparison and its names.
"use strict";
weir.tree = (of) => {
  const { el, num, ticks } = weir;
  const { head, state, shortName, engineName, filled, labelOf, pageOf, summary, figure, whyNot } = of;
  const HEIGHT = 300;
  const TOP = 14;
  const LABEL = 22;
  const LETTER = 7.3;
  const said = (value) => (Array.isArray(value) ? `mean ${num(value[0])}, p1 ${num(value[1])}, p50 ${num(value[3])}, p99 ${num(value[5])}` : num(value));
  let redraw = () => {};

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
      // Symmetric around one, and at least a factor of two.
      const reach = Math.max(2, high, 1 / low) * 1.1;
      const y = (value) => TOP + (HEIGHT - TOP) * (0.5 - Math.log(Math.max(value, 1 / reach)) / Math.log(reach) / 2);
      const marks = [1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16, 64].filter((value) => value >= 1 / reach && value <= reach);
      return { y, ticks: marks, write: (value) => (value < 1 ? `1/${1 / value}` : String(value)), base: y(1) };
    }
    if (state.log && high > 0) {
      // Whole decades, at most four below the greatest value; smaller values and zero are drawn at the bottom.
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
    const leafRow = inner === undefined ? 0 : tilted ? Math.min(190, longest * LETTER + 10) : LABEL;
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
    redraw = (whole) => {
      const first = whole ? 0 : Math.max(0, Math.floor(scroll.scrollLeft / wide) - 2);
      const last = whole ? list.length : Math.min(list.length, Math.ceil((scroll.scrollLeft + scroll.clientWidth) / wide) + 2);
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

  // A leaf: its marks, and above them a link with all its numbers.
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
        if (!filled(value)) {
          if (missing(leaf, engine, one)) group.append(el("text", { class: "absent", x: begin + (s * shown.length + e + 0.5) * slot, y: HEIGHT - 4, "text-anchor": "middle" }, "–"));
          return;
        }
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
          const { mean, half: reach } = weir.mean(leaf.runs[engine].map(one.of).filter(Number.isFinite));
          if (reach) group.append(el("line", { class: `whisker ${one.ink}`, x1: middle, x2: middle, y1: Math.min(HEIGHT, scale.y(Math.max(0, mean - reach))), y2: Math.max(TOP, scale.y(mean + reach)) }));
          group.append(el("circle", { class: `dot ${one.ink}${live}`, cx: middle, cy: scale.y(value), r: 4.5 }));
        }
        marks += 1;
      });
    });
    const invalid = leaf.runs.flat().some((run) => run.x);
    if (invalid) group.append(el("text", { class: "invalid", x: x + wide / 2, y: TOP - 3, "text-anchor": "middle" }, "invalid"));
    const lines = [labelOf(leaf), ...shown.map((engine, e) => series.map((one, s) =>
      `${engineName[head.engines[engine]] || head.engines[engine]}, ${one.name}: ${filled(cell[e][s]) ? `${said(cell[e][s])} ${metric.unit}` : missing(leaf, engine, one) || "–"}`).join("\n"))];
    nodes.push(group, el("a-svg", { href: pageOf(leaf) },
      el("rect", { class: "over", x, width: wide, y: 0, height: HEIGHT }, el("title", null, lines.join("\n")))));
    return marks;
  }

  // Why a group has no value in a leaf, if that has a reason; the value of no other leaf shows it.
  function missing(leaf, engine, one) {
    const why = leaf.runs[engine].length && one.group !== undefined ? whyNot(leaf.runs[engine][0], one) : "no value";
    return why === "no value" ? null : why;
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

  return { chart, scaleOf, table, redraw: (whole) => redraw(whole) };
};
