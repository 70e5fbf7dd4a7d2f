'use strict';
// What the page's data says. Everything is text to the page, whatever a name may contain: elements
// get their content by textContent alone.

const data = JSON.parse(document.getElementById('data').textContent);
const NOTHING = 9;
/** What is found for one image on one node, and how a pod does there. */
const LEVELS = [
  { sign: '\u2713', word: 'starts' },
  { sign: '!', word: 'warning' },
  { sign: '?', word: 'not known' },
  { sign: '\u2715', word: 'does not start' },
];
/** How a workload starts, the worst first. */
const STARTS = ['\u2715', '\u2205', '\u25d1', '?', '!', '\u2713'];

const hostCount = data.hosts.length;
const imageCount = data.images.length;
const kindCount = data.kinds.length;
const buildOf = (host) => data.hosts[host][2];
const hostName = (host) => data.hosts[host][0] ?? buildOf(host) ?? '?';
const kindOf = (host) => data.kinds[data.hosts[host][1]];
const kindName = (kind) => [kind.build ?? 'version not known', kind.release].filter(Boolean).join(' \u00b7 ');
/** `17763.973` before `17763.1158`, and what is not known last. */
function byBuild(a, b) {
  const numbers = (kind) => (data.kinds[kind].build ?? '99999').split('.').map((part) => parseInt(part, 10));
  const [[buildA, revisionA = 0], [buildB, revisionB = 0]] = [numbers(a), numbers(b)];
  return buildA - buildB || revisionA - revisionB;
}

const kindSizes = new Array(kindCount).fill(0);
for (const [, kind] of data.hosts) kindSizes[kind] += 1;

const plural = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;
const matches = (text, query) => query.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));

/** For each selection its hosts, with the place of each kind's findings; kinds are counted as they come. */
const selections = data.selections.map((text) => {
  const bits = atob(text);
  const groupOf = new Map();
  const hosts = [];
  const has = new Uint8Array(hostCount);
  for (let host = 0; host < hostCount; host++) {
    if (!(bits.charCodeAt(host >> 3) >> (host & 7) & 1)) continue;
    const kind = data.hosts[host][1];
    if (!groupOf.has(kind)) groupOf.set(kind, groupOf.size);
    hosts.push(host);
    has[host] = 1;
  }
  return { hosts, has, groupOf };
});

const placementOf = [];
for (const placement of data.placements) {
  if (placement.workload !== null) placementOf[placement.workload] = placement;
}

const findingFor = (placement, findings, kind) =>
  data.findings[findings[selections[placement.selection].groupOf.get(kind)]];

/** What becomes of a workload's pods on nodes of a kind: all of its containers have to start. */
function levelOf(workload, kind) {
  const placement = placementOf[workload];
  if (!placement || !selections[placement.selection].groupOf.has(kind)) return NOTHING;
  const levels = placement.images.map(([, findings]) => findingFor(placement, findings, kind).level);
  return levels.length ? Math.max(...levels) : 2;
}

const takesPart = (placement, query) => !query
  || (placement.workload !== null && matches(workloadText(placement.workload), query));

const workloadText = (workload) => `${data.workloads[workload].kind} ${data.workloads[workload].name}`;

function hostText(host) {
  const kind = kindOf(host);
  return `${hostName(host)} ${buildOf(host) ?? ''} ${kind.release} ${kind.runtime}`;
}

/** The worst that can happen for every host and image, as far as the workload filter lets through. */
function worstCells(query) {
  const cells = new Uint8Array(hostCount * imageCount).fill(NOTHING);
  for (const placement of data.placements) {
    if (!takesPart(placement, query)) continue;
    const { hosts, groupOf } = selections[placement.selection];
    for (const [image, findings] of placement.images) {
      const levels = findings.map((finding) => data.findings[finding].level);
      for (const host of hosts) {
        const level = levels[groupOf.get(data.hosts[host][1])];
        const place = host * imageCount + image;
        if (cells[place] === NOTHING || level > cells[place]) cells[place] = level;
      }
    }
  }
  return cells;
}
