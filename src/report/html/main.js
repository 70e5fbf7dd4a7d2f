// What is shown, and what a person does.

const ROWS_A_PAGE = 50;
const MANY_HOSTS = 12;
/** Columns that fit on paper; those of a wider table go into more tables. */
const COLUMNS_ON_PAPER = 6;
const ROWS_ON_PAPER = 500;
const state = { view: nodesView, level: null, row: 0, column: 0, cases: 10, problems: 10, chosen: null };
let rows = [];
let columns = [];

function update() {
  rows = state.view.rows();
  columns = state.view.columns(rows);
  const isShown = state.level === null
    ? (row, column) => state.view.cell(row, column) !== NOTHING
    : (row, column) => state.view.cell(row, column) === state.level;
  // Where nothing that is looked for lands is of no interest.
  if (state.level !== null || (state.view === nodesView && query('workload'))) {
    rows = rows.filter((row) => columns.some((column) => isShown(row, column)));
  }
  if (state.level !== null) columns = columns.filter((column) => rows.some((row) => isShown(row, column)));
  state.row = 0;
  state.column = 0;
  draw();
}

function draw() {
  if (state.onPaper) {
    drawOnPaper();
    return;
  }
  byId('paper').replaceChildren();
  const width = byId('matrix').clientWidth;
  const isNarrow = width < 560;
  const heading = isNarrow ? 160 : 280;
  const aPage = Math.max(2, Math.floor((width - heading) / 84));
  const shownRows = rows.slice(state.row, state.row + ROWS_A_PAGE);
  const shownColumns = columns.slice(state.column, state.column + aPage);
  drawPages(aPage);
  // A column that is wide enough has the word beside the sign.
  const room = (width - heading) / Math.max(1, shownColumns.length);
  drawTable(byId('table'), shownRows, shownColumns, room >= 150, Math.floor(Math.min(room, 320) / 8.3));
  const { rowWord, columnWord, rowSize, rowTotal, columnTotal } = state.view;
  const count = rows.reduce((sum, row) => sum + rowSize(row), 0);
  byId('shown').textContent = rows.length && columns.length
    ? `${count} of ${plural(rowTotal, rowWord)}, ${columns.length} of ${columnTotal} ${columnWord === 'image' ? 'images' : 'kinds of nodes'}`
    : 'Nothing fits the filter.';
  byId('hidden').textContent = state.view.hidden().join(' ');
}

/** Everything, in as many tables as that takes. */
function drawOnPaper() {
  const more = [];
  let table = byId('table');
  for (let at = 0; at < columns.length; at += COLUMNS_ON_PAPER) {
    drawTable(table, rows.slice(0, ROWS_ON_PAPER), columns.slice(at, at + COLUMNS_ON_PAPER), false, 24);
    if (at > 0) more.push(table);
    table = make('table');
  }
  byId('paper').replaceChildren(...more);
}

function drawPages(perPage) {
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
  add('rows', 'row', rows.length, ROWS_A_PAGE);
  add(state.view === nodesView ? 'images' : 'kinds of nodes', 'column', columns.length, perPage);
}

function drawTable(table, shownRows, shownColumns, hasWords, letters) {
  table.className = hasWords ? 'words' : '';
  table.setAttribute('aria-rowcount', rows.length + 1);
  table.setAttribute('aria-colcount', columns.length + 1);
  const corner = state.view === nodesView ? 'Node' : 'Workload';
  const head = make('tr', {}, make('th', { scope: 'col', textContent: corner }));
  for (const column of shownColumns) {
    const { title, first, second } = state.view.columnHeading(column, hasWords);
    head.append(make('th', { scope: 'col', title, 'aria-label': title },
      make('b', { textContent: shortened(first, letters) }), make('small', { textContent: shortened(second, Math.floor(letters * 1.15)) })));
  }
  const body = make('tbody');
  for (const [index, row] of shownRows.entries()) {
    const [name, small] = state.view.rowHeading(row, rows);
    const link = linkTo(...state.view.rowLink(row), name);
    link.tabIndex = -1;
    const sign = state.view.rowSign ? [state.view.rowSign(row)] : [];
    const line = make('tr', { 'aria-rowindex': state.row + index + 2 },
      make('th', { scope: 'row' }, ...sign, make('span', {}, link, ' ', make('small', { textContent: small }))));
    for (const column of shownColumns) line.append(make('td', {}, cellButton(row, column, hasWords)));
    body.append(line);
  }
  table.replaceChildren(make('thead', {}, head), body);
  const first = table.querySelector('td button');
  if (first) first.tabIndex = 0;
}

function cellButton(row, column, hasWords) {
  const level = state.view.cell(row, column);
  const word = level === NOTHING ? 'does not land' : LEVELS[level].word;
  const sign = level === NOTHING ? '\u00b7' : LEVELS[level].sign;
  const text = hasWords && level !== NOTHING ? `${sign} ${word}` : sign;
  const button = make('button', { type: 'button', className: `l${level}`, tabIndex: -1, textContent: text, 'aria-label': word });
  button.onclick = () => {
    mark(button);
    explain(state.view.choose(row, column), true);
    // The address leads back here; it is not gone to, so that the table stays as it is.
    const [what, name] = state.view.rowLink(row);
    history.replaceState(null, '', `#${what}=${encodeURIComponent(name)}`);
  };
  return button;
}

function mark(button) {
  document.querySelector('td button[aria-current]')?.removeAttribute('aria-current');
  button?.setAttribute('aria-current', 'true');
}

function explain(parts, isAsked) {
  const details = byId('details');
  details.replaceChildren(...parts);
  details.hidden = false;
  details.scrollTop = 0;
  // Where the details are below the table, they may be out of sight.
  if (isAsked) details.scrollIntoView({ block: 'nearest' });
}

/** `#nodes`, `#workloads`, `#node=NAME`, `#workload=NAME`. */
function follow() {
  const [what, ...rest] = location.hash.slice(1).split('=');
  let name = rest.join('=');
  try { name = decodeURIComponent(name); } catch { /* It stays as it was typed. */ }
  const workload = what === 'workload' ? data.workloads.findIndex((one) => one.name === name) : -1;
  const host = what === 'node' ? data.hosts.findIndex((_, index) => hostName(index) === name) : -1;
  state.view = data.workloads.length && what.startsWith('workload') ? workloadsView : nodesView;
  for (const link of byId('views').children) {
    const isCurrent = (link.hash === '#workloads') === (state.view === workloadsView);
    if (isCurrent) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  }
  byId('grouped-label').hidden = state.view !== nodesView;
  update();
  if (workload >= 0) show(rows.indexOf(workload), detailsOfWorkload(workload));
  else if (host >= 0) show(rows.findIndex((row) => row.includes(host)), detailsOfNode(rows.find((row) => row.includes(host)) ?? [host]));
}

function show(index, parts) {
  if (index >= 0) {
    state.row = index - index % ROWS_A_PAGE;
    draw();
    byId('table').querySelectorAll('tbody tr')[index - state.row]?.setAttribute('aria-current', 'true');
  }
  byId('board').scrollIntoView({ block: 'start' });
  explain(parts, false);
}

function drawLevels() {
  for (const level of [3, 2, 1, 0]) {
    const button = make('button', { type: 'button', 'aria-pressed': 'false' }, levelSign(level), LEVELS[level].word);
    button.onclick = () => {
      state.level = state.level === level ? null : level;
      for (const other of byId('levels').children) {
        other.setAttribute('aria-pressed', String(other === button && state.level !== null));
      }
      update();
    };
    byId('levels').append(button);
  }
}

function drawLists() {
  const isWarning = ({ finding }) => data.findings[finding].level === 1;
  const first = [...data.cases, ...data.problems.filter((problem) => !isWarning(problem))];
  const toPart = (one) => ('outlook' in one ? casePart(one) : problemPart(one));
  byId('first').hidden = !first.length;
  fill('cases', 'more-cases', first, state.cases, toPart, () => { state.cases += 20; drawLists(); });
  const warnings = data.problems.filter(isWarning);
  byId('todo').hidden = !warnings.length;
  fill('problems', 'more', warnings, state.problems, problemPart, () => { state.problems += 20; drawLists(); });
}

/** Arrow keys move between cells, so that Tab does not have to pass them all. */
byId('table').addEventListener('keydown', (event) => {
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const step = steps[event.key];
  const cell = event.target.closest('tbody td, tbody th');
  if (!step || !cell) return;
  event.preventDefault();
  const line = cell.parentElement.parentElement.children[cell.parentElement.rowIndex - 1 + step[0]];
  const target = line?.children[cell.cellIndex + step[1]]?.querySelector('button, a');
  if (!target) return;
  event.target.tabIndex = -1;
  target.tabIndex = 0;
  target.focus();
});

let waiting = 0;
const soon = (action) => { clearTimeout(waiting); waiting = setTimeout(action, 120); };
byId('filters').addEventListener('input', () => soon(update));
byId('filters').addEventListener('reset', () => setTimeout(() => {
  state.level = null;
  for (const button of byId('levels').children) button.setAttribute('aria-pressed', 'false');
  update();
}));
byId('filters').addEventListener('submit', (event) => event.preventDefault());
let lastWidth = 0;
new ResizeObserver(([{ contentRect }]) => {
  if (contentRect.width !== lastWidth && lastWidth) soon(draw);
  lastWidth = contentRect.width;
}).observe(byId('matrix'));
// Paper has no button for more.
addEventListener('beforeprint', () => {
  Object.assign(state, { onPaper: true, cases: 500, problems: 500 });
  drawLists();
  for (const folded of document.querySelectorAll('#plan details, .more-commands')) folded.open = true;
  draw();
});
addEventListener('afterprint', () => { state.onPaper = false; draw(); });
addEventListener('hashchange', follow);

byId('filter-box').open = innerWidth > 720;
byId('workload-filter').hidden = !data.workloads.length;
byId('views').hidden = !data.workloads.length;
byId('grouped').defaultChecked = hostCount > MANY_HOSTS;
byId('what-if').hidden = !data.what_if;
byId('what-if').textContent = data.what_if ?? '';
drawLevels();
drawPlan();
drawLists();
follow();
