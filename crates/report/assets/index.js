// The index: the lab's tree as a table, a row a run. Up to a few hundred rows stand in the page as they are; of more, only
// those in sight are drawn, at a fixed height, so that five thousand open as quickly as fifty.
"use strict";
weir.onLab((head, all) => {
  const { el, num } = weir;
  const ALL_DRAWN = 150;
  const tree = document.getElementById("tree");
  const find = document.getElementById("find");
  const repeats = all.some((run) => run.n > 1);
  const levels = head.levels.concat(repeats ? ["repeat"] : []);
  const engines = head.engines.length > 1;
  const value = (run, level) => (level < head.levels.length ? head.values[level][run.p[level]] : "#" + run.n);
  const at = (run) => run.l.find((link) => link.i === run.b) || null;
  const engineName = { sim: "simulator", live: "live" };
  const text = all.map((run) =>
    [run.id, run.s, run.x ? "spoiled" : "", head.engines[run.e], ...levels.map((_, i) => value(run, i))].join(" ").toLowerCase());
  const ids = new Map();
  all.forEach((run) => ids.set(run.id, (ids.get(run.id) || 0) + 1));

  const columns = [
    ...levels.map((name, level) => ({ name, key: (run) => (level < head.levels.length ? run.p[level] : run.n) })),
    ...(engines ? [{ name: "engine", key: (run) => run.e }] : []),
    { name: "used", unit: "%", number: true, key: (run) => (at(run) || {}).u },
    { name: "goodput", unit: "Mbit/s", number: true, left: true, key: (run) => run.g.reduce((sum, group) => sum + (group[1] || 0), 0) },
    { name: "queue delay", unit: "ms", number: true, key: (run) => ((at(run) || {}).d || [])[0] },
    { name: "dropped", unit: "%", number: true, key: (run) => (at(run) || {}).dp },
    { name: "marked", unit: "%", number: true, key: (run) => (at(run) || {}).mp },
  ];
  let sort = null;
  let order = all.map((_, index) => index);

  const width = (level) => Math.min(22, Math.max(levels[level].length, ...(head.values[level] || ["#00"]).map((v) => v.length)) + 1);
  // Widths in the root's unit, so that the heading's smaller letters stand over their columns.
  const track = levels.map((_, i) => `minmax(2.5rem, ${0.62 * width(i)}rem)`).join(" ") + (engines ? " 5.4rem" : "");
  tree.style.setProperty("--columns", `${track} 4rem minmax(8rem, 1fr) 7rem 5.2rem 5.2rem`);
  tree.setAttribute("role", "table");
  tree.setAttribute("aria-label", "Runs");

  function heading() {
    const cells = columns.map((column, index) => {
      const sorted = sort && sort.index === index ? (sort.up ? "ascending" : "descending") : "none";
      const button = el("button", { type: "button", onclick: () => sortBy(index), title: "Sort by " + column.name },
        column.name, column.unit ? el("span", { class: "quiet" }, " " + column.unit) : null);
      return el("div", { role: "columnheader", class: column.number && !column.left ? "n" : null, "aria-sort": sorted }, button);
    });
    return el("div", { role: "row", class: "head" }, cells);
  }

  // A bar as long as the link: one stretch a group, the rest unused.
  function goodput(run) {
    const link = at(run);
    const sum = run.g.reduce((total, group) => total + (group[1] || 0), 0);
    const whole = Math.max(sum, (link && link.r) || 0) || 1;
    const parts = run.g.map((group) => el("span", {
      class: "g" + (group[0] % 8), style: `width:${(100 * (group[1] || 0)) / whole}%`, title: `${head.groups[group[0]]} ${num(group[1])} Mbit/s`,
    }));
    const few = run.g.length <= 4;
    const words = few ? run.g.map((group) => num(group[1])).join(" + ") : `${num(sum)} in ${run.g.length} groups`;
    const said = run.g.map((group) => `${head.groups[group[0]]} ${num(group[1])}`).join(", ");
    return [el("span", { class: "share", role: "img", "aria-label": said }, parts), el("span", { class: "under" }, words)];
  }

  function row(index, previous) {
    const run = all[index];
    const link = at(run) || {};
    const page = "report/" + weir.pageOf(head, run, head.engines[run.e]);
    const labels = levels.map((name, level) => {
      const same = previous && levels.slice(0, level + 1).every((_, i) => value(previous, i) === value(run, i));
      return el("div", { role: "cell", class: "level" + (same ? " same" : ""), "data-name": name }, value(run, level));
    });
    const both = engines && ids.get(run.id) > 1 && !head.growing;
    const delay = link.d ? [num(link.d[0]), el("span", { class: "under" }, "p99 " + num(link.d[5]))] : ["–"];
    const cells = [
      ...labels,
      el("div", { class: "break", "aria-hidden": "true" }),
      ...(engines ? [el("div", { role: "cell", class: "which" }, el("span", { class: "engine " + head.engines[run.e] }, engineName[head.engines[run.e]] || head.engines[run.e]))] : []),
      el("div", { role: "cell", class: "n", "data-name": "used, %" }, num(link.u)),
      el("div", { role: "cell", class: "goodput", "data-name": "goodput, Mbit/s" }, goodput(run)),
      el("div", { role: "cell", class: "n", "data-name": "delay, ms" }, delay),
      el("div", { role: "cell", class: "n", "data-name": "dropped, %" }, num(link.dp)),
      el("div", { role: "cell", class: "n", "data-name": "marked, %" }, num(link.mp)),
      el("div", { role: "cell", class: "says", title: run.s },
        head.growing ? run.s : el("a", { href: page }, run.s), both ? " " : null,
        both ? el("a", { class: "both", href: "report/" + weir.pageOf(head, run, "both") }, "both engines") : null),
    ];
    return el("div", { role: "row", class: "run" + (run.x ? " spoiled" : ""), "aria-rowindex": index + 2 }, cells);
  }

  const body = el("div", { role: "rowgroup", class: "rows" });
  let headRow = heading();
  tree.append(headRow, body);
  tree.setAttribute("aria-rowcount", all.length + 1);

  function arrange() {
    const words = find.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    order = all.map((_, index) => index).filter((index) => words.every((word) => text[index].includes(word)));
    if (sort) {
      const key = columns[sort.index].key;
      const worth = (index) => {
        const worth = key(all[index]);
        return worth === null || worth === undefined ? -Infinity : worth;
      };
      order.sort((a, b) => (sort.up ? worth(a) - worth(b) : worth(b) - worth(a)) || a - b);
    }
    const next = heading();
    headRow.replaceWith(next);
    headRow = next;
    drawn = "";
    draw();
  }
  function sortBy(index) {
    if (sort && sort.index === index) sort = sort.up ? null : { index, up: true };
    else sort = { index, up: !columns[index].number };
    arrange();
    headRow.children[index].firstChild.focus();
  }

  // The height that the fullest rows need at this width: rows that are drawn lazily all have it.
  let height = 0;
  function measure() {
    const fullest = order.slice().sort((a, b) => text[b].length - text[a].length).slice(0, 4);
    tree.style.setProperty("--row", "auto");
    body.style.paddingTop = body.style.paddingBottom = "0";
    body.replaceChildren(...fullest.map((index) => row(index, null)));
    height = Math.max(40, ...[...body.children].map((node) => Math.ceil(node.getBoundingClientRect().height)));
    tree.style.setProperty("--row", height + "px");
  }

  let drawn = "";
  function draw() {
    const lazy = order.length > ALL_DRAWN;
    body.classList.toggle("lazy", lazy);
    let first = 0;
    let last = order.length;
    if (lazy) {
      if (!height) measure();
      const top = body.getBoundingClientRect().top;
      first = Math.min(Math.max(0, Math.floor(-top / height) - 10), order.length);
      last = Math.min(order.length, Math.ceil((window.innerHeight - top) / height) + 10);
      body.style.paddingTop = first * height + "px";
      body.style.paddingBottom = Math.max(0, order.length - last) * height + "px";
    } else {
      body.style.paddingTop = body.style.paddingBottom = "0";
    }
    const state = `${first} ${last}`;
    if (state === drawn) return;
    drawn = state;
    const rows = [];
    for (let place = first; place < last; place += 1) {
      // In the order of the tree a label that repeats the one above it steps back.
      rows.push(row(order[place], !sort && place > first ? all[order[place - 1]] : null));
    }
    body.replaceChildren(...(rows.length ? rows : [el("p", { class: "quiet" }, "No run matches.")]));
    tree.dataset.drawn = String(rows.length > 0);
  }

  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
  window.addEventListener("scroll", later, { passive: true });
  window.addEventListener("resize", () => {
    drawn = "";
    height = 0;
    later();
  });
  find.addEventListener("input", arrange);
  find.hidden = all.length < 2;
  find.parentElement.hidden = all.length < 2;
  draw();
});
