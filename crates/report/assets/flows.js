// Single flows: found by name or by rank, chosen in their table, and drawn over time. A flow has a colour of its own if all are of
// one group, else a shade of its group's colour.
"use strict";
weir.flows = (host, group, runs, lineName) => {
  const { el } = weir;
  const SOME = 12;
  const RANKED = 5;
  const known = runs.filter((run) => run.flows && run.flows.charts.length);
  const table = host.querySelector("table");
  if (!known.length && !table) return;
  const charts = weir.gather(runs.map((run, which) => ({ series: run.flows || { p: run.p, n: 0, charts: [] }, name: (name) => lineName(name, which), dashed: which > 0 })));
  const names = [...new Set(charts.flatMap((chart) => chart.lines.map((line) => line.plain)))];
  host.prepend(el("h2", null, names.length > 1 ? `Single flows` : "The flow"));
  if (!names.length) return;

  // Colours: a flow's index in its group, the same in every plot.
  const inks = new Map(charts.flatMap((chart) => chart.lines.map((line) => [line.plain, line.ink])));
  const members = new Map();
  inks.forEach((ink, name) => members.set(ink, [...(members.get(ink) || []), name]));
  const colour = (name) => {
    const ink = inks.get(name);
    const own = members.get(ink);
    if (members.size === 1 && own.length <= 8) return () => weir.colour("g" + own.indexOf(name));
    // Shades are of the drawn flows only: among all forty flows of a group, neighbours would look the same.
    const drawn = own.filter((one) => picked.has(one));
    return () => weir.tint(ink, drawn.indexOf(name), drawn.length);
  };

  const picked = new Set(names.slice(0, SOME));
  const rows = table ? [...table.tBodies[0].rows] : [];
  const rowOf = new Map(rows.map((row) => [row.cells[0].textContent, row]));
  const boxes = new Map();
  const plots = el("div", { class: "inside" });
  const said = el("p", { class: "quiet", role: "status" });

  // The table: a box for each flow that has series, and a field that finds flows by name or group.
  if (table) {
    table.tHead.rows[0].prepend(el("th", { scope: "col" }, "draw"));
    for (const row of rows) {
      const name = row.cells[0].textContent;
      const box = inks.has(name) ? el("input", { type: "checkbox", "aria-label": `Draw ${name}`, onchange: () => {
        if (box.checked) picked.add(name);
        else picked.delete(name);
        draw();
      } }) : null;
      if (box) boxes.set(name, box);
      const cell = row.insertCell(0);
      if (box) cell.append(box);
    }
  }
  const find = el("input", { type: "search", autocomplete: "off", placeholder: "name or group", "aria-label": "Find flows", oninput: () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  } });
  // The columns of numbers, by which flows are ranked.
  const columns = table ? [...table.tHead.rows[0].cells].map((cell, i) => [i, cell.textContent]).filter(([i]) => table.tHead.rows[0].cells[i].classList.contains("n")) : [];
  const by = el("select", { "aria-label": "Rank flows by" }, columns.map(([i, name]) => el("option", { value: i }, name)));
  function rank(sign) {
    const column = +by.value;
    const worth = (name) => weir.numberIn(rowOf.get(name).cells[column]);
    const ranked = names.filter((name) => rowOf.has(name) && Number.isFinite(worth(name))).sort((a, b) => sign * (worth(b) - worth(a)));
    choose(ranked.slice(0, RANKED));
  }
  function choose(list) {
    picked.clear();
    list.forEach((name) => picked.add(name));
    draw();
  }
  const button = (text, call) => el("button", { type: "button", onclick: call }, text);
  const matching = () => names.filter((name) => !rowOf.has(name) || !rowOf.get(name).hidden);
  if (names.length > 2 && table) {
    host.querySelector(".scroll").classList.add("tall");
    host.querySelector("h2").after(el("div", { class: "flow-tools" }, el("label", { class: "find" }, "Find ", find), button("Draw the flows found", () => choose(matching().slice(0, 60))), el("label", null, "Rank by ", by),
      button(`Top ${RANKED}`, () => rank(1)), button(`Bottom ${RANKED}`, () => rank(-1)), button("First " + Math.min(SOME, names.length), () => choose(names.slice(0, SOME))), button("None", () => choose([]))));
  }
  host.append(said, plots);

  let drawn = [];
  function draw() {
    boxes.forEach((box, name) => (box.checked = picked.has(name)));
    said.textContent = names.length > 2 || !picked.size ? `${picked.size} of ${names.length} flows are drawn.` : "";
    drawn.forEach((plot) => plot.gone());
    drawn = [];
    plots.replaceChildren();
    for (const chart of charts) {
      const lines = chart.lines.filter((line) => picked.has(line.plain)).map((line) => ({ ...line, colour: colour(line.plain), off: false, thin: picked.size > 8 }));
      if (!lines.length) continue;
      const plot = weir.timePlot(group, { ...chart, lines });
      plots.append(plot.node);
      plot.draw();
      drawn.push(plot);
    }
  }
  draw();
};
