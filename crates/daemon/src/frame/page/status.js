'use strict';
// The status of a daemon, asked for each second. Rates are differences between two answers.

const PERIOD = 1000;
const UNITS = { mbps: 'Mbit/s', ms: 'ms', percent: '%', s: 's' };
let last = null;

/** A number with as many digits as help. */
function digits(value) {
  if (Number.isInteger(value)) return value.toLocaleString('en');
  return value.toLocaleString('en', { maximumFractionDigits: Math.abs(value) < 10 ? 3 : 1 });
}

function bytes(value) {
  const [unit, size] = [['GB', 1e9], ['MB', 1e6], ['kB', 1e3]].find(([, size]) => value >= size) ?? ['B', 1];
  return `${digits(value / size)} ${unit}`;
}

/** The heading and the cells of a measured value. `before` is the value of the last answer, `span` the seconds since. */
function shown(name, value, before, span) {
  const unit = name.slice(name.lastIndexOf('_') + 1);
  const title = name.replaceAll('_', ' ');
  if (name === 'up') return [['', value ? 'up' : 'down']];
  if (unit === 'bytes') {
    const rate = before === undefined || !(span > 0) ? '' : `${digits(Math.max(0, (value - before) * 8 / span / 1e6))} Mbit/s`;
    return [[title.slice(0, -6), bytes(value)], ['now', rate]];
  }
  // Beyond what any link carries: no limit is known.
  if (unit === 'mbps' && value >= 1e5) return [[title.slice(0, -5), 'any rate']];
  if (UNITS[unit] && name !== unit) return [[title.slice(0, -unit.length - 1), `${digits(value)} ${UNITS[unit]}`]];
  return [[title, digits(value)]];
}

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

/** A table of rows; a row has cells, each a heading and a text, and whether it is a number. */
function table(caption, rows) {
  const heads = rows[0] ?? [];
  const made = element('table');
  made.append(element('caption', caption));
  const head = made.createTHead().insertRow();
  heads.forEach(([name, , number]) => {
    const cell = element('th', name, number ? 'number' : '');
    cell.scope = 'col';
    head.append(cell);
  });
  const body = made.createTBody();
  rows.forEach((row) => {
    const line = body.insertRow();
    row.forEach(([, text, number]) => line.append(element('td', text, text === 'down' ? 'down' : number ? 'number' : '')));
  });
  const wide = element('div', undefined, 'wide');
  wide.tabIndex = 0;
  wide.setAttribute('role', 'region');
  wide.setAttribute('aria-label', caption);
  wide.append(made);
  return wide;
}

const named = (part) => JSON.stringify(part.labels);
const plural = (name, count) => `${count.toLocaleString('en')} ${name}${count === 1 ? '' : 's'}`;

/** The rows of a table of parts; a part's `name` is called as the part is. */
function parts(kind, rows, old, span) {
  const before = new Map((old ?? []).map((part) => [named(part), new Map(part.values)]));
  return rows.map((part) => {
    const own = before.get(named(part));
    const labels = part.labels.map(([name, value]) => [name === 'name' ? kind : name, String(value), false]);
    const values = part.values.flatMap(([name, value]) => shown(name, value, own?.get(name), span));
    return [...labels, ...values.map(([name, text]) => [name, text, true])];
  });
}

function counters({ values }, old, span) {
  const before = new Map(old?.values ?? []);
  return values.filter(([, count]) => count > 0).map(([name, count]) => {
    const since = before.has(name) && span > 0 ? digits(Math.round((count - before.get(name)) / span)) : '';
    return [['', name.replaceAll('_', ' '), false], ['count', digits(count), true], ['each second', since, true]];
  });
}

function show(status) {
  const span = last ? status.up_s - last.up_s : 0;
  const old = span > 0 ? last : null;
  document.title = `${status.kind} ${status.place}`;
  document.getElementById('title').textContent = `${status.kind} ${status.place}`;
  const tables = [];
  if (status.parts.length) tables.push(table(plural(status.part, status.parts.length), parts(status.part, status.parts, old?.parts, span)));
  if (status.details.name) {
    tables.push(table(plural(status.details.name, status.details.rows.length), parts(status.details.name, status.details.rows, old?.details.rows, span)));
  }
  const counted = counters(status.counters, old?.counters, span);
  if (counted.length) tables.push(table(status.counters.meaning, counted));
  document.getElementById('tables').replaceChildren(...tables);
  last = status;
}

function say(text, silent) {
  const state = document.getElementById('state');
  state.textContent = text;
  state.className = silent ? 'silent' : '';
}

async function ask() {
  try {
    const answer = await fetch('status.json');
    if (!answer.ok) throw new Error(answer.statusText);
    const status = await answer.json();
    show(status);
    say(`For ${digits(Math.floor(status.up_s))} s, as of ${new Date().toLocaleTimeString('en-GB')}.`, false);
  } catch {
    say(`No answer at ${new Date().toLocaleTimeString('en-GB')}: has it ended?`, true);
  }
  setTimeout(ask, PERIOD);
}

ask();
