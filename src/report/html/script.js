'use strict';
// Draws the report from the data in the page. Everything is text to it, whatever a name may contain:
// elements get their content by textContent alone.

const data = JSON.parse(document.getElementById('data').textContent);
const NOTHING = 9;
const LEVELS = [
  { sign: '\u2713', word: 'starts', name: 'compatible' },
  { sign: '!', word: 'worth a look', name: 'warning' },
  { sign: '?', word: 'not known', name: 'unknown' },
  { sign: '\u2715', word: 'does not start', name: 'incompatible' },
];
const ROWS_A_PAGE = 50;
const COLUMNS_A_PAGE = 20;
const FEW_COLUMNS = 5;
const PROBLEMS_A_PAGE = 20;
const MANY_HOSTS = 100;
const STEPS_SHOWN = 10;

const byId = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const sign = (level) => make('span', {
  className: `sign l${level}`,
  textContent: level === NOTHING ? '\u00b7' : LEVELS[level].sign,
  'aria-hidden': 'true',
});

const plural = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;

// What the data says.

const hostCount = data.hosts.length;
const imageCount = data.images.length;
const hostName = (host) => data.hosts[host][0] ?? buildOf(host) ?? '?';
const buildOf = (host) => data.hosts[host][2];
const kindOf = (host) => data.kinds[data.hosts[host][1]];

/** For each placement its hosts, with the place of each host's finding; kinds are counted as they come. */
const selections = data.selections.map((text) => {
  const bits = atob(text);
  const groupOf = new Map();
  const hosts = [];
  for (let host = 0; host < hostCount; host++) {
    if (!(bits.charCodeAt(host >> 3) >> (host & 7) & 1)) continue;
    const kind = data.hosts[host][1];
    if (!groupOf.has(kind)) groupOf.set(kind, groupOf.size);
    hosts.push(host);
  }
  const has = new Uint8Array(hostCount);
  for (const host of hosts) has[host] = 1;
  return { hosts, has, groupOf };
});

const findingAt = (placement, findings, host) =>
  data.findings[findings[selections[placement.selection].groupOf.get(data.hosts[host][1])]];

/** The worst that can happen for every host and image, as far as the workload filter lets through. */
function worstCells(query) {
  const cells = new Uint8Array(hostCount * imageCount).fill(NOTHING);
  for (const placement of data.placements) {
    if (!takesPart(placement, query)) continue;
    const { hosts } = selections[placement.selection];
    for (const [image, findings] of placement.images) {
      for (const host of hosts) {
        const { level } = findingAt(placement, findings, host);
        const place = host * imageCount + image;
        if (cells[place] === NOTHING || level > cells[place]) cells[place] = level;
      }
    }
  }
  return cells;
}

const takesPart = (placement, query) => !query
  || (placement.workload !== null && matches(data.workloads[placement.workload], query));

const matches = (text, query) => query.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));

// What is shown of it.

const state = { level: null, row: 0, column: 0, chosen: null, problems: PROBLEMS_A_PAGE };
let cells = new Uint8Array(0);
let cellsFor = null;
let lookedFor = [];
let rows = [];
let columns = [];

function hostText(host) {
  const kind = kindOf(host);
  return `${hostName(host)} ${buildOf(host) ?? ''} ${kind.release} ${kind.runtime}`;
}

/** Hosts that have the same answers everywhere are one row, if that is asked for. */
function rowsOf(hosts) {
  if (!byId('grouped').checked) return hosts.map((host) => [host]);
  const known = new Map();
  for (const host of hosts) {
    const own = cells.subarray(host * imageCount, (host + 1) * imageCount);
    const key = `${data.hosts[host][1]}:${own.join('')}`;
    if (known.has(key)) known.get(key).push(host);
    else known.set(key, [host]);
  }
  return [...known.values()];
}

const cellOf = (row, image) => cells[row[0] * imageCount + image];

function update() {
  const query = byId('find-workload').value.trim();
  if (cellsFor !== query) {
    cells = worstCells(query);
    cellsFor = query;
  }
  const nodeQuery = byId('find-node').value.trim();
  const imageQuery = byId('find-image').value.trim();
  lookedFor = [];
  for (let host = 0; host < hostCount; host++) {
    if (!nodeQuery || matches(hostText(host), nodeQuery)) lookedFor.push(host);
  }
  rows = rowsOf(lookedFor);
  columns = [];
  for (let image = 0; image < imageCount; image++) {
    if (imageQuery && !matches(data.images[image], imageQuery)) continue;
    if (rows.some((row) => cellOf(row, image) !== NOTHING)) columns.push(image);
  }
  // Where the workloads that are looked for do not land is of no interest.
  if (query) rows = rows.filter((row) => columns.some((image) => cellOf(row, image) !== NOTHING));
  if (state.level !== null) {
    const has = (row, image) => cellOf(row, image) === state.level;
    rows = rows.filter((row) => columns.some((image) => has(row, image)));
    columns = columns.filter((image) => rows.some((row) => has(row, image)));
  }
  state.row = 0;
  state.column = 0;
  draw();
  drawProblems();
}

function draw() {
  drawPages();
  drawTable();
  const shownHosts = rows.reduce((sum, row) => sum + row.length, 0);
  byId('shown').textContent = rows.length && columns.length
    ? `${plural(shownHosts, 'node')} of ${hostCount} and ${plural(columns.length, 'image')} of ${imageCount}`
    : 'No node and image fit the filter.';
}

function drawPages() {
  const pages = byId('pages');
  pages.replaceChildren();
  const add = (what, key, total, size) => {
    if (total <= size) return;
    const go = (to) => { state[key] = to; draw(); };
    const end = Math.min(state[key] + size, total);
    pages.append(make('span', {},
      make('button', { type: 'button', textContent: '\u2190', 'aria-label': `earlier ${what}`, disabled: state[key] === 0, onclick: () => go(Math.max(0, state[key] - size)) }),
      `${what} ${state[key] + 1}\u2013${end} of ${total}`,
      make('button', { type: 'button', textContent: '\u2192', 'aria-label': `later ${what}`, disabled: end === total, onclick: () => go(state[key] + size) })));
  };
  add('nodes', 'row', rows.length, ROWS_A_PAGE);
  add('images', 'column', columns.length, COLUMNS_A_PAGE);
}

const versionsOf = (row) => (row.length === 1 ? buildOf(row[0]) : kindOf(row[0]).build);

function rowHeading(row) {
  const kind = kindOf(row[0]);
  const name = row.length === 1 ? hostName(row[0]) : `${row.length} nodes like ${hostName(row[0])}`;
  const release = kind.release.replace(/^Windows /, '');
  const build = versionsOf(row);
  const small = name === build ? release : [build ?? 'version not known', release].filter(Boolean).join(' \u00b7 ');
  return make('th', { scope: 'row', title: row.slice(0, 40).map(hostName).join('\n') },
    `${name} `, make('small', { textContent: small }));
}

/** The name and tag first: images of one registry differ at their end. */
function columnHeading(image) {
  const label = data.images[image];
  const end = label.split(' ', 1)[0].lastIndexOf('/') + 1;
  return make('th', { scope: 'col', title: label },
    make('span', {}, make('b', { textContent: label.slice(end) }), ' ', make('small', { textContent: label.slice(0, end) })));
}

function drawTable() {
  const table = byId('table');
  const shownRows = rows.slice(state.row, state.row + ROWS_A_PAGE);
  const shownColumns = columns.slice(state.column, state.column + COLUMNS_A_PAGE);
  table.className = shownColumns.length <= FEW_COLUMNS ? 'few' : '';
  table.setAttribute('aria-rowcount', rows.length + 1);
  table.setAttribute('aria-colcount', columns.length + 1);
  const head = make('tr', {}, make('th', { scope: 'col', textContent: 'Node' }));
  for (const image of shownColumns) {
    head.append(columnHeading(image));
  }
  const body = make('tbody');
  for (const [index, row] of shownRows.entries()) {
    const line = make('tr', { 'aria-rowindex': state.row + index + 2 }, rowHeading(row));
    for (const image of shownColumns) line.append(make('td', {}, cellButton(row, image)));
    body.append(line);
  }
  table.replaceChildren(make('thead', {}, head), body);
  const first = table.querySelector('td button');
  if (first) first.tabIndex = 0;
}

function cellButton(row, image) {
  const level = cellOf(row, image);
  const button = make('button', {
    type: 'button',
    className: `l${level}`,
    tabIndex: -1,
    textContent: level === NOTHING ? '\u00b7' : LEVELS[level].sign,
    'aria-label': level === NOTHING ? 'does not land here' : LEVELS[level].word,
  });
  button.dataset.host = row[0];
  button.dataset.image = image;
  button.onclick = () => explain(row, image, button);
  return button;
}

// One cell explained, the list of problems, the plan.

function answerPart(finding, about) {
  const { name } = LEVELS[finding.level];
  const part = make('div', { className: 'answer' },
    make('div', { className: 'verdict' }, sign(finding.level), make('span', { textContent: LEVELS[finding.level].word }),
      make('code', { textContent: `${name} \u00b7 ${finding.rule}` })));
  for (const text of about) part.append(make('p', { className: 'about', textContent: text }));
  part.append(make('p', { textContent: finding.why }));
  if (finding.fix) part.append(make('p', {}, make('strong', { textContent: 'Fix: ' }), finding.fix));
  for (const command of finding.commands) part.append(commandPart(command));
  return part;
}

function commandPart(command) {
  const code = make('code', { textContent: command });
  const button = make('button', { type: 'button', textContent: 'Copy', 'aria-label': `Copy: ${command}` });
  button.onclick = async () => {
    button.textContent = await copy(command, code) ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  };
  return make('div', { className: 'command' }, code, button);
}

/** Puts a text on the clipboard; where the browser does not let us, it is at least selected. */
async function copy(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return document.execCommand('copy');
  }
}

function explain(row, image, button) {
  document.querySelector('td button[aria-current]')?.removeAttribute('aria-current');
  button.setAttribute('aria-current', 'true');
  const host = row[0];
  const answers = new Map();
  const query = byId('find-workload').value.trim();
  for (const placement of data.placements) {
    if (!selections[placement.selection].has[host] || !takesPart(placement, query)) continue;
    for (const [own, findings] of placement.images) {
      if (own !== image) continue;
      const finding = findingAt(placement, findings, host);
      if (!answers.has(finding)) answers.set(finding, []);
      if (placement.workload !== null) answers.get(finding).push(data.workloads[placement.workload]);
    }
  }
  const sorted = [...answers].sort(([a], [b]) => b.level - a.level);
  const kind = kindOf(host);
  const where = row.length === 1 ? hostName(host) : `${row.length} nodes like ${hostName(host)}`;
  const details = byId('details');
  details.replaceChildren(
    make('h2', { id: 'details-title', textContent: data.images[image] }),
    make('p', { className: 'about', textContent: `on ${where}: ${[kind.release, versionsOf(row), kind.runtime].filter(Boolean).join(', ')}` }));
  if (!sorted.length) details.append(make('p', { textContent: 'No pod with this image can be put on this node.' }));
  for (const [finding, workloads] of sorted) {
    const about = [`${finding.isolation} isolation${finding.build ? `, image version ${finding.build}` : ''}`];
    if (workloads.length) about.push(`for ${someOf(workloads)}`);
    details.append(answerPart(finding, about));
  }
  const alsoAbout = data.problems.filter((problem) => problem.images.includes(image) && problem.hosts === 0);
  if (alsoAbout.length) details.append(make('h3', { textContent: 'About this image everywhere' }));
  for (const problem of alsoAbout) details.append(answerPart(data.findings[problem.finding], workloadsOf(problem)));
  // Where the details are below the matrix, they may be out of sight.
  details.scrollIntoView({ block: 'nearest' });
}

function someOf(names) {
  const shown = names.slice(0, 8).join(', ');
  return names.length > 8 ? `${shown} and ${names.length - 8} more` : shown;
}

const workloadsOf = (problem) => problem.workloads.length
  ? [`for ${someOf(problem.workloads.map((workload) => data.workloads[workload]))}`] : [];

/** For every problem that hosts have, which ones; worked out when the first node is looked for. */
let hostsOfProblems = null;
function findHostsOfProblems() {
  const found = new Map(data.problems.filter((problem) => problem.hosts)
    .map((problem) => [problem.finding, new Uint8Array(hostCount)]));
  for (const placement of data.placements) {
    const { hosts, groupOf } = selections[placement.selection];
    for (const [, findings] of placement.images) {
      const problems = findings.map((finding) => found.get(finding));
      for (const host of hosts) {
        const problem = problems[groupOf.get(data.hosts[host][1])];
        if (problem) problem[host] = 1;
      }
    }
  }
  return found;
}

function isAboutNodes(problem) {
  if (lookedFor.length === hostCount) return true;
  hostsOfProblems ??= findHostsOfProblems();
  const has = hostsOfProblems.get(problem.finding);
  return has !== undefined && lookedFor.some((host) => has[host]);
}

function problemFits(problem) {
  const finding = data.findings[problem.finding];
  const workloadQuery = byId('find-workload').value.trim();
  const imageQuery = byId('find-image').value.trim();
  return (state.level === null || finding.level === state.level)
    && (!imageQuery || (problem.images.some((image) => matches(data.images[image], imageQuery))))
    && isAboutNodes(problem)
    && (!workloadQuery || problem.workloads.some((workload) => matches(data.workloads[workload], workloadQuery)));
}

function drawProblems() {
  const fitting = data.problems.filter(problemFits);
  const list = byId('problems');
  list.replaceChildren(...fitting.slice(0, state.problems).map((problem) => {
    const title = problem.images.length ? someOf(problem.images.map((image) => data.images[image])) : someOf(problem.workloads.map((workload) => data.workloads[workload]));
    const about = !problem.images.length ? [] : workloadsOf(problem);
    if (problem.hosts) about.unshift(`on ${problem.hosts_in_words}`);
    return make('li', { className: 'answer' }, make('h3', { textContent: title }), answerPart(data.findings[problem.finding], about));
  }));
  if (!fitting.length) list.append(make('li', { textContent: data.problems.length ? 'Nothing fits the filter.' : 'Nothing: everything starts.' }));
  const more = byId('more');
  more.hidden = fitting.length <= state.problems;
  more.textContent = `Show more (${fitting.length - state.problems} left)`;
}

function drawPlan() {
  if (!data.plan) return;
  byId('plan').hidden = false;
  const { length } = data.plan.steps;
  byId('steps-box').hidden = !length;
  byId('steps-box').open = length <= STEPS_SHOWN;
  byId('steps-title').textContent = plural(length, 'action');
  byId('steps').replaceChildren(...data.plan.steps.map(([title, commands]) =>
    make('li', {}, title, ...commands.map(commandPart))));
  byId('outcome').textContent = data.plan.outcome;
}

// What a person does.

function drawWhatIf() {
  byId('what-if').hidden = !data.what_if;
  byId('what-if').textContent = data.what_if;
}

function drawLevels() {
  for (const level of [3, 2, 1, 0]) {
    if (!data.counts[level]) continue;
    const button = make('button', { type: 'button', 'aria-pressed': 'false' },
      sign(level), make('span', { textContent: LEVELS[level].name }), make('strong', { textContent: data.counts[level].toLocaleString('en') }));
    button.onclick = () => {
      state.level = state.level === level ? null : level;
      for (const other of byId('levels').children) {
        other.setAttribute('aria-pressed', String(other === button && state.level !== null));
      }
      update();
    };
    byId('levels').append(button);
  }
  const legend = LEVELS.map(({ word }, level) => make('li', {}, sign(level), word));
  byId('legend').append(...legend, make('li', {}, sign(NOTHING), 'does not land here'));
}

/** Arrow keys move between cells, so that Tab does not have to pass them all. */
byId('table').addEventListener('keydown', (event) => {
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const step = steps[event.key];
  const cell = event.target.closest('td');
  if (!step || !cell) return;
  event.preventDefault();
  const line = cell.parentElement.parentElement.children[cell.parentElement.rowIndex - 1 + step[0]];
  const target = line?.children[cell.cellIndex + step[1]]?.querySelector('button');
  if (!target) return;
  event.target.tabIndex = -1;
  target.tabIndex = 0;
  target.focus();
});

let waiting = 0;
byId('filters').addEventListener('input', () => {
  clearTimeout(waiting);
  waiting = setTimeout(update, 120);
});
byId('filters').addEventListener('reset', () => setTimeout(update));
byId('filters').addEventListener('submit', (event) => event.preventDefault());
byId('more').onclick = () => { state.problems += PROBLEMS_A_PAGE; drawProblems(); };
byId('workload-filter').hidden = !data.workloads.length;
byId('grouped').defaultChecked = hostCount > MANY_HOSTS;
drawWhatIf();
drawLevels();
drawPlan();
update();
