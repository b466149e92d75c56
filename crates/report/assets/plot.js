// A plot over time with its crosshair, its legend, its numbers and, if there is one, the distribution of its values beside it.
// Plots of one group share their time axis: a zoom in one plot zooms all.
"use strict";

// A group of plots. At first they show the time from `begin` to `end`, the end of the run; the time before `cut`, the warm-up, is shaded.
weir.zoomGroup = ({ begin, end, cut, events }) => {
  const plots = [];
  const followers = [];
  let busy = false;
  let shown = [begin, end];
  function zoom(low, high) {
    if (busy || !(high > low)) return;
    busy = true;
    shown = [low, high];
    plots.forEach((plot) => plot.setScale("x", { min: low, max: high }));
    busy = false;
    followers.forEach((call) => call(low, high));
  }
  // A new plot takes the range that is shown.
  function join(make) {
    const [low, high] = shown;
    busy = true;
    const plot = make();
    plot.setScale("x", { min: low, max: high });
    busy = false;
    plots.push(plot);
    return plot;
  }
  function leave(plot) {
    const place = plots.indexOf(plot);
    if (place >= 0) plots.splice(place, 1);
    plot.destroy();
  }
  const group = { begin, end, cut, events, zoom, join, leave, shown: () => shown, follow: (call) => followers.push(call), key: "weir" };
  return group;
};

// The fields for a range of time, and buttons for the usual ranges.
weir.zoomFields = (group) => {
  const { el } = weir;
  const { begin, end } = group;
  const field = (value, label) => el("input", { type: "number", min: 0, max: end, step: "any", value, "aria-label": label });
  const [from, to] = [field(begin, "From, seconds"), field(end, "To, seconds")];
  group.follow((low, high) => ([from.value, to.value] = [+low.toFixed(3), +high.toFixed(3)]));
  const typed = () => group.zoom(Math.max(0, +from.value), Math.min(end, +to.value));
  [from, to].forEach((one) => one.addEventListener("change", typed));
  return el("div", { class: "window" }, el("label", null, "From ", from), el("label", null, " to ", to, " s"),
    begin > 0 ? el("button", { type: "button", onclick: () => group.zoom(begin, end) }, "After warm-up") : null,
    el("button", { type: "button", onclick: () => group.zoom(0, end) }, "Whole run"));
};

weir.plotParts = (() => {
  const { el, num } = weir;
  const MOST_TOLD = 12;
  const font = () => `12px ${getComputedStyle(document.body).fontFamily}`;
  const axis = (extra) => ({ stroke: () => weir.colour("quiet"), font: font(), labelFont: font(), grid: { stroke: () => weir.colour("grid"), width: 1 },
    ticks: { stroke: () => weir.colour("grid"), width: 1, size: 4 }, ...extra });
  const size = (box) => ({ width: Math.max(200, box.clientWidth), height: box.clientWidth < 520 ? 220 : 260 });
  const colourOf = (line) => (line.colour ? line.colour() : weir.colour(line.ink));
  const dashOf = (line) => (line.cap ? [2, 3] : line.dashed ? [6, 4] : undefined);

  // The box beside the crosshair: a heading and the lines' values, the largest first. `heading(plot, x)` gives the heading, and
  // `rows(plot)` rows of [line, text, value].
  function crosshair(heading, rows) {
    let box = null;
    return {
      init: [(plot) => {
        box = el("div", { class: "tip", hidden: true });
        plot.over.append(box);
      }],
      setCursor: [(plot) => {
        const { left, top, idx } = plot.cursor;
        if (!(left >= 0) || idx === null || idx === undefined) {
          box.hidden = true;
          return;
        }
        const told = rows(plot).sort((a, b) => b[2] - a[2]);
        const more = told.length - MOST_TOLD;
        box.replaceChildren(el("b", null, heading(plot)), ...told.slice(0, MOST_TOLD).map(([line, text]) => {
          const key = el("i", null);
          key.style.background = colourOf(line);
          return el("span", null, key, line.name, el("b", null, text));
        }), ...(more > 0 ? [el("span", null, `and ${more} more`)] : []));
        box.hidden = false;
        const [width, height] = [box.offsetWidth, box.offsetHeight];
        box.style.left = Math.max(0, left + 14 + width > plot.over.clientWidth ? left - width - 14 : left + 14) + "px";
        box.style.top = Math.max(0, Math.min(Math.max(0, top) + 10, plot.over.clientHeight - height)) + "px";
      }],
    };
  }

  // The arrow keys move the crosshair of a plot that has the focus.
  function keys(plot, box) {
    box.tabIndex = 0;
    box.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const { data, over } = plot;
      const [low, high] = [plot.scales.x.min, plot.scales.x.max];
      const inside = data[0].map((_, i) => i).filter((i) => data[0][i] >= low && data[0][i] <= high);
      const now = inside.indexOf(plot.cursor.idx);
      const next = inside[Math.min(inside.length - 1, Math.max(0, now < 0 ? 0 : now + by * (event.shiftKey ? 10 : 1)))];
      if (next !== undefined) plot.setCursor({ left: plot.valToPos(data[0][next], "x"), top: over.clientHeight / 3 });
    });
  }

  // Fingers zoom too: a horizontal drag selects, vertical ones scroll the page.
  function touch(plot, zoom) {
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

  // The width of an axis, from its longest label.
  const wideEnough = (_, labels) => Math.max(46, 14 + 7.2 * Math.max(0, ...(labels || []).map((label) => String(label).length)));

  // The range of values: from zero, with a little room above.
  function room(low, high) {
    if (low === null || high === null) return [0, 1];
    const bottom = Math.min(0, low);
    return [bottom, high > bottom ? high + (high - bottom) * 0.06 : bottom + 1];
  }

  // The bands of lines that have one, from the least to the greatest value at each time.
  function drawBands(plot, lines) {
    const { ctx, data } = plot;
    const { left, top, width, height } = plot.bbox;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.globalAlpha = 0.16;
    for (const line of lines.filter((one) => one.low && !one.off)) {
      ctx.fillStyle = colourOf(line);
      for (const part of bandParts(data[0], line)) {
        ctx.beginPath();
        part.forEach(([time, , high]) => ctx.lineTo(plot.valToPos(time, "x", true), plot.valToPos(high, "y", true)));
        part.reverse().forEach(([time, low]) => ctx.lineTo(plot.valToPos(time, "x", true), plot.valToPos(low, "y", true)));
        ctx.fill();
      }
    }
    ctx.restore();
  }
  // A band as runs of [time, least, greatest] without gaps.
  function bandParts(times, line) {
    const parts = [];
    let open = false;
    times.forEach((time, i) => {
      const known = Number.isFinite(line.low[i]) && Number.isFinite(line.high[i]);
      if (known && !open) parts.push([]);
      if (known) parts[parts.length - 1].push([time, line.low[i], line.high[i]]);
      open = known;
    });
    return parts;
  }

  // A plot that keeps the width of its box and the colours of the theme.
  function keep(plot, box, redrawn) {
    let waiting = 0;
    new ResizeObserver(() => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        const wanted = size(box);
        if (redrawn() === plot && wanted.width !== plot.width) plot.setSize(wanted);
      }, 60);
    }).observe(box);
    weir.onTheme(() => redrawn() === plot && plot.redraw(false, true));
  }

  return { el, num, axis, wideEnough, size, colourOf, dashOf, crosshair, keys, touch, room, keep, drawBands, bandParts };
})();

// A plot over time. `chart` is `{ key, title, unit, note, times, lines, spreads, shares }`; a line has a name, values and an ink or a
// colour of its own. Gives the card.
weir.timePlot = (group, chart) => {
  const { el, num, axis, wideEnough, size, colourOf, dashOf, crosshair, keys, touch, room, keep, drawBands, bandParts } = weir.plotParts;
  const { times, lines } = chart;
  // The greatest value of the bands that are shown.
  const bandTop = () => Math.max(-Infinity, ...lines.filter((line) => line.low && !line.off).flatMap((line) => line.high.filter((value, i) => Number.isFinite(value) && inside(i))));
  const inside = (i) => times[i] > group.shown()[0] && times[i] <= group.shown()[1];
  const box = el("div", { class: "plot", role: "img", "data-drawn": "false" });
  let plot = null;

  // The values as they are drawn. Stacked lines stand on those below them, which come after them; hidden ones take no room.
  const tops = () => {
    if (!chart.stacked) return lines.map((line) => line.values);
    let below = times.map(() => 0);
    return [...lines].reverse().map((line) => {
      const own = times.map((_, i) => (line.off ? below[i] : below[i] + (Number.isFinite(line.values[i]) ? line.values[i] : 0)));
      below = line.off ? below : own;
      return own;
    }).reverse();
  };
  const data = () => [times, ...tops()];

  // The description of a plot, in words.
  function words() {
    const [low, high] = group.shown();
    const said = lines.filter((line) => !line.off).slice(0, 8).map((line) => {
      const values = line.values.filter((value, i) => Number.isFinite(value) && inside(i));
      return values.length ? `${line.name}: mean ${num(weir.average(values))}, from ${num(Math.min(...values))} to ${num(Math.max(...values))}` : `${line.name}: nothing measured`;
    });
    return `${chart.title} in ${chart.unit} from ${weir.plain(low)} to ${weir.plain(high)} seconds. ${said.join("; ")}.`;
  }

  const buttons = lines.map((line, i) => {
    const button = el("button", { type: "button", "aria-pressed": String(!line.off), class: `line ${line.ink || ""}${line.dashed ? " dashed" : ""}${line.thin ? " thin" : ""}${line.cap ? " cap" : ""}` }, line.name);
    if (line.colour) button.style.setProperty("--own", line.colour());
    button.addEventListener("click", () => {
      line.off = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!line.off));
      plot.setSeries(i + 1, { show: !line.off });
      if (chart.stacked) plot.setData(data(), false);
      fill();
    });
    return button;
  });

  // The numbers of the visible lines, within the range that is shown.
  const details = el("details", { class: "data" }, el("summary", null, "Numbers of this plot"));
  const rowsOf = () => {
    const on = lines.filter((line) => !line.off);
    return [on, times.map((time, i) => [time, ...on.map((line) => line.values[i])]).filter((_, i) => inside(i))];
  };
  function fill() {
    box.setAttribute("aria-label", words());
    if (!details.open) return;
    const [on, rows] = rowsOf();
    const cell = (value) => el("td", { class: "n" }, Number.isFinite(value) ? num(value) : "");
    const over = (name, of) => el("tr", null, el("th", { scope: "row", class: "n" }, name), on.map((_, i) => {
      const values = rows.map((row) => row[i + 1]).filter(Number.isFinite);
      return cell(values.length ? of(values) : NaN);
    }));
    const head = el("tr", null, el("th", { scope: "col", class: "n" }, "time, s"), on.map((line) => el("th", { scope: "col", class: "n" }, `${line.name}, ${chart.unit}`)));
    const table = el("table", null, el("thead", null, head), el("tbody", { class: "over" }, over("mean", weir.average), over("least", (v) => Math.min(...v)), over("most", (v) => Math.max(...v))),
      el("tbody", null, rows.map(([time, ...values]) => el("tr", null, el("th", { scope: "row", class: "n" }, String(time)), values.map(cell)))));
    details.replaceChildren(details.firstChild, el("div", { class: "scroll tall", role: "region", tabindex: 0, "aria-label": `Numbers of ${chart.title}` }, table));
  }
  details.addEventListener("toggle", fill);
  let later = 0;
  group.follow(() => {
    clearTimeout(later);
    later = setTimeout(fill, 60);
  });

  const label = `${chart.title.split(": ").pop().split(",")[0].toLowerCase()}, ${chart.unit}`;
  const drawing = () => {
    const [low, high] = group.shown();
    const stack = tops();
    const ground = times.map(() => 0);
    // A stacked line is drawn as the band between it and the one below.
    const on = lines.map((line, i) => (chart.stacked ? { ...line, values: stack[i], low: stack.slice(i + 1).find((_, j) => !lines[i + 1 + j].off) || ground, high: stack[i] } : line)).filter((line) => !line.off);
    const most = Math.max(bandTop(), ...on.flatMap((line) => line.values.filter((value, i) => Number.isFinite(value) && inside(i))));
    const least = Math.min(0, ...on.flatMap((line) => line.values.filter((value, i) => Number.isFinite(value) && inside(i))));
    const [bottom, top] = room(least, Number.isFinite(most) ? most : 1);
    return weir.save.drawLines({ title: `${chart.title}, ${chart.unit}`, x: { label: "time, s", low, high }, y: { label, low: bottom, high: top },
      lines: on.map((line) => ({ name: line.name, colour: colourOf(line), dash: dashOf(line), width: line.thin ? 1 : 2, points: times.map((time, i) => [time, line.values[i]]), bands: line.low ? bandParts(times, line) : [] })) });
  };
  const csv = () => {
    const on = lines.filter((line) => !line.off);
    const columns = on.flatMap((line) => [["", line.values], ...(line.low ? [[", least", line.low], [", greatest", line.high]] : [])].map(([part, values]) => [`${line.name}${part} (${chart.unit})`, values]));
    return [["time_s", ...columns.map(([name]) => name)], ...times.map((time, i) => [time, ...columns.map(([, values]) => values[i])]).filter((_, i) => inside(i))];
  };

  const caption = el("figcaption", null, el("h3", null, chart.title, el("span", { class: "quiet" }, ` ${chart.unit}`)), weir.save.buttons(chart.title, drawing, csv), chart.note ? el("p", { class: "quiet" }, chart.note) : null);
  const legend = el("div", { class: "lines", role: "group", "aria-label": `Lines of ${chart.title}` }, buttons);
  const spread = (chart.spreads || []).length ? weir.spreadPlot(chart, group.cut) : null;
  const parts = lines.length ? el("div", { class: "over-time" }, legend, box, details) : null;
  const card = el("figure", { class: "card", "data-key": chart.key }, caption, el("div", { class: "pair" + (spread && parts ? " both" : "") }, parts, spread && spread.node));

  function draw() {
    if (spread) spread.draw();
    if (!parts) return;
    const tip = crosshair((plot) => `${weir.plain(+times[plot.cursor.idx].toPrecision(6))} s`, (plot) => lines.filter((line) => !line.off && Number.isFinite(line.values[plot.cursor.idx])).map((line) => {
      const value = line.values[plot.cursor.idx];
      return [line, weir.withUnit(value, chart.unit), value];
    }));
    plot = group.join(() => new uPlot({
      ...size(box),
      legend: { show: false },
      padding: [8, 18, 0, 0],
      cursor: { sync: { key: group.key, setSeries: false }, drag: { x: true, y: false }, points: { size: 6 } },
      scales: { x: { time: false, range: (_, low, high) => [low === times[0] ? 0 : low, high] }, y: { range: (_, low, high) => room(low, high === null ? null : Math.max(high, bandTop())) } },
      axes: [axis({ label: "time, s", labelSize: 18, size: 30 }), axis({ label, labelSize: 18, size: wideEnough, values: (_, list) => list.map((value) => (value === null ? "" : weir.short(value))) })],
      series: [{}, ...lines.map((line) => ({
        label: line.name, show: !line.off, stroke: () => colourOf(line), width: line.thin ? 1 : 2, alpha: line.thin ? 0.75 : 1, dash: dashOf(line), points: { show: false }, spanGaps: Boolean(chart.joined), ...(chart.stacked ? { fill: () => colourOf(line) } : {}),
      }))],
      hooks: {
        init: tip.init,
        drawClear: [(plot) => weir.shade(plot, group.cut)],
        drawAxes: [(plot) => drawBands(plot, lines)],
        draw: [(plot) => {
          weir.markEvents(plot, group.events, true);
          const any = lines.some((line) => line.values.some((value) => Number.isFinite(value)));
          if (any && plot.bbox.width > 0) box.dataset.drawn = "true";
        }],
        setScale: [(plot, key) => {
          if (key === "x") group.zoom(plot.scales.x.min, plot.scales.x.max);
        }],
        setCursor: tip.setCursor,
      },
    }, data(), box));
    touch(plot, group.zoom);
    keys(plot, box);
    keep(plot, box, () => plot);
    fill();
  }
  return { node: card, draw, gone: () => plot && group.leave(plot) };
};

// The distribution of a chart's values: for each line, the share of values at or below each value. The scale of values may be
// logarithmic; zeros are then not shown.
weir.spreadPlot = (chart, cut) => {
  const { el, num, axis, wideEnough, size, colourOf, dashOf, crosshair, keys, touch, room, keep } = weir.plotParts;
  void touch, room;
  const { shares } = chart;
  const box = el("div", { class: "plot", role: "img", "data-drawn": "false" });
  let log = false;
  let plot = null;
  const lines = chart.spreads;
  // The share at or below a value, in percent.
  const shareAt = (line, value) => {
    const after = line.values.findIndex((known) => known > value);
    if (after === 0) return 0;
    if (after < 0) return 100;
    const [a, b] = [line.values[after - 1], line.values[after]];
    return 100 * (shares[after - 1] + (shares[after] - shares[after - 1]) * ((value - a) / (b - a)));
  };
  // A deadline, which values should not exceed, is a dashed line of the same colour.
  const limits = lines.filter((line) => Number.isFinite(line.limit));
  const atLimit = (line) => `; ${num(shareAt(line, line.limit))} % within the deadline of ${weir.withUnit(line.limit, chart.unit)}`;
  const told = lines.map((line) => `${line.name}: half at or below ${num(line.values[shares.indexOf(0.5)])}, 99 % at or below ${num(line.values[shares.indexOf(0.99)])}, of ${weir.count(line.count)} values${limits.includes(line) ? atLimit(line) : ""}`);
  box.setAttribute("aria-label", `Distribution of ${chart.title} in ${chart.unit}. ${told.join("; ")}.`);

  // Points with ascending values: if several shares have the same value, the largest share. Where all values are equal, the line
  // rises at that value.
  const pointsOf = (line) => {
    const points = [];
    line.values.forEach((value, i) => {
      if (log && !(value > 0)) return;
      if (points.length && points[points.length - 1][0] === value) points[points.length - 1][1] = 100 * shares[i];
      else points.push([value, 100 * shares[i]]);
    });
    if (points.length !== 1) return points;
    const [[value]] = points;
    return value > 0 ? [[value * (1 - 1e-6), 0], [value, 100]] : [[value, 100], [value + 1, 100]];
  };
  const toggle = el("button", { type: "button", class: "scale", "aria-pressed": "false", title: "Logarithmic scale of values", onclick: () => {
    log = !log;
    toggle.setAttribute("aria-pressed", String(log));
    draw();
  } }, "log");
  const drawing = () => {
    const points = lines.map(pointsOf);
    const all = [...points.flat().map(([value]) => value), ...limits.map((line) => line.limit)];
    const high = Math.max(...all) || 1;
    const low = log ? Math.min(...all) : Math.min(0, ...all);
    return weir.save.drawLines({ title: `Distribution of ${chart.title}`, x: { label: `${chart.title}, ${chart.unit}`, low, high: high > low ? high : low + 1, log }, y: { label: "at or below, %", low: 0, high: 100 },
      lines: [...lines.map((line, i) => ({ name: line.name, colour: colourOf(line), dash: dashOf(line), width: 2, points: points[i] })),
        ...limits.map((line) => ({ name: `${line.name}: deadline`, colour: colourOf(line), dash: [6, 4], width: 1, points: [[line.limit, 0], [line.limit, 100]] }))] });
  };
  const csv = () => [["share", ...lines.map((line) => `${line.name} (${chart.unit})`)], ...shares.map((share, i) => [share, ...lines.map((line) => line.values[i])])];
  const legend = chart.lines && chart.lines.length ? null : el("div", { class: "lines still" }, lines.map((line) => {
    const key = el("span", { class: "line " + (line.ink || "") }, line.name);
    if (line.colour) key.style.setProperty("--own", line.colour());
    return key;
  }));
  const node = el("div", { class: "spread" }, el("div", { class: "bar" }, el("h4", null, cut > 0 ? "Distribution after the warm-up" : "Distribution"), toggle, weir.save.buttons("distribution of " + chart.title, drawing, csv)), legend, box);

  function drawLimits(plot) {
    const { ctx, bbox } = plot;
    for (const line of limits) {
      const at = Math.round(plot.valToPos(line.limit, "x", true));
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colourOf(line);
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
      ctx.stroke();
      ctx.font = `${12 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
      ctx.textAlign = at > bbox.left + bbox.width / 2 ? "right" : "left";
      ctx.fillText("deadline", at + (ctx.textAlign === "right" ? -5 : 5) * devicePixelRatio, bbox.top + bbox.height - 8 * devicePixelRatio);
      ctx.restore();
    }
  }

  function draw() {
    if (plot) plot.destroy();
    const data = uPlot.join(lines.map((line) => {
      const points = pointsOf(line);
      return [points.map((point) => point[0]), points.map((point) => point[1])];
    }));
    const tip = crosshair((plot) => weir.withUnit(plot.posToVal(plot.cursor.left, "x"), chart.unit), (plot) => lines.map((line) => {
      const share = shareAt(line, plot.posToVal(plot.cursor.left, "x"));
      return [line, `${num(share)} % at or below`, share];
    }));
    plot = new uPlot({
      ...size(box),
      legend: { show: false },
      padding: [8, 18, 0, 0],
      cursor: { drag: { x: true, y: false }, points: { show: false } },
      scales: { x: { time: false, distr: log ? 3 : 1, range: (_, low, most) => {
        const high = Math.max(most, ...limits.map((line) => line.limit));
        return log ? [low, high > low ? high : low * 2] : [Math.min(0, low), high || 1];
      } }, y: { range: () => [0, 100] } },
      axes: [axis({ label: `${chart.title.split(",")[0].toLowerCase()}, ${chart.unit}`, labelSize: 18, size: 30, values: (_, list) => list.map((value) => (value === null ? "" : weir.short(value))) }),
        axis({ label: "at or below, %", labelSize: 18, size: wideEnough })],
      series: [{}, ...lines.map((line) => ({ label: line.name, stroke: () => colourOf(line), width: 2, dash: dashOf(line), points: { show: false }, spanGaps: true }))],
      hooks: {
        init: tip.init,
        setCursor: tip.setCursor,
        drawAxes: [drawLimits],
        draw: [(plot) => {
          if (plot.bbox.width > 0 && lines.some((line) => line.values.length)) box.dataset.drawn = "true";
        }],
      },
    }, data, box);
    keys(plot, box);
    const own = plot;
    keep(own, box, () => plot);
  }
  return { node, draw };
};

// Joins the charts of several runs: charts with the same key become one, on a common grid of times. Each source is
// `{ series: { p, n, charts }, shares, name(text), dashed, colour(line) }`; without `colour`, lines have their own inks.
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
      if (!charts.has(chart.k)) charts.set(chart.k, { key: chart.k, title: chart.t, unit: chart.u, note: chart.note, stacked: Boolean(chart.stack) && sources.length === 1, times, shares: shares || [], joined: !same, lines: [], spreads: [] });
      const all = charts.get(chart.k);
      const style = (line) => ({ name: name(line.n), plain: line.n, ink: line.i, dashed, ...(colour ? { colour: colour(line) } : {}) });
      for (const line of chart.lines) all.lines.push({ ...style(line), thin: line.thin, cap: line.cap, off: Boolean(line.off), values: onGrid(which, line.v), ...(line.low ? { low: onGrid(which, line.low), high: onGrid(which, line.high) } : {}) });
      for (const line of chart.d || []) all.spreads.push({ ...style(line), count: line.c, limit: line.limit, values: line.v });
    }
  });
  return [...charts.values()];
};
