// Functions of all pages: the theme, elements, numbers as text, and the calls in the data's scripts (`weir.lab` in lab.js,
// `weir.run` in a run's own script, `weir.page` in a piece of a large lab): a page that is opened from disk may fetch nothing
// but scripts.
"use strict";
const weir = (() => {
  const runs = new Map();
  const pages = new Map();
  let showLab = null;
  let themeChanged = [];

  function lab(head, list) {
    showLab(head, list);
  }
  function run(name, data) {
    for (const { n, charts } of [data, data.flows].filter(Boolean)) {
      for (const { v } of charts.flatMap((chart) => chart.lines)) fill(v, n);
    }
    const { overlay } = data;
    if (overlay) {
      const own = [...overlay.nodes.flatMap((node) => [node.real, node.zombies, ...node.bins.flatMap((bin) => [bin.real, bin.zombies, bin.told])]), ...overlay.links.flatMap((link) => [link.cap, link.load]), ...overlay.flows.flatMap((flow) => flow.links.map((link) => link.load))];
      own.forEach((values) => fill(values, overlay.n));
    }
    runs.set(name, data);
  }
  // Puts back the values of a line that were left out since they are equal to those before them.
  function fill(values, count) {
    for (let i = 1; i < count; i++) if (!(i in values)) values[i] = values[i - 1];
  }
  function page(name, data) {
    pages.set(name, data);
  }

  // Reads a metric of a run (`run`), its first pair of groups, a link, a class or a group by its name: `row.v` holds the values.
  // A distribution is [mean, p1, p25, p50, p75, p99].
  const STATS = ["mean", "p1", "p25", "p50", "p75", "p99"];
  function reader(head, kind) {
    const at = new Map(head.of[kind].map((name, i) => [name, i]));
    return (row, name) => (row ? row.v[at.get(name)] : undefined);
  }
  // The same as one number.
  const statistic = (value, name) => (Array.isArray(value) ? value[STATS.indexOf(name)] : value);

  // The page of a run of `lab.js`, or that of both engines, from the folder `report`.
  function pageOf(head, one, kind) {
    const id = encodeURIComponent(one.id);
    return head.piece ? `run.html#${Math.floor(one.k / head.piece)}/${kind}/${id}` : `${kind}/${id}.html`;
  }

  // An element with attributes and children; text becomes text nodes, never markup.
  const SVG = "http://www.w3.org/2000/svg";
  const svgTags = new Set(["svg", "g", "path", "rect", "line", "circle", "text", "title", "a-svg"]);
  function el(tag, attributes, ...children) {
    const svg = svgTags.has(tag);
    const node = svg ? document.createElementNS(SVG, tag.replace("-svg", "")) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat()) {
      if (child !== null && child !== undefined) node.append(child);
    }
    return node;
  }

  // A number with the same digits as in the tables: three significant ones.
  function num(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size >= 99.95) return value.toFixed(0);
    if (size >= 9.995) return value.toFixed(1);
    if (size >= 0.995) return value.toFixed(2);
    if (size >= 0.0995) return value.toFixed(3);
    if (size >= 0.00095) return value.toFixed(4);
    return size === 0 ? "0" : "< 0.001";
  }
  // A number, its unit and the factor by which it was multiplied: values below a hundredth of the unit are in a smaller one.
  const SMALLER = { s: "ms", ms: "µs", "µs": "ns", "Mbit/s": "kbit/s", "kbit/s": "bit/s" };
  function inUnit(value, unit) {
    let [factor, its] = [1, unit];
    while (Math.abs(value * factor) > 0 && Math.abs(value * factor) < 0.00995 && SMALLER[its]) [factor, its] = [factor * 1000, SMALLER[its]];
    return [num(value * factor), its, factor];
  }
  const withUnit = (value, unit) => inUnit(value, unit).slice(0, 2).join(" ").trim();

  // Half an interval, with two digits.
  const half = (value) => (value > 0 && value < 99.5 ? (value < 0.00095 ? "< 0.001" : value.toFixed(Math.max(0, 1 - Math.floor(Math.log10(value) + 1e-9)))) : num(value));

  // A number for an axis or a field: as short as possible, never with an exponent.
  function plain(value) {
    const size = Math.abs(value);
    if (!(size > 0)) return "0";
    return size >= 1e-4 && size < 1e15 ? String(+value.toPrecision(6)) : value.toFixed(Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(size)))));
  }
  function short(value) {
    const size = Math.abs(value);
    if (size >= 1e9) return plain(value / 1e9) + "G";
    if (size >= 1e6) return plain(value / 1e6) + "M";
    if (size >= 1e4) return plain(value / 1e3) + "k";
    return plain(value);
  }
  // A count with a thin space between its thousands, as in the tables.
  const count = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  // The number in a cell of a table; NaN if there is none.
  const numberIn = (cell) => (cell.textContent ? parseFloat(cell.textContent.replace(/[^\d.eE+-]/g, "")) : NaN);
  const average = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);

  // Student's t at 97.5 %, by degrees of freedom; above thirty the value at thirty, which is a little large.
  const T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101,
    2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042];
  // The mean of some values and half the length of its 95 % interval, null for fewer than two.
  function mean(values) {
    const count = values.length;
    if (!count) return { count, mean: null, half: null };
    const mean = values.reduce((sum, value) => sum + value, 0) / count;
    if (count < 2) return { count, mean, half: null };
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1);
    return { count, mean, half: T[Math.min(count - 1, T.length) - 1] * Math.sqrt(variance / count) };
  }

  // A level's short name: the last parts of its name, as many as make it unique.
  function levelName(head, level) {
    const parts = head.levels[level].split(".");
    const last = (n) => parts.slice(-n).join(".");
    const own = parts.findIndex((_, n) => head.levels.every((other) => other === head.levels[level] || !("." + other).endsWith("." + last(n + 1))));
    return last(own + 1 || parts.length);
  }
  // The choices of a run or cell, in words.
  const engineName = { sim: "simulator", live: "live Linux" };
  const labelOf = (head, one) => [...one.p.map((v, level) => `${levelName(head, level)} ${head.values[level][v]}`), ...(head.engines.length > 1 ? [engineName[head.engines[one.e]] || head.engines[one.e]] : [])].join(" · ") || head.lab;

  // Shades the warm-up, which metrics leave out.
  function shade(plot, cut) {
    const { left, top, width, height } = plot.bbox;
    const right = Math.min(plot.valToPos(cut, "x", true), left + width);
    if (!(cut > 0) || right <= left) return;
    plot.ctx.save();
    plot.ctx.fillStyle = colour("shade");
    plot.ctx.fillRect(left, top, right - left, height);
    plot.ctx.restore();
  }
  // The changes within the run: a dashed line at each time, with its text if that is asked for and there is room.
  function markEvents(plot, events, words) {
    const { left, top, width, height } = plot.bbox;
    const scale = window.devicePixelRatio || 1;
    plot.ctx.save();
    plot.ctx.strokeStyle = plot.ctx.fillStyle = colour("open");
    plot.ctx.lineWidth = scale;
    plot.ctx.setLineDash([4 * scale, 3 * scale]);
    plot.ctx.font = `${11 * scale}px ${getComputedStyle(document.body).fontFamily}`;
    plot.ctx.textAlign = "left";
    plot.ctx.textBaseline = "top";
    const ends = [];
    for (const [at, what] of events) {
      const x = plot.valToPos(at, "x", true);
      if (x < left || x > left + width) continue;
      plot.ctx.beginPath();
      plot.ctx.moveTo(x, top);
      plot.ctx.lineTo(x, top + height);
      plot.ctx.stroke();
      if (!words) continue;
      const wide = plot.ctx.measureText(what).width + 6 * scale;
      const start = Math.max(left, Math.min(x + 3 * scale, left + width - wide));
      const line = ends.findIndex((end) => end <= start);
      const place = line < 0 ? ends.length : line;
      if (place > 3) continue;
      ends[place] = start + wide;
      plot.ctx.fillText(what, start, top + (2 + 13 * place) * scale);
    }
    plot.ctx.restore();
  }

  // A file name, encoded for a link.
  const href = (name) => encodeURIComponent(name);

  // Round steps from low to high, about `wanted` of them.
  function ticks(low, high, wanted) {
    if (!(high > low)) return [low];
    const raw = (high - low) / Math.max(1, wanted);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 2.5, 5, 10].find((m) => m * power >= raw * 0.999);
    const list = [];
    for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step) {
      list.push(Math.abs(value) < step * 1e-9 ? 0 : +value.toPrecision(12));
    }
    return list;
  }

  // The colour that a style sheet variable holds under the theme in force.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  // The shade number `place` of `count` shades of a colour, from darker to lighter.
  function tint(name, place, count) {
    const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    const own = parts(colour(name));
    const off = count > 1 ? (2 * place) / (count - 1) - 1 : 0;
    const other = parts(colour(off < 0 ? "ink" : "paper"));
    const part = Math.abs(off) * (off < 0 ? 0.6 : 0.5);
    return `rgb(${own.map((value, i) => Math.round(value + (other[i] - value) * part)).join(" ")})`;
  }

  // Tables whose headings sort their rows: first by descending numbers or ascending words, then in reverse order.
  function sortable(table) {
    const head = table.tHead.rows[0];
    [...head.cells].forEach((cell) => {
      const button = el("button", { type: "button" }, cell.textContent);
      cell.replaceChildren(button);
      button.addEventListener("click", () => {
        const column = [...head.cells].indexOf(cell);
        const number = cell.classList.contains("n");
        const down = cell.getAttribute("aria-sort") ? cell.getAttribute("aria-sort") !== "descending" : number;
        [...head.cells].forEach((other) => other.removeAttribute("aria-sort"));
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        const worth = (row) => (number ? numberIn(row.cells[column]) : row.cells[column].textContent);
        const rows = [...table.tBodies[0].rows].map((row) => [worth(row), row]);
        const order = number ? (a, b) => a - b : (a, b) => a.localeCompare(b, undefined, { numeric: true });
        // Rows without a number stay at the bottom in both orders.
        rows.sort(([a], [b]) => (number && !Number.isFinite(a) ? (Number.isFinite(b) ? 1 : 0) : number && !Number.isFinite(b) ? -1 : down ? order(b, a) : order(a, b)));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    });
  }
  const sortAll = (host) => host.querySelectorAll("table.sorts").forEach(sortable);
  document.addEventListener("DOMContentLoaded", () => sortAll(document));

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  function setUpTheme() {
    const button = document.getElementById("theme");
    const name = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", "Switch to " + (isDark() ? "light" : "dark") + " colours");
    };
    const changed = () => {
      name();
      themeChanged.forEach((call) => call());
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      const theme = isDark() ? "light" : "dark";
      document.documentElement.dataset.theme = theme;
      // A browser may refuse storage to pages from disk; then the theme lasts as long as the page is open.
      try {
        localStorage.setItem("weir-theme", theme);
      } catch (refused) {
        void refused;
      }
      changed();
    });
    dark.addEventListener("change", changed);
    name();
  }
  setUpTheme();

  return {
    lab, run, fill, runs, page, pages, reader, statistic, STATS, pageOf, el, num, half, inUnit, withUnit, plain, short, count, numberIn, average, mean, tint, sortAll, levelName, engineName, labelOf, shade, markEvents, href, ticks, colour,
    onLab: (call) => (showLab = call),
    onTheme: (call) => themeChanged.push(call),
  };
})();
