// Saves plots as drawings (SVG), as pixels (PNG) and as tables (CSV). A figure is plain data, drawn again here with its title,
// legend and axes, so that a saved file explains itself.
"use strict";
weir.save = (() => {
  const { el, ticks } = weir;
  const [WIDTH, HEIGHT] = [900, 440];

  function download(name, blob) {
    const link = el("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  const named = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "") || "plot";
  const text = (svg) => '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(svg);

  function png(svg, name) {
    const [width, height] = ["width", "height"].map((side) => +svg.getAttribute(side));
    const picture = new Image();
    picture.onload = () => {
      const canvas = el("canvas", { width: 2 * width, height: 2 * height });
      canvas.getContext("2d").drawImage(picture, 0, 0, 2 * width, 2 * height);
      canvas.toBlob((blob) => download(name + ".png", blob), "image/png");
    };
    picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text(svg));
  }

  // A field of a CSV file (RFC 4180).
  const field = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replace(/"/g, '""')}"` : String(value ?? ""));
  const csvOf = (rows) => rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";

  // The buttons of a plot. `drawing()` gives an SVG element with all its colours in it, `rows()` a table with a heading row.
  function buttons(title, drawing, rows) {
    const name = named(title);
    const kinds = {
      PNG: () => png(drawing(), name),
      SVG: () => download(name + ".svg", new Blob([text(drawing())], { type: "image/svg+xml" })),
      CSV: () => download(name + ".csv", new Blob([csvOf(rows())], { type: "text/csv" })),
    };
    return el("div", { class: "save", role: "group", "aria-label": `Save ${title}` }, el("span", { class: "quiet" }, "Save"),
      Object.entries(kinds).map(([kind, save]) => el("button", { type: "button", onclick: save, "aria-label": `Save ${title} as ${kind}` }, kind)));
  }

  // A figure of lines: `{ title, unit, x: { label, low, high, log }, y: { label, low, high }, lines: [{ name, colour, dash, width, points, bands }] }`; a
  // band is a list of [x, least, greatest].
  function drawLines({ title, x, y, lines }) {
    const font = getComputedStyle(document.body).fontFamily;
    const [ink, quiet, grid] = ["ink", "quiet", "grid"].map(weir.colour);
    const svg = el("svg", { xmlns: "http://www.w3.org/2000/svg", width: WIDTH, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "font-family": font, "font-size": 13 });
    const [left, right, top] = [70, WIDTH - 20, 40];
    // The legend, in as many rows as needed.
    const keys = [];
    let [at, row] = [left, 0];
    for (const line of lines) {
      const wide = 34 + 7.2 * line.name.length;
      if (at + wide > right && at > left) [at, row] = [left, row + 1];
      keys.push([line, at, row]);
      at += wide;
    }
    const bottom = HEIGHT - 50;
    const height = HEIGHT + 20 * (row + 1);
    svg.setAttribute("height", height);
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    const log = x.log && x.low > 0;
    const across = (value) => left + (right - left) * (log ? Math.log(value / x.low) / Math.log(x.high / x.low) : (value - x.low) / (x.high - x.low));
    const up = (value) => bottom - (bottom - top) * ((value - y.low) / (y.high - y.low || 1));
    const word = (attributes, words) => el("text", { fill: quiet, ...attributes }, words);
    svg.append(el("rect", { width: WIDTH, height, fill: weir.colour("card") }), word({ x: left, y: 24, fill: ink, "font-size": 16, "font-weight": 600 }, title));
    const decades = () => Array.from({ length: 24 }, (_, i) => 10 ** (i - 12)).filter((value) => value >= x.low && value <= x.high);
    for (const tick of log ? decades() : ticks(x.low, x.high, 8)) {
      svg.append(el("line", { x1: across(tick), x2: across(tick), y1: top, y2: bottom, stroke: grid }), word({ x: across(tick), y: bottom + 18, "text-anchor": "middle" }, weir.plain(tick)));
    }
    for (const tick of ticks(y.low, y.high, 6)) {
      svg.append(el("line", { x1: left, x2: right, y1: up(tick), y2: up(tick), stroke: grid }), word({ x: left - 8, y: up(tick) + 4, "text-anchor": "end" }, weir.plain(tick)));
    }
    svg.append(word({ x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, x.label), word({ transform: `translate(16 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, y.label));
    const within = ([a]) => a >= x.low && a <= x.high;
    for (const { colour, bands } of lines) {
      for (const band of (bands || []).map((band) => band.filter(within)).filter((band) => band.length)) {
        const at = (a, b) => `${across(a).toFixed(1)} ${Math.max(top, up(b)).toFixed(1)}`;
        const path = [...band.map(([a, , high]) => at(a, high)), ...band.slice().reverse().map(([a, low]) => at(a, low))].join("L");
        svg.append(el("path", { d: `M${path}Z`, fill: colour, "fill-opacity": 0.16 }));
      }
    }
    for (const { colour, dash, width, points } of lines) {
      let path = "";
      let pen = false;
      for (const [a, b] of points) {
        const seen = Number.isFinite(b) && a >= x.low && a <= x.high;
        if (seen) path += `${pen ? "L" : "M"}${across(a).toFixed(1)} ${Math.max(top, up(b)).toFixed(1)}`;
        pen = seen;
      }
      svg.append(el("path", { d: path, fill: "none", stroke: colour, "stroke-width": width, "stroke-dasharray": dash ? dash.join(" ") : null, "stroke-linejoin": "round" }));
    }
    for (const [{ name, colour, dash, width }, from, row] of keys) {
      const y = HEIGHT + 4 + 20 * row;
      svg.append(el("line", { x1: from, x2: from + 20, y1: y - 4, y2: y - 4, stroke: colour, "stroke-width": width + 0.5, "stroke-dasharray": dash ? dash.join(" ") : null }),
        word({ x: from + 26, y, fill: ink }, name));
    }
    return svg;
  }

  // A copy of a drawing on the page, with the values of the style sheet written into it.
  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-style", "font-weight", "text-anchor"];
  function copyOf(node) {
    const copy = node.cloneNode(true);
    const [from, to] = [node, copy].map((one) => [one, ...one.querySelectorAll("*")]);
    from.forEach((one, i) => {
      const style = getComputedStyle(one);
      STYLES.forEach((name) => to[i].setAttribute(name, style.getPropertyValue(name)));
      ["class", "style"].forEach((name) => to[i].removeAttribute(name));
    });
    return copy;
  }
  // Drawings of the page side by side, with a title above and the names of the colours below.
  function drawCopies(title, drawings, keys) {
    const width = Math.max(480, drawings.reduce((sum, one) => sum + +one.getAttribute("width"), 0) + 20);
    const height = Math.max(...drawings.map((one) => +one.getAttribute("height"))) + 44;
    const svg = el("svg", { xmlns: "http://www.w3.org/2000/svg", width, height: height + 30, "font-family": getComputedStyle(document.body).fontFamily, "font-size": 12 });
    svg.append(el("rect", { width, height: height + 30, fill: weir.colour("card") }), el("text", { x: 12, y: 24, "font-size": 16, "font-weight": 600, fill: weir.colour("ink") }, title));
    let left = 10;
    for (const one of drawings) {
      const copy = copyOf(one);
      copy.setAttribute("x", left);
      copy.setAttribute("y", 40);
      svg.append(copy);
      left += +one.getAttribute("width");
    }
    let at = 14;
    for (const [name, colour] of keys) {
      svg.append(el("rect", { x: at, y: height + 8, width: 10, height: 10, fill: colour }), el("text", { x: at + 15, y: height + 17, fill: weir.colour("ink") }, name));
      at += 34 + 6.6 * name.length;
    }
    return svg;
  }

  // Figures of one kind in one drawing: two in each row, each with its own title, legend and axes.
  function drawGrid(drawings) {
    const tall = Math.max(...drawings.map((one) => +one.getAttribute("height")));
    const columns = Math.min(2, drawings.length);
    const [width, height] = [columns * WIDTH, Math.ceil(drawings.length / columns) * tall];
    const svg = el("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` });
    drawings.forEach((one, i) => {
      one.setAttribute("x", (i % columns) * WIDTH);
      one.setAttribute("y", Math.floor(i / columns) * tall);
      svg.append(one);
    });
    return svg;
  }

  return { buttons, drawLines, drawCopies, drawGrid, csvOf };
})();
