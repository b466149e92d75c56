// The overlay of a run: its topology at a time that a slider chooses, with the load of each link as a width and the depths of each node
// as bars; the paths of one flow; and the bins of one node. Everything that is drawn is also in a table or a sentence.
"use strict";
weir.topology = (host, group, run) => {
  const { el, num } = weir;
  const overlay = run.overlay;
  const { nodes, links, flows } = overlay;
  const times = Array.from({ length: overlay.n }, (_, i) => +((i + 1) * overlay.p).toPrecision(9));
  const value = (values, i) => (Number.isFinite(values[i]) ? values[i] : 0);
  const most = (lists) => Math.max(0, ...lists.map((values) => values.reduce((a, b) => (b > a ? b : a), 0)));
  const widest = most(links.flatMap((link) => [link.cap.filter((cap) => cap < 1e5), link.load])) || 1;
  const deepest = most(nodes.flatMap((node) => [node.real, node.zombies])) || 1;
  const nameOf = (link) => `${nodes[link.e[0]].n} > ${nodes[link.e[1]].n}`;
  const bytes = (count) => (count >= 1e6 ? `${num(count / 1e6)} MB` : count >= 1e3 ? `${num(count / 1e3)} kB` : `${num(count)} B`);
  const details = nodes.some((node) => node.bins.length);

  // What is chosen: a time, a flow or all packets, a node. At first the time is the middle of what the metrics are about.
  const from = times.findIndex((time) => time > run.w);
  let at = Math.floor(((from < 0 ? 0 : from) + times.length - 1) / 2);
  let flow = null;
  const mean = (values) => weir.average(values.filter(Number.isFinite)) || 0;
  let chosen = nodes.reduce((deep, node, i) => (mean(node.real) > mean(nodes[deep].real) ? i : deep), 0);

  const clock = () => `${times.length ? weir.plain(+times[at].toPrecision(5)) : 0} s`;

  // The rates of the links at a time: of all packets, or of the flow alone.
  function rates(i) {
    const carried = links.map((link) => (flow ? 0 : value(link.load, i)));
    for (const one of flow ? flow.links : []) carried[one.l] += value(one.load, i);
    return carried;
  }

  // A flow's paths from its node to one receiver, the widest first: each takes what it carries from its links (greedy decomposition of a
  // flow in paths). With several receivers packets part on the way, so that each receiver has paths of its own.
  function pathsTo(to, carried) {
    const left = carried.slice();
    const found = [];
    while (found.length < 8) {
      const width = nodes.map(() => 0);
      const by = nodes.map(() => -1);
      width[flow.from] = Infinity;
      const open = new Set(nodes.keys());
      while (open.size) {
        let node = -1;
        for (const one of open) if (node < 0 || width[one] > width[node]) node = one;
        open.delete(node);
        if (!(width[node] > 0)) break;
        links.forEach((link, l) => {
          const wide = Math.min(width[node], left[l]);
          if (link.e[0] === node && wide > width[link.e[1]]) [width[link.e[1]], by[link.e[1]]] = [wide, l];
        });
      }
      const rate = width[to];
      if (!(rate > 0.005 * (found.length ? found[0].rate : 0)) || !Number.isFinite(rate)) break;
      const path = [];
      for (let node = to; node !== flow.from; node = links[by[node]].e[0]) path.unshift(by[node]);
      path.forEach((l) => (left[l] -= rate));
      found.push({ rate, nodes: [flow.from, ...path.map((l) => links[l].e[1])] });
    }
    return found;
  }
  const spelled = ({ rate, nodes: path }) => `${path.map((node) => nodes[node].n).join(" > ")} (${weir.withUnit(rate, "Mbit/s")})`;

  // The sentences about a flow: at the chosen time, and on average after the warm-up.
  function said() {
    if (!flow) return "";
    const after = links.map((_, l) => {
      const one = flow.links.find((link) => link.l === l);
      const values = one ? one.load.filter((_, i) => times[i] > run.w) : [];
      return values.length ? weir.average(values.map((v) => v || 0)) : 0;
    });
    const of = (carried) => flow.to.map((to) => {
      const paths = pathsTo(to, carried);
      return `${flow.to.length > 1 ? `to ${nodes[to].n} by ` : ""}${paths.length ? paths.map(spelled).join(", ") : "nothing"}`;
    }).join("; ");
    return [`At ${clock()} ${flow.n} takes ${of(rates(at))}.`, `After the warm-up, on average: ${of(after)}.`,
      ...(flow.to.length > 1 ? ["Paths are read from what links carry of the flow. Packets for several receivers part on the way."] : [])];
  }

  const slider = el("input", { type: "range", min: 0, max: Math.max(0, times.length - 1), step: 1, value: at, "aria-label": "Time", oninput: () => {
    at = +slider.value;
    show();
  } });
  const shown = el("output", { class: "time" });
  const pick = (label, list, change) => el("label", null, `${label} `, el("select", { "aria-label": label, onchange: (event) => change(+event.target.value) }, list));
  const ofFlow = pick("Packets of", [el("option", { value: -1 }, "all flows"), ...flows.map((one, i) => el("option", { value: i }, one.n))], (i) => {
    flow = flows[i] || null;
    show();
  });
  const ofNode = pick("Bins of", nodes.map((node, i) => el("option", { value: i, selected: i === chosen }, node.n)), (i) => {
    chosen = i;
    show();
  });
  const box = el("div", { class: "topology" });
  const words = el("div", { class: "paths", role: "status" });
  const tables = el("div", { class: "inside" });
  const keys = el("div", { class: "lines still" }, el("span", { class: "line n0" }, "load (pale: capacity)"), el("span", { class: "line g0" }, "bytes of packets"), el("span", { class: "line n1" }, "virtual depth"));
  const drawing = () => weir.save.drawCopies(`${flow ? `Paths of ${flow.n}` : "Load and depths"} at ${num(times[at])} s`, [box.querySelector("svg")],
    [["load", weir.colour("n0")], ["bytes of packets", weir.colour("g0")], ["virtual depth", weir.colour("n1")]]);
  const csv = () => [["time_s", "from", "to", "capacity (Mbit/s)", `${flow ? flow.n : "load"} (Mbit/s)`],
    ...times.flatMap((time, i) => rates(i).map((rate, l) => [time, nodes[links[l].e[0]].n, nodes[links[l].e[1]].n, links[l].cap[i], rate]))];
  const figure = el("figure", { class: "card", "data-key": "topology" },
    el("figcaption", null, el("h3", null, "Load of links and depths of nodes"), weir.save.buttons("topology", drawing, csv),
      el("p", { class: "quiet" }, `A link is as wide as its load, on the pale ground of its capacity; each direction is on its right-hand side. The bars at a node are the bytes in its queues.${details ? "" : " With details = true in [overlay] the records have each bin, and the paths of each flow."}`)),
    el("div", { class: "levels at" }, el("label", { class: "slide" }, "Time ", slider, shown), flows.length ? ofFlow : null, details ? ofNode : null), keys, box, words, tables);
  host.append(figure);

  const [STROKE, BAR] = [9, 34];
  function draw() {
    const width = Math.max(240, box.clientWidth);
    const rows = Math.sqrt(nodes.length);
    const height = Math.round(Math.max(240, Math.min(620, 90 * rows + 60, 0.9 * width + 60)));
    const [side, top, bottom] = [44, BAR + 14, 30];
    const place = (node) => [side + node.x * (width - 2 * side), top + node.y * (height - top - bottom)];
    const carried = rates(at);
    const busiest = carried.map((rate, l) => [rate, l]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([rate]) => rate > 0);
    const deep = nodes.map((node, i) => [value(node.real, at), i]).sort((a, b) => b[0] - a[0])[0];
    const label = `${flow ? `Paths of ${flow.n}` : "Overlay"} at ${num(times[at])} seconds. ${busiest.length ? `Most on ${busiest.map(([rate, l]) => `${nameOf(links[l])}, ${weir.withUnit(rate, "Mbit/s")}`).join("; ")}` : "No link carries anything"}. Deepest node: ${nodes[deep[1]].n}, ${bytes(deep[0])} of packets.`;
    const svg = el("svg", { class: "topology", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    const thick = (rate) => (STROKE * Math.min(rate, widest)) / widest;
    const texts = [];
    links.forEach((link, l) => {
      const [[x1, y1], [x2, y2]] = link.e.map((end) => place(nodes[end]));
      const long = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [dx, dy] = [(x2 - x1) / long, (y2 - y1) / long];
      // On the right-hand side of the way there; the y axis points down.
      const ground = Math.max(1, thick(value(link.cap, at)));
      const wide = thick(carried[l]);
      const line = (kind, size, name) => {
        const off = 1.2 + size / 2;
        return el("line", { class: kind, x1: (x1 - dy * off).toFixed(1), y1: (y1 + dx * off).toFixed(1), x2: (x2 - dy * off).toFixed(1), y2: (y2 + dx * off).toFixed(1), "stroke-width": size.toFixed(2) }, name ? el("title", null, name) : null);
      };
      const name = `${nameOf(link)}: ${weir.withUnit(carried[l], "Mbit/s")} of ${weir.withUnit(value(link.cap, at), "Mbit/s")}`;
      svg.append(line("ground", ground, name));
      if (carried[l] > 0.002 * widest) {
        svg.append(line("load", Math.max(0.8, wide), name));
      }
      if (carried[l] > 0.02 * widest) {
        const off = 14 + ground / 2;
        texts.push({ x: (x1 + x2) / 2 - dy * off, y: (y1 + y2) / 2 + dx * off + 4, words: num(carried[l]), rank: -carried[l], kind: "rate" });
      }
    });
    nodes.forEach((node, i) => {
      const [x, y] = place(node);
      const bar = (values, kind, left, name) => {
        const tall = (BAR * value(values, at)) / deepest;
        return tall > 0.3 ? el("rect", { class: kind, x: x + left, y: y - 8 - tall, width: 6, height: tall }, el("title", null, `${node.n}: ${bytes(value(values, at))} ${name}`)) : null;
      };
      svg.append(...[bar(node.real, "real", -7, "of packets"), bar(node.zombies, "zombies", 1, "of virtual depth")].filter(Boolean),
        el("circle", { cx: x, cy: y, r: details && i === chosen ? 7 : 5, class: details && i === chosen ? "chosen" : null }, el("title", null, `${node.n}: ${bytes(value(node.real, at))} of packets, ${bytes(value(node.zombies, at))} of virtual depth`)));
      texts.push({ x, y: y + 20, words: node.n, rank: -Infinity, kind: "node" });
    });
    // Names and numbers that have room: names first, then the largest numbers.
    const taken = nodes.map((node) => place(node)).map(([x, y]) => [x - 8, y - 8, x + 8, y + 8]);
    for (const { x, y, words, kind } of texts.sort((a, b) => (a.rank === b.rank ? 0 : a.rank < b.rank ? -1 : 1))) {
      const half = 3.6 * words.length + 2;
      const mid = Math.min(Math.max(x, half), width - half);
      const own = [mid - half, y - 11, mid + half, y + 3];
      if (taken.some((other) => own[0] < other[2] && other[0] < own[2] && own[1] < other[3] && other[1] < own[3])) continue;
      taken.push(own);
      svg.append(el("text", { x: mid.toFixed(1), y: y.toFixed(1), class: kind }, words));
    }
    box.replaceChildren(svg);
  }

  const cell = (text) => el("td", { class: "n" }, text);
  function table(caption, head, rows) {
    return el("div", { class: "scroll tall", role: "region", tabindex: 0, "aria-label": caption }, el("table", null, el("caption", null, caption),
      el("thead", null, el("tr", null, head.map((text, i) => el("th", { scope: "col", class: i ? "n" : null }, text)))),
      el("tbody", null, rows.map(([name, ...cells]) => el("tr", null, el("th", { scope: "row" }, name), cells.map(cell))))));
  }
  function show() {
    shown.textContent = clock();
    slider.setAttribute("aria-valuetext", shown.textContent);
    draw();
    const sentences = said();
    words.replaceChildren(...(sentences ? sentences.map((text) => el("p", null, text)) : []));
    const carried = rates(at);
    const order = links.map((_, l) => l).filter((l) => !flow || carried[l] > 0).sort((a, b) => carried[b] - carried[a]);
    const of = (l) => (value(links[l].cap, at) > 0 ? num((100 * carried[l]) / value(links[l].cap, at)) : "–");
    tables.replaceChildren(table(`Links at ${shown.textContent}${flow ? `, packets of ${flow.n}` : ""}`, ["link", "carries, Mbit/s", "capacity, Mbit/s", "share, %"],
      order.map((l) => [nameOf(links[l]), num(carried[l]), num(value(links[l].cap, at)), of(l)])));
    const node = nodes[chosen];
    tables.append(details
      ? table(`Bins of ${node.n} at ${shown.textContent}`, ["for", "packets, bytes", "virtual, bytes", "as told, bytes"], node.bins.map((bin) => [bin.to, ...[bin.real, bin.zombies, bin.told].map((values) => weir.count(Math.round(value(values, at))))]))
      : table(`Nodes at ${shown.textContent}`, ["node", "packets, bytes", "virtual, bytes"], nodes.map((one) => [one.n, ...[one.real, one.zombies].map((values) => weir.count(Math.round(value(values, at))))])));
  }
  show();
  let waiting = 0;
  let wide = box.clientWidth;
  new ResizeObserver(() => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (box.clientWidth === wide) return;
      wide = box.clientWidth;
      draw();
    }, 60);
  }).observe(box);
};
