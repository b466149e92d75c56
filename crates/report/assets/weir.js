// What all pages share: the theme, the making of elements, the writing of numbers, and the calls by which data arrive
// (`weir.lab` from lab.js, `weir.run` from a run's own script, `weir.page` from a piece of a large lab), since a page opened
// from disk may fetch nothing.
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
    runs.set(name, data);
  }
  function page(name, data) {
    pages.set(name, data);
  }

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

  // The same digits as the tables: three that carry meaning.
  function num(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size >= 99.95) return value.toFixed(0);
    if (size >= 9.995) return value.toFixed(1);
    if (size >= 0.995) return value.toFixed(2);
    if (size >= 0.0995) return value.toFixed(3);
    if (size >= 0.001) return value.toFixed(4);
    return size === 0 ? "0" : value.toExponential(1);
  }

  // A file name, fit for a link.
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
      // A browser may refuse to keep anything for pages from disk; then the theme lasts as long as the page.
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
    lab, run, runs, page, pages, pageOf, el, num, href, ticks, colour,
    onLab: (call) => (showLab = call),
    onTheme: (call) => themeChanged.push(call),
  };
})();
