// Pieces of the page.

/** Letters of a word that fit on a phone. */
const LONGEST_WORD = 32;
/** Commands of a fix that are shown at once. */
const SHOWN_COMMANDS = 3;

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

const signPart = (text, look) => make('span', { className: `sign ${look}`, textContent: text, 'aria-hidden': 'true' });
const levelSign = (level) => signPart(level === NOTHING ? '\u00b7' : LEVELS[level].sign, `l${level}`);
const startsSign = (starts) => signPart(STARTS[starts], `s${starts}`);

/** What is too much is left out of the middle: the end has the tag, the number. */
function shortened(text, most) {
  if (text.length <= most) return text;
  const end = Math.ceil((most - 1) / 2);
  return `${text.slice(0, most - 1 - end)}\u2026${text.slice(text.length - end)}`;
}

const linkTo = (what, name, text = name) => make('a', { href: `#${what}=${encodeURIComponent(name)}` }, ...breakable(text));

/** A name that may be broken where its parts end. */
const breakable = (text) => text.split(/(?<=[/.-])/).flatMap((part, index) => (index ? [make('wbr'), part] : [part]));
const workloadLink = (workload) => linkTo('workload', data.workloads[workload].name);

/** The first few, and how many more there are. */
function someOf(parts, most = 8) {
  const shown = parts.slice(0, most).flatMap((part, index) => (index ? [', ', part] : [part]));
  return parts.length > most ? [...shown, ` and ${parts.length - most} more`] : shown;
}

/** A command that breaks between its words, and inside a long one where its parts end. */
const wordsOf = (command) => command.split(/( )/).flatMap((word) => {
  const parts = word.length > LONGEST_WORD ? word.split(/(?<=[/:=,{}])/) : [word];
  return parts.flatMap((part, index) => {
    const own = part.length > LONGEST_WORD ? part : make('span', { textContent: part, className: 'word' });
    return index ? [make('wbr'), own] : [own];
  });
});

/** A sentence whose flags do not break. */
const sentence = (text) => text.split(/(--[a-z-]+)/).map((part, index) =>
  (index % 2 ? make('span', { textContent: part, className: 'word' }) : part));

function commandPart(command) {
  const code = make('code', {}, ...wordsOf(command));
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

const fixParts = (fix, commands) => [
  ...(fix ? [make('p', { className: 'fix' }, make('strong', { textContent: 'Fix: ' }), ...sentence(fix))] : []),
  ...commandParts(commands),
];

/** The first commands, and the others folded. */
function commandParts(commands) {
  if (commands.length <= SHOWN_COMMANDS + 1) return commands.map(commandPart);
  const rest = commands.slice(SHOWN_COMMANDS);
  return [...commands.slice(0, SHOWN_COMMANDS).map(commandPart),
    make('details', { className: 'more-commands' }, make('summary', { textContent: `${rest.length} more commands` }), ...rest.map(commandPart))];
}

/** A finding, and where it is so. */
function findingPart(finding, about) {
  const verdict = make('p', { className: 'verdict' }, levelSign(finding.level),
    make('strong', { textContent: LEVELS[finding.level].word }), make('code', { textContent: finding.rule }));
  const parts = about.map((text) => make('p', { className: 'about' }, ...[text].flat()));
  // That it starts needs no reason, but on request.
  const why = finding.level ? make('p', { textContent: finding.why }) : make('details', {}, make('summary', { textContent: 'Why' }), finding.why);
  return make('div', { className: 'answer' }, verdict, ...parts, why);
}

const workloadsOf = (workloads) => ['for ', ...someOf(workloads.map(workloadLink))];

// What there is to do.

function casePart({ starts, workloads, outlook, whys, more, fixes }) {
  const links = someOf(workloads.map(workloadLink), 12);
  const item = make('li', { className: 'case' },
    make('h3', {}, startsSign(starts), make('span', {}, ...links, ` ${outlook}`)));
  for (const [why, rule] of whys) item.append(make('p', { className: 'why' }, why, ' ', make('code', { textContent: rule })));
  if (more) item.append(make('p', { className: 'about', textContent: `and ${more} more like these` }));
  for (const [fix, commands] of fixes) item.append(...fixParts(fix, commands));
  return item;
}

function problemPart(problem) {
  const finding = data.findings[problem.finding];
  const names = problem.images.length
    ? problem.images.map((image) => data.images[image][0])
    : problem.workloads.map(workloadLink);
  const about = [];
  if (problem.hosts_in_words) about.push(`on ${problem.hosts_in_words}`);
  if (problem.images.length && problem.workloads.length) about.push(workloadsOf(problem.workloads));
  const part = findingPart(finding, about);
  part.append(...fixParts(finding.fix, finding.commands));
  return make('li', {}, make('h3', {}, ...someOf(names, 5)), part);
}

/** Fills a list with its first entries, and a button with what is left. */
function fill(list, button, entries, most, toPart, onMore) {
  byId(list).replaceChildren(...entries.slice(0, most).map(toPart));
  const left = entries.length - most;
  byId(button).hidden = left <= 0;
  byId(button).textContent = `Show more (${left} left)`;
  byId(button).onclick = onMore;
}

function drawPlan() {
  if (!data.plan) return;
  byId('plan').hidden = false;
  const { steps, outcome } = data.plan;
  byId('steps-box').hidden = !steps.length;
  byId('steps-box').open = steps.length <= 10;
  byId('steps-title').textContent = plural(steps.length, 'action');
  byId('steps').replaceChildren(...steps.map(([title, nodes, parts]) => make('li', {}, title,
    ...(nodes ? [make('p', { className: 'about', textContent: nodes })] : []),
    ...parts.map(([text, isCommand]) => (isCommand ? commandPart(text) : make('p', { className: 'by-hand', textContent: text }))))));
  byId('outcome').textContent = outcome;
}
