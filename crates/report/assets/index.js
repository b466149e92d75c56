// The index: a row for each cell of the tree and engine, with the mean and the 95 % interval over its repeats, which are
// folded below it. Every number is beside its link, class or group. Up to a few hundred rows are all in the page; if there are
// more, only visible rows are drawn, at a fixed height, so that five thousand open as quickly as fifty.
"use strict";
weir.onLab((head, all) => {
  const { el, num, engineName } = weir;
  const ALL_DRAWN = 120;
  const PICTURED = 6;
  const tree = document.getElementById("tree");
  const find = document.getElementById("find");
  const engines = head.engines.length > 1;
  const read = { link: weir.reader(head, "link"), class: weir.reader(head, "class"), group: weir.reader(head, "group") };
  const classIn = (link, bits) => ((link || {}).c || []).find((one) => one.i === bits);

  // Cells: the runs that differ only in the repeat.
  const byKey = new Map();
  for (const run of all) {
    const key = run.e + " " + run.p.join(" ");
    if (!byKey.has(key)) byKey.set(key, { e: run.e, p: run.p, runs: [] });
    byKey.get(key).runs.push(run);
  }
  const cells = [...byKey.values()];
  cells.forEach((cell) => {
    const sound = cell.runs.filter((run) => !run.x);
    cell.told = sound.length ? sound : cell.runs;
  });
  // A cell's numbers and words are computed when they are first needed: of thousands of cells, few are ever seen.
  const factsOf = (cell) => (cell.facts = cell.facts || facts(cell));
  const textOf = (cell) => (cell.text = cell.text || [...cell.p.map((v, level) => head.values[level][v]), head.engines[cell.e], ...cell.runs.map((run) => run.id + " " + run.s + (run.x ? " invalid" : ""))].join(" ").toLowerCase());

  // The values of a cell: for each link (and class) and each group those columns that metrics declare, each with its mean over the
  // repeats. `row` gives the row of such a subject in a run.
  function facts(cell) {
    const list = [];
    const seen = (of) => [...new Set(cell.told.flatMap(of))];
    const values = (kind, row, wanted = () => true) => head.columns.filter((column) => column.of.includes(kind) && wanted(column.shown)).map(({ metric, unit, shown }) => {
      const of = (run) => {
        const value = weir.statistic(read[kind](row(run), metric), shown.statistic);
        return value || shown.zeros !== "left-out" ? value : NaN;
      };
      return { ...shown, unit, ...weir.mean(cell.told.map(of).filter(Number.isFinite)) };
    }).filter((one) => one.count > 0 && (one.zeros !== "hidden" || one.mean > 0));
    // The busiest link is the first.
    const sent = (link) => (read.link(link, "link_capacity_mbps") || 0) * (read.link(link, "utilisation_percent") || 0);
    const carrying = [...new Set(cell.told.flatMap((run) => run.l.filter((link) => link.t).sort((a, b) => sent(b) - sent(a)).map((link) => link.i)))];
    const links = carrying.length ? carrying : seen((run) => (run.b === null ? [] : [run.b]));
    for (const i of links) {
      const link = (run) => run.l.find((one) => one.i === i);
      const name = head.links[i];
      const first = link(cell.told[0]);
      const apart = classesOf(cell, link);
      const capacity = read.link(first, "link_capacity_mbps");
      const about = [first && first.q, Number.isFinite(capacity) ? `${num(capacity)} Mbit/s` : null, first && first.z !== undefined ? `traffic ended at ${num(first.z)} s` : null].filter(Boolean).join(", ");
      list.push({ who: `link ${name}`, about, link: name, values: values("link", link, (shown) => !apart.length || !shown.by_class) });
      for (const bits of apart) {
        const of = (run) => classIn(link(run), bits);
        list.push({ who: `link ${name}, ${className(bits)}`, link: name, class: head.classes[bits], values: values("class", of, (shown) => shown.by_class) });
      }
    }
    for (const i of seen((run) => run.g.map((group) => group.i))) {
      const group = (run) => run.g.find((one) => one.i === i);
      const name = head.groups[i];
      const over = (group(cell.told[0]) || {}).l;
      // What the group is judged by stands first; its rate then is no main number.
      const all = values("group", group);
      const answers = all.filter((one) => one.main && one.key !== "goodput");
      const others = all.filter((one) => !answers.includes(one)).map((one) => (answers.length ? { ...one, main: false } : one));
      list.push({ who: name, about: Number.isInteger(over) ? `over link ${head.links[over]}` : "", group: name, ink: "g" + (i % 8), values: [...answers, ...others], gaps: gapsOf(cell.told, i) });
    }
    return list;
  }

  // Why a group has no value, or not in all of its runs: each reason once.
  function gapsOf(runs, group) {
    const reasons = runs.map((run) => new Set((run.a || []).filter(([i]) => i === group).map(([, , why]) => why)));
    return [...new Set(reasons.flatMap((set) => [...set]))].map((why) => {
      const count = reasons.filter((set) => set.has(why)).length;
      return count < runs.length ? `${count} of ${runs.length} runs ${why}` : why;
    });
  }

  // The codepoints of a link with separate values: L4S and others, if both sent data.
  function classesOf(cell, link) {
    const sums = [0, 0, 0, 0];
    cell.told.forEach((run) => ((link(run) || {}).c || []).forEach((one) => (sums[one.i] += read.class(one, "utilisation_percent") || 0)));
    const whole = sums.reduce((a, b) => a + b, 0);
    const told = head.classes.map((_, bits) => bits).filter((bits) => head.classes[bits] !== "ce" && whole > 0 && sums[bits] >= 0.01 * whole);
    const l4s = head.classes.indexOf("ect1");
    return told.length > 1 && told.includes(l4s) ? [l4s, ...told.filter((bits) => bits !== l4s)] : [];
  }
  function className(bits) {
    return { ect1: "L4S", ect0: "classic ECT(0)", "not-ect": "classic Not-ECT" }[head.classes[bits]] || head.classes[bits];
  }

  // The keys by which rows can be sorted: every value of every link and group.
  const sorts = new Map([["", { name: "the tree's order", of: null }]]);
  cells.slice(0, 60).forEach((cell) => factsOf(cell).forEach((fact) => fact.values.forEach((one) => {
    const key = `${fact.who}|${one.key}`;
    if (!sorts.has(key)) sorts.set(key, { name: `${fact.who}: ${one.what}, ${one.unit}`, of: (other) => {
      const there = factsOf(other).find((f) => f.who === fact.who);
      const value = there && there.values.find((v) => v.key === one.key);
      return value ? value.mean : null;
    } });
  })));
  let sort = "";
  let order = cells.map((_, index) => index);
  const sorting = el("select", { id: "sort", "aria-label": "Sort by", onchange: (event) => {
    sort = event.target.value;
    arrange();
  } }, [...sorts].map(([key, one]) => el("option", { value: key }, one.name)));
  find.parentElement.before(el("label", { class: "find", hidden: cells.length < 2 }, "Sort by ", sorting));

  tree.setAttribute("role", "table");
  tree.setAttribute("aria-label", "Cells");
  tree.setAttribute("aria-rowcount", cells.length + 1);

  function number(one) {
    const [mean, unit, factor] = weir.inUnit(one.mean, one.unit);
    return el("span", { class: "value" + (one.main ? " main" : ""), "data-metric": one.key },
      el("b", null, mean, one.half ? el("span", { class: "quiet" }, ` ± ${weir.half(one.half * factor)}`) : null), ` ${unit} `, el("span", { class: "quiet" }, one.what));
  }

  function line(fact) {
    return el("div", { class: "fact", "data-link": fact.link, "data-class": fact.class, "data-group": fact.group },
      el("div", { class: "who" + (fact.ink ? " swatch " + fact.ink : "") }, fact.who, fact.about ? el("span", { class: "quiet" }, " " + fact.about) : null),
      el("div", { class: "values" }, (fact.gaps || []).map((why) => el("span", { class: "value main" }, el("b", null, why), " ")), fact.values.length ? fact.values.map(number) : (fact.gaps || []).length ? null : el("span", { class: "quiet" }, "nothing measured")));
  }

  function row(index, lazy) {
    const cell = cells[index];
    const invalid = cell.runs.filter((run) => run.x).length;
    const engine = head.engines[cell.e];
    const link = (run, text) => (head.growing ? text : el("a", { href: "report/" + weir.pageOf(head, run, engine), title: run.s }, text));
    const twins = engines && !head.growing && cells.some((other) => other.e !== cell.e && other.p.join() === cell.p.join());
    const both = (run) => (twins ? [" ", el("a", { class: "both", href: "report/" + weir.pageOf(head, run, "both") }, "both engines")] : []);
    const title = cell.p.length ? cell.p.map((v, level) => el("span", { class: "chip" }, el("span", { class: "quiet" }, weir.levelName(head, level)), " ", head.values[level][v])) : [el("span", { class: "chip" }, head.lab)];
    const many = cell.runs.length > 1;
    const runs = !many || lazy
      ? el("p", { class: "runs" }, many ? "Runs: " : "", cell.runs.flatMap((run) => [link(run, many ? `#${run.n}` : run.s), many ? " " : null, ...(many ? [] : both(run))]))
      : el("details", { class: "runs" }, el("summary", null, `${cell.runs.length} repeats`),
        el("ul", null, cell.runs.map((run) => el("li", { class: run.x ? "invalid" : null }, link(run, `#${run.n}`), " ", run.s, ...both(run)))));
    // Warnings of repeats differ only in their numbers: each is shown once.
    const told = lazy ? [] : [...new Map(cell.runs.flatMap((run) => run.w || []).reverse().map((text) => [text.replace(/[\d.]+/g, "#"), text])).values()].reverse();
    return el("div", { role: "row", class: "cell" + (invalid ? " invalid" : ""), "aria-rowindex": index + 2 },
      el("div", { role: "rowheader", class: "name" }, title, engines ? el("span", { class: "engine " + engine }, engineName[engine] || engine) : null,
        invalid ? el("span", { class: "bad" }, many ? `${invalid} of ${cell.runs.length} invalid` : "invalid") : null),
      el("div", { role: "cell", class: "facts-of" }, factsOf(cell).map(line), told.map((text) => el("p", { class: "warns" }, text)), runs));
  }

  const body = el("div", { role: "rowgroup", class: "rows" });
  tree.append(body);

  function arrange() {
    const words = find.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    order = cells.map((_, index) => index).filter((index) => words.every((word) => textOf(cells[index]).includes(word)));
    const of = sorts.get(sort).of;
    if (of) {
      const worth = (index) => of(cells[index]) ?? -Infinity;
      order.sort((a, b) => worth(b) - worth(a) || a - b);
    }
    drawn = "";
    draw();
  }

  // The height of the fullest rows at this width: all lazily drawn rows have it.
  let height = 0;
  function measure() {
    const subjects = (cell) => Math.max(...cell.told.map((run) => run.g.length + run.l.filter((link) => link.t).reduce((sum, link) => sum + 1 + (link.c || []).length, 0)));
    const size = (cell) => subjects(cell) * 1000 + cell.p.reduce((sum, v, level) => sum + head.values[level][v].length, 0);
    const fullest = order.slice().sort((a, b) => size(cells[b]) - size(cells[a])).slice(0, 4);
    tree.style.setProperty("--row", "auto");
    body.style.paddingTop = body.style.paddingBottom = "0";
    body.replaceChildren(...fullest.map((index) => row(index, true)));
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
      first = Math.min(Math.max(0, Math.floor(-top / height) - 6), order.length);
      last = Math.min(order.length, Math.ceil((window.innerHeight - top) / height) + 6);
      body.style.paddingTop = first * height + "px";
      body.style.paddingBottom = Math.max(0, order.length - last) * height + "px";
    } else {
      body.style.paddingTop = body.style.paddingBottom = "0";
    }
    const state = `${first} ${last}`;
    if (state === drawn) return;
    drawn = state;
    const rows = order.slice(first, last).map((index) => row(index, lazy));
    body.replaceChildren(...(rows.length ? rows : [el("p", { class: "quiet" }, "No cell matches.")]));
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
  find.parentElement.hidden = cells.length < 2;
  draw();

  const pictures = document.getElementById("pictures");
  if (pictures && !head.growing && !head.piece && cells.length <= PICTURED && weir.pictures) weir.pictures(pictures, head, cells);
});
