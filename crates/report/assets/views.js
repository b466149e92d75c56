// Views of a metric over the cells of a lab: bars of a few cells, lines along a level, and a heat map over two levels; the last two
// once for each value of a further level, if one is chosen. A view returns its drawings, with their numbers.
"use strict";
weir.views = (() => {
  const { el, num, ticks } = weir;
  const LETTER = 7;
  const UNITS = { "bit/s": 1e-6, "kbit/s": 1e-3, "Mbit/s": 1, "Gbit/s": 1e3, ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1e3, min: 6e4, h: 36e5, B: 1, kB: 1e3, MB: 1e6, KiB: 1024, MiB: 1048576, "%": 1, bdp: 1,
    packets: 1, segments: 1, flows: 1, "": 1 };

  // The number at the begin of a label, in the unit of the axis; null if the label is not a number with a unit.
  function numeric(label) {
    const [, digits, unit] = /^\s*([+-]?[\d.]+(?:e[+-]?\d+)?)\s*(\S*)\s*$/.exec(label) || [];
    const value = digits === undefined || !(unit in UNITS) ? NaN : parseFloat(digits) * UNITS[unit];
    return Number.isFinite(value) ? value : null;
  }
  // The positions of a level's labels along an axis: by their numbers if all are numbers, else evenly spaced. The scale is
  // logarithmic only if that is asked for.
  function places(labels, log) {
    const values = labels.map(numeric);
    if (labels.length < 2 || values.some((value) => value === null) || new Set(values).size < values.length) return { even: true, at: labels.map((_, i) => (i + 0.5) / labels.length) };
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const of = log && low > 0 ? Math.log : (value) => value;
    return { even: false, at: values.map((value) => 0.04 + (0.92 * (of(value) - of(low))) / (of(high) - of(low))) };
  }
  const text = (attributes, words) => el("text", attributes, words);
  const fit = (words, width) => (words.length * LETTER <= width ? words : width < 3 * LETTER ? "" : words.slice(0, Math.floor(width / LETTER) - 1) + "…");
  const spoken = ({ mean, half }) => (mean === null ? "–" : num(mean) + (half ? ` ± ${weir.half(half)}` : ""));

  // The repeats of a mean as small dots.
  const repeats = ({ each }, place) => (each.length > 1 ? each.map((own) => el("circle", { ...place(own), r: 1.8 })) : []);

  // A bar for each cell and series, below the cell's name.
  function bars({ width, cells, unit }) {
    const shown = cells.flatMap((cell) => cell.values.map((one) => one.value));
    const high = Math.max(...shown.flatMap(({ mean, half, each }) => [...each, (mean || 0) + (half || 0)]), 0) || 1;
    const room = Math.max(120, width - 120);
    const x = (value) => 8 + (room - 8) * (Math.max(0, value) / high);
    const nodes = [];
    let y = 4;
    for (const cell of cells) {
      nodes.push(text({ class: "row-name", x: 8, y: y + 13 }, fit(cell.name, width - 16), el("title", null, cell.name)));
      y += 20;
      for (const { ink, colour, name, value } of cell.values) {
        if (value.mean === null) {
          nodes.push(text({ class: "absent", x: 8, y: y + 11 }, fit(`${cells.some((other) => other.values.length > 1) ? name + ": " : ""}${value.why}`, width - 16), el("title", null, value.why)));
          y += 19;
          continue;
        }
        const bar = el("rect", { class: "bar " + (ink || ""), x: 8, y, width: Math.max(1, x(value.mean) - 8), height: 14 }, el("title", null, `${cell.name}, ${name}: ${spoken(value)} ${unit}`));
        if (colour) bar.style.setProperty("--own", colour);
        nodes.push(bar);
        if (value.half) {
          const [from, to] = [x(value.mean - value.half), x(value.mean + value.half)];
          nodes.push(el("path", { class: "interval", d: `M${from} ${y + 7}H${to}M${from} ${y + 3}v8M${to} ${y + 3}v8` }));
        }
        nodes.push(...repeats(value, (own) => ({ class: "repeat " + (ink || ""), cx: x(own), cy: y + 11 })));
        nodes.push(text({ class: "row-value", x: x(value.mean + (value.half || 0)) + 6, y: y + 11 }, spoken(value)));
        y += 19;
      }
      y += 8;
    }
    return el("svg", { class: "view", width, height: y }, nodes);
  }

  // Lines along a level: `lines` are `{ name, ink, dash, values }`, one value for each label.
  function lines({ width, labels, lines, high, label, unit, log }) {
    const [left, top, height] = [58, 12, 250];
    const { at, even } = places(labels, log);
    const x = (i) => left + at[i] * (width - left - 14);
    const y = (value) => top + height - height * (value / high);
    const nodes = ticks(0, high, 5).flatMap((tick) => [el("line", { class: "grid", x1: left, x2: width - 8, y1: y(tick), y2: y(tick) }), text({ x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, weir.short(tick))]);
    const step = even ? (width - left) / labels.length : Infinity;
    let free = -Infinity;
    [...labels.keys()].sort((a, b) => at[a] - at[b]).forEach((i) => {
      const wide = Math.min(step - 4, labels[i].length * LETTER);
      // A label that would cover its neighbour is left out: the points have it.
      if (x(i) - wide / 2 < free) return;
      free = x(i) + wide / 2 + 6;
      nodes.push(text({ x: x(i), y: top + height + 18, "text-anchor": "middle" }, fit(labels[i], step), el("title", null, labels[i])));
    });
    nodes.push(text({ x: (left + width) / 2, y: top + height + 36, "text-anchor": "middle", class: "unit" }, label));
    for (const [number, { name, ink, dash, values }] of lines.entries()) {
      const order = [...values.keys()].sort((a, b) => at[a] - at[b]);
      const known = (i) => i !== undefined && values[i].mean !== null;
      // Where a value is missing, the line is interrupted and a cross stands at the foot; the list below the plot has the reason.
      nodes.push(el("path", { class: "along " + ink, d: order.map((i, n) => (known(i) ? `${known(order[n - 1]) ? "L" : "M"}${x(i)} ${y(values[i].mean)}` : "")).join(""), "stroke-dasharray": dash }));
      for (const i of order) {
        const { mean, half, why } = values[i];
        nodes.push(...repeats(values[i], (own) => ({ class: "repeat " + ink, cx: x(i), cy: y(own) })));
        if (mean === null) {
          const [cx, cy] = [x(i) + 9 * number, top + height - 7];
          nodes.push(el("path", { class: "absent " + ink, d: `M${cx - 3.5} ${cy - 3.5}l7 7m0 -7l-7 7` }, el("title", null, `${name}, ${labels[i]}: ${why}`)));
          continue;
        }
        if (half) nodes.push(el("path", { class: "whisker " + ink, d: `M${x(i)} ${y(Math.max(0, mean - half))}V${y(mean + half)}m-4 0h8M${x(i) - 4} ${y(Math.max(0, mean - half))}h8` }));
        nodes.push(el("circle", { class: "dot " + ink, cx: x(i), cy: y(mean), r: 4 }, el("title", null, `${name}, ${labels[i]}: ${spoken(values[i])} ${unit}`)));
      }
    }
    return el("svg", { class: "view", width, height: top + height + 44 }, nodes);
  }

  // A heat map: `values[row][column]`; the deeper the colour, the larger the value.
  function heat({ width, rows, columns, values, low, high, unit, label }) {
    const left = Math.min(width * 0.35, 16 + Math.max(...rows.map((row) => row.length)) * LETTER);
    const wide = Math.max(34, (width - left - 4) / columns.length);
    const tilted = columns.some((column) => column.length * LETTER > wide - 4);
    const foot = tilted ? Math.min(140, 14 + Math.max(...columns.map((column) => column.length)) * LETTER) : 24;
    const tall = 30;
    const nodes = rows.flatMap((row, r) => [
      text({ x: left - 8, y: r * tall + 19, "text-anchor": "end" }, fit(row, left - 8), el("title", null, row)),
      ...columns.flatMap((column, c) => {
        const value = values[r][c];
        const known = value && value.mean !== null;
        const part = known && high > low ? (value.mean - low) / (high - low) : 0;
        const square = el("rect", { class: "heat", x: left + c * wide, y: r * tall, width: wide - 2, height: tall - 2, style: `--part: ${known ? Math.round(8 + 84 * part) : 0}%` }, el("title", null, `${row}, ${column}: ${known ? `${spoken(value)} ${unit}${value.why ? `; ${value.why}` : ""}` : value ? value.why : "not run"}`));
        return [square, text({ class: part > 0.5 ? "deep" : "faint", x: left + c * wide + wide / 2 - 1, y: r * tall + 19, "text-anchor": "middle" }, known ? fit(num(value.mean) + (value.why ? "*" : ""), wide + 6) : "–")];
      }),
    ]);
    const bottom = rows.length * tall;
    columns.forEach((column, c) => {
      const middle = left + (c + 0.5) * wide;
      nodes.push(tilted ? text({ transform: `translate(${middle + 4} ${bottom + 6}) rotate(-90)`, "text-anchor": "end" }, fit(column, foot), el("title", null, column)) : text({ x: middle, y: bottom + 16, "text-anchor": "middle" }, column));
    });
    nodes.push(text({ x: left + (columns.length * wide) / 2, y: bottom + foot + 14, "text-anchor": "middle", class: "unit" }, label));
    // The scale of colours below the map, with its ends and the unit.
    const [from, room] = [bottom + foot + 30, Math.min(240, columns.length * wide)];
    if (Number.isFinite(high)) {
      const steps = 24;
      nodes.push(...Array.from({ length: steps }, (_, i) => el("rect", { class: "tone", x: left + (i * room) / steps, y: from, width: room / steps + 0.5, height: 10, style: `--part: ${Math.round(8 + (84 * i) / (steps - 1))}%` })));
      nodes.push(text({ x: left, y: from + 24 }, weir.short(+low.toPrecision(3))), text({ x: left + room, y: from + 24, "text-anchor": "end" }, weir.short(+high.toPrecision(3)) + (unit ? ` ${unit}` : "")));
    }
    return el("svg", { class: "view", width: Math.max(width, left + columns.length * wide), height: from + 32 }, nodes);
  }

  return { bars, lines, heat, numeric, spoken };
})();

// Means of a series over the repeats of cells: `single` gives the number of a value, `whyNot` the reason of a missing one.
weir.means = (single, whyNot) => {
  const soundIn = (runs) => runs.filter((run) => !run.x || runs.every((other) => other.x));
  // The mean over a cell's repeats, its repeats, and why repeats have no value.
  function meanOf(all, one) {
    const runs = soundIn(all);
    const without = runs.filter((run) => !Number.isFinite(single(one.of(run))));
    const each = runs.map((run) => single(one.of(run))).filter(Number.isFinite);
    const why = without.length ? (each.length ? `${without.length} of ${runs.length} runs ` : "") + whyNot(without[0], one) : null;
    return { ...weir.mean(each), each, why: runs.length ? why : "not run" };
  }
  // The mean over several cells: that of their means, with the interval of the repeats' means over the cells.
  function meanOver(cells, one) {
    const found = cells.map((runs) => meanOf(runs, one));
    const gap = found.find((value) => value.mean === null);
    if (gap || !found.length) return { mean: null, half: null, each: [], why: gap ? gap.why : "not run" };
    if (found.length === 1) return found[0];
    const of = (runs, n) => soundIn(runs).filter((run) => run.n === n).map((run) => single(one.of(run)))[0];
    const repeats = [...new Set(cells.flat().map((run) => run.n))].map((n) => cells.map((runs) => of(runs, n)));
    const each = repeats.filter((values) => values.every(Number.isFinite)).map(weir.average);
    const whole = found.every((value) => value.count === each.length);
    return { mean: weir.average(found.map((value) => value.mean)), half: whole ? weir.mean(each).half : null, each, why: (found.find((value) => value.why) || {}).why || null };
  }
  return { meanOf, meanOver };
};
