// The two tables: nodes and images, workloads and kinds of nodes. Each view says what its rows and
// columns are, what a cell is, and how one of them is explained.

let cells = new Uint8Array(0);
let cellsFor = null;

const query = (what) => byId(`find-${what}`).value.trim();

const nodesView = {
  rowWord: 'node',
  columnWord: 'image',
  rowSize: (row) => row.length,
  rowTotal: hostCount,
  columnTotal: imageCount,
  cell: (row, image) => cells[row[0] * imageCount + image],

  /** Hosts that have the same answers everywhere are one row, if that is asked for. */
  rows() {
    if (cellsFor !== query('workload')) {
      cellsFor = query('workload');
      cells = worstCells(cellsFor);
    }
    const nodeQuery = query('node');
    const hosts = data.hosts.map((_, host) => host).filter((host) => !nodeQuery || matches(hostText(host), nodeQuery));
    if (!byId('grouped').checked) return hosts.map((host) => [host]);
    const known = new Map();
    for (const host of hosts) {
      const own = cells.subarray(host * imageCount, (host + 1) * imageCount);
      const key = `${data.hosts[host][1]}:${own.join('')}`;
      if (known.has(key)) known.get(key).push(host);
      else known.set(key, [host]);
    }
    return [...known.values()].sort((a, b) => byBuild(data.hosts[a[0]][1], data.hosts[b[0]][1]));
  },

  columns(rows) {
    const imageQuery = query('image');
    const images = data.images.map((_, image) => image);
    const worst = images.map((image) => rows.reduce((most, row) => {
      const level = nodesView.cell(row, image);
      return level === NOTHING ? most : Math.max(most, level);
    }, -1));
    // What does not start is on the first page, whatever it is called.
    return images.filter((image) => worst[image] >= 0 && (!imageQuery || matches(data.images[image][0], imageQuery)))
      .sort((a, b) => worst[b] - worst[a]);
  },

  /** What has no column although nothing hides it. */
  hidden() {
    if (query('workload') || query('image') || query('node')) return [];
    const nowhere = data.images.filter((_, image) => !data.hosts.some((__, host) => cells[host * imageCount + image] !== NOTHING));
    const idle = data.hosts.filter((_, host) => !data.images.some((__, image) => cells[host * imageCount + image] !== NOTHING));
    return [
      nowhere.length ? `${nowhere.length === 1 ? '1 image lands' : `${nowhere.length} images land`} on no node: ${someOf(nowhere.map(([, name]) => name)).join('')}.` : '',
      idle.length ? `No pod lands on ${plural(idle.length, 'node')}: ${someOf(idle.map(([name, , build]) => name ?? build ?? '?'), 5).join('')}.` : '',
    ].filter(Boolean);
  },

  /** What makes nodes a group, and how many there are; a node by itself is called by its name. */
  rowHeading(row, rows) {
    const kind = kindName(kindOf(row[0]));
    const alike = rows.filter((other) => data.hosts[other[0]][1] === data.hosts[row[0]][1]).length > 1;
    const name = hostName(row[0]);
    if (row.length > 1) return [`${kind} \u00b7 ${plural(row.length, 'node')}`, alike ? `like ${name}` : ''];
    return name === buildOf(row[0]) ? [kind, ''] : [name, kind];
  },
  rowLink: (row) => ['node', hostName(row[0])],
  columnHeading(image) {
    const [label, short] = data.images[image];
    const [, path, name, tag] = /^(.*\/)?([^/:@]+)(.*)$/.exec(short) ?? [null, '', short, ''];
    return { title: label, first: name, second: `${tag.replace(/^[:@]/, '')}${path ? ` \u00b7 ${path.slice(0, -1)}` : ''}` };
  },
  choose: (row, image) => detailsOfCell(row, image),
};

const workloadsView = {
  rowWord: 'workload',
  columnWord: 'kind of node',
  rowSize: () => 1,
  rowTotal: data.workloads.length,
  columnTotal: kindCount,
  cell: levelOf,

  rows() {
    const [workloadQuery, imageQuery, nodeQuery] = ['workload', 'image', 'node'].map(query);
    const hasImage = (workload) => placementOf[workload].images.some(([image]) => matches(data.images[image][0], imageQuery));
    const kinds = kindsFor(nodeQuery);
    const workloads = data.workloads.map((_, workload) => workload).filter((workload) =>
      (!workloadQuery || matches(workloadText(workload), workloadQuery))
      && (!imageQuery || hasImage(workload))
      && (!nodeQuery || kinds.some((kind) => levelOf(workload, kind) !== NOTHING)));
    return workloads.sort((a, b) => data.workloads[a].starts - data.workloads[b].starts);
  },
  columns: () => kindsFor(query('node')),
  hidden: () => [],
  rowHeading(workload) {
    const { name, nodes, starts, starts_on: on } = data.workloads[workload];
    const without = starts ? 'lands on no node' : 'starts nowhere';
    return [name, nodes ? `starts on ${on} of ${plural(nodes, 'node')}` : without];
  },
  rowLink: (workload) => ['workload', data.workloads[workload].name],
  rowSign: (workload) => startsSign(data.workloads[workload].starts),
  columnHeading(kind, hasWords) {
    const { build, release } = data.kinds[kind];
    const size = plural(kindSizes[kind], 'node');
    return {
      title: `${kindName(data.kinds[kind])} \u00b7 ${size}`,
      first: build ?? '?',
      second: hasWords ? `${release} \u00b7 ${size}` : size,
    };
  },
  choose: (workload) => detailsOfWorkload(workload),
};

function kindsFor(nodeQuery) {
  const has = new Set();
  data.hosts.forEach(([, kind], host) => { if (!nodeQuery || matches(hostText(host), nodeQuery)) has.add(kind); });
  return data.kinds.map((_, kind) => kind).filter((kind) => has.has(kind)).sort(byBuild);
}

// What is behind a cell, a workload, a node.

/** Every answer for an image on a host, the worst first, each with its workloads. */
function answersFor(host, wanted) {
  const answers = new Map();
  for (const placement of data.placements) {
    if (!selections[placement.selection].has[host] || !takesPart(placement, query('workload'))) continue;
    for (const [image, findings] of placement.images) {
      if (!wanted(image)) continue;
      const finding = findingFor(placement, findings, data.hosts[host][1]);
      if (!answers.has(finding)) answers.set(finding, { images: new Set(), workloads: [] });
      answers.get(finding).images.add(image);
      if (placement.workload !== null) answers.get(finding).workloads.push(placement.workload);
    }
  }
  return [...answers].sort(([a], [b]) => b.level - a.level);
}

const whereOf = (row) => (row.length === 1 ? hostName(row[0]) : `${row.length} nodes like ${hostName(row[0])}`);
const kindInWords = (host) => [kindOf(host).release, buildOf(host) ?? kindOf(host).build, kindOf(host).runtime].filter(Boolean).join(', ');

function detailsOfCell(row, image) {
  const host = row[0];
  const parts = [
    make('h3', { textContent: data.images[image][0] }),
    make('p', { className: 'about' }, 'on ', linkTo('node', hostName(host), whereOf(row)), `: ${kindInWords(host)}`),
  ];
  const answers = answersFor(host, (own) => own === image);
  if (!answers.length) parts.push(make('p', { textContent: 'No pod with this image can be put on this node.' }));
  for (const [finding, { workloads }] of answers) {
    const about = [`${finding.isolation} isolation${finding.build ? `, image version ${finding.build}` : ''}`];
    if (workloads.length) about.push(workloadsOf(workloads));
    const part = findingPart(finding, about);
    part.append(...fixParts(finding.fix, finding.commands));
    parts.push(part);
  }
  const everywhere = data.problems.filter((problem) => problem.images.includes(image) && !problem.hosts_in_words);
  for (const problem of everywhere) parts.push(findingPart(data.findings[problem.finding], []));
  return parts;
}

function detailsOfWorkload(workload) {
  const { name, kind, manifest, starts, outlook } = data.workloads[workload];
  const parts = [make('h3', {}, startsSign(starts), make('span', { textContent: `${name} ${outlook}` })), make('p', { className: 'about', textContent: manifest ? `${kind} in ${manifest}` : kind })];
  const own = data.cases.find((one) => one.workloads.includes(workload));
  for (const [fix, commands] of own?.fixes ?? []) parts.push(...fixParts(fix, commands));
  if (own && own.workloads.length > 1) parts.push(make('p', { className: 'about', textContent: `This mends ${plural(own.workloads.length - 1, 'other workload')} too.` }));
  const placement = placementOf[workload];
  const { groupOf, hosts } = selections[placement.selection];
  if (!hosts.length) parts.push(...(own?.whys ?? []).map(([why]) => make('p', { textContent: why })));
  for (const [image, findings] of placement.images) {
    parts.push(make('h4', { textContent: data.images[image][0] }));
    const kindsOf = new Map();
    for (const [kindIndex, group] of groupOf) {
      const finding = data.findings[findings[group]];
      if (!kindsOf.has(finding)) kindsOf.set(finding, []);
      kindsOf.get(finding).push(kindIndex);
    }
    for (const [finding, kinds] of [...kindsOf].sort(([a], [b]) => b.level - a.level)) {
      const names = kinds.map((kindIndex) => {
        const landing = hosts.filter((host) => data.hosts[host][1] === kindIndex);
        return linkTo('node', hostName(landing[0]), `${plural(landing.length, 'node')} of ${kindName(data.kinds[kindIndex])}`);
      });
      parts.push(findingPart(finding, [['on ', ...someOf(names)]]));
    }
  }
  for (const problem of data.problems.filter((one) => one.workloads.includes(workload) && !one.hosts_in_words)) {
    const finding = data.findings[problem.finding];
    const part = findingPart(finding, []);
    part.append(...fixParts(finding.fix, finding.commands));
    parts.push(part);
  }
  return parts;
}

function detailsOfNode(row) {
  const host = row[0];
  const parts = [make('h3', { textContent: whereOf(row) }), make('p', { className: 'about', textContent: kindInWords(host) })];
  const answers = answersFor(host, () => true);
  if (!answers.length) parts.push(make('p', { textContent: 'No pod can be put on this node.' }));
  const good = answers.filter(([finding]) => finding.level === 0);
  for (const [finding, { images, workloads }] of answers.filter(([{ level }]) => level > 0)) {
    const about = [someOf([...images].map((image) => data.images[image][0]), 5)];
    if (workloads.length) about.push(workloadsOf([...new Set(workloads)]));
    parts.push(findingPart(finding, about));
  }
  const starting = new Set(good.flatMap(([, { images }]) => [...images]));
  if (starting.size) {
    parts.push(make('p', { className: 'verdict' }, levelSign(0), make('strong', { textContent: `${plural(starting.size, 'image')} ${starting.size === 1 ? 'starts' : 'start'}` })),
      make('p', { className: 'about' }, ...someOf([...starting].map((image) => data.images[image][1]), 12)));
  }
  return parts;
}
