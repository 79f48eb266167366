// @ts-check
'use strict';
// What was found, how fast replies came, and the vault: each made when its tab is first opened.

/** How many lines of one group are shown before the rest is counted. */
const SHOWN = 8;
/** How many sessions are listed with their times. */
const SESSIONS = 100;

/** A line that leads to a row. @param {Capture} report @param {number} row @param {string} end @param {(row: number) => void} open */
function findingLine(report, row, end, open) {
  // Of a refusal, what was asked says more than the reply.
  const request = report.has(row, FLAG.refused) ? report.rowOf.get(report.columns.reply[row]) : undefined;
  const told = request ?? row;
  const button = make(
    'button',
    'finding',
    make('span', 'quiet', '#' + report.columns.record[told]),
    dot(report.stream(row).service),
    make('span', 'say', ...nameParts(report.name(told)), ' ', make('span', 'quiet', report.info[told] || '')),
    make('span', 'quiet', end),
  );
  button.addEventListener('click', () => open(row));
  return button;
}

/** A group of lines under a heading. @param {string} title @param {Capture} report @param {number[]} rows @param {(row: number) => string} end @param {(row: number) => void} open */
function group(title, report, rows, end, open) {
  const box = make('div', '', make('h3', '', title + ' ', make('span', 'quiet', count(rows.length))));
  const lines = () => rows.slice(0, SHOWN).map((row) => findingLine(report, row, end(row), open));
  box.append(...lines());
  if (rows.length > SHOWN) {
    const more = make('button', 'link quiet', `and ${count(rows.length - SHOWN)} more`);
    more.addEventListener('click', () =>
      more.replaceWith(...rows.slice(SHOWN, 2000).map((row) => findingLine(report, row, end(row), open))),
    );
    box.append(more);
  }
  return box;
}

/** A conclusion, which leads to what shows it. @param {Conclusion} conclusion @param {(conclusion: Conclusion) => void} lead */
function conclusionLine(conclusion, lead) {
  const { weight, text, more } = conclusion;
  const classes = { stop: 'refused', trouble: 'warning' }[weight] ?? 'quiet';
  const button = make('button', 'conclusion', make('b', classes, weight), make('span', '', text));
  if (more) button.title = more;
  button.addEventListener('click', () => lead(conclusion));
  return button;
}

/** What is wrong; refused, unanswered, damage and problems. @param {Capture} report @param {(row: number) => void} open @param {(conclusion: Conclusion) => void} lead */
function findings(report, open, lead) {
  /** @type {number[]} */
  const requests = [];
  /** @type {number[]} */
  const events = [];
  const refused = new Map(),
    damage = [],
    errors = [],
    warnings = [];
  for (let row = 0; row < report.rows; row++) {
    if (report.has(row, FLAG.refused)) {
      const why = report.meta.texts[report.columns.why[row]] || report.name(row);
      refused.set(why, [...(refused.get(why) || []), row]);
    }
    if (report.has(row, FLAG.unanswered)) (report.has(row, FLAG.event) ? events : requests).push(row);
    else if (
      report.has(row, FLAG.event) &&
      ['gap', 'undecoded', 'resync', 'limit', 'wrong_key', 'no_key'].includes(report.name(row))
    )
      damage.push(row);
    if (report.has(row, FLAG.error)) errors.push(row);
    else if (report.has(row, FLAG.warning)) warnings.push(row);
  }
  // The requests themselves, where they are in the page.
  const unanswered = requests.length ? requests : events;
  const when = (/** @type {number} */ row) => clock(report, row).slice(0, 12);
  const took = (/** @type {number} */ row) =>
    report.columns.elapsed[row] >= 0 ? `${milliseconds(report.columns.elapsed[row])} ms` : when(row);
  const all = make('div', 'columns');
  const { conclusions } = report.meta;
  const concluded = conclusions.map((conclusion) => conclusionLine(conclusion, lead));
  if (concluded.length) all.append(make('div', '', make('h3', '', 'What is wrong'), ...concluded));
  for (const [why, rows] of refused) all.append(group('× Refused: ' + why, report, rows, took, open));
  const gaps = unanswered.length > 0 && damage.some((row) => report.name(row) === 'gap');
  if (unanswered.length)
    all.append(
      group(
        '◌ Unanswered' + (gaps ? ' (some connections have gaps: perhaps answered and lost)' : ''),
        report,
        unanswered,
        when,
        open,
      ),
    );
  if (damage.length) all.append(group('Damage', report, damage, when, open));
  if (errors.length) all.append(group('● Errors', report, errors, when, open));
  if (warnings.length) all.append(group('▲ Warnings', report, warnings, when, open));
  if (!all.childElementCount) all.append(make('p', 'quiet', 'Nothing was refused, unanswered, lost or in error.'));
  return {
    element: all,
    rows: [...[...refused.values()].flat(), ...unanswered, ...damage, ...errors, ...warnings].sort((a, b) => a - b),
  };
}

/** The value at a share of sorted values, as `stats` counts it: the smallest that at least this share do not exceed. @param {number[]} sorted @param {number} share */
function percentile(sorted, share) {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}

/** One row a session: what became of its requests, and how much of the slowest reply's time the network took. @param {Capture} report @param {(row: number) => void} open */
function sessionTimes(report, open) {
  const some = (/** @type {number | null} */ value) => (value === null ? '' : milliseconds(value));
  const table = make('table', 'latency', make('caption', '', 'Network or server?'));
  const heads = [
    'session',
    'requests',
    'refused',
    'no reply',
    'p50 ms',
    'p95 ms',
    'max ms',
    'slowest',
    'of that network',
    'and server',
  ];
  heads.push('to the server and back', 'to the client and back');
  table.append(make('thead', '', make('tr', '', ...heads.map((head) => heading(head, 'col')))));
  const body = make('tbody');
  for (const session of report.meta.sessions.slice(0, SESSIONS)) {
    const row = session.slowest === null ? undefined : report.rowOf.get(session.slowest);
    const link = make('button', 'link', session.slowest === null ? '' : '#' + session.slowest);
    if (row !== undefined) link.addEventListener('click', () => open(row));
    const wire = session.slowest_network;
    const cells = [
      count(session.sent),
      count(session.refused),
      session.unanswered ? make('span', 'warning', count(session.unanswered)) : '0',
      some(session.p50),
      some(session.p95),
      some(session.max),
      row === undefined ? link.textContent || '' : link,
      some(wire),
      wire === null || session.max === null ? '' : milliseconds(session.max - wire),
      some(session.to_server),
      some(session.to_client),
    ];
    const name = heading(session.title, 'row');
    if (session.inferred) name.firstElementChild?.classList.add('inferred');
    body.append(make('tr', '', name, ...cells.map((cell) => make('td', '', cell))));
  }
  table.append(body);
  const more = report.meta.sessions.length - SESSIONS;
  const unknown = report.meta.sessions.every((session) => session.to_server === null && session.network === null);
  return make(
    'div',
    'wide-table',
    table,
    more > 0 ? make('p', 'quiet', `and ${counted(more, 'more session')}`) : null,
    unknown ? make('p', 'quiet', 'What the network takes is not known: the capture shows no TCP opening.') : null,
  );
}

/** One session a block: how it stands, its connections, and its story. @param {Capture} report @param {(row: number) => void} open @param {(filter: string) => void} keep */
function sessions(report, open, keep) {
  const all = report.meta.sessions;
  const blocks = all.slice(0, SESSIONS).map((session, at) => {
    const name = make('span', session.inferred ? 'inferred' : '', session.title);
    const state = make('span', session.bad ? 'refused' : 'quiet', session.state);
    const [from, to] = [session.from, session.to].map((time) => time.slice(11, 19));
    const facts = [session.detail, `${from} to ${to}`, counted(session.sent, 'request')];
    if (session.refused) facts.push(`${count(session.refused)} refused`);
    if (session.unanswered) facts.push(`${count(session.unanswered)} never answered`);
    const said = make('span', 'quiet', facts.filter((fact) => fact).join(' · '));
    const only = make('button', 'link', 'its records');
    only.addEventListener('click', () => keep(`session == ${at + 1}`));
    const streams = report.meta.streams.filter((stream) => stream.session === at + 1);
    const connections = streams.slice(0, SHOWN).map((stream) => {
      const places = stream.places.map((place) => place.name).join(', ');
      const text = `${stream.service} ${stream.key}, ${stream.server}, ${stream.how}`;
      return make('p', 'quiet', dot(stream.service), text + (places ? `: ${places}` : ''));
    });
    if (streams.length > SHOWN) connections.push(make('p', 'quiet', `and ${count(streams.length - SHOWN)} more`));
    const steps = session.story.map(([record, time, text, bad]) => {
      const row = report.rowOf.get(record);
      const line = make(
        'button',
        'finding',
        make('span', 'quiet', '#' + record),
        make('span', 'quiet mono', time.slice(11, 23)),
        make('span', bad ? 'say refused' : 'say', text),
      );
      if (row !== undefined) line.addEventListener('click', () => open(row));
      return line;
    });
    const left = session.steps_left_out;
    const summary = make('summary', '', `${session.number} `, name, ' ', state, ' ', said);
    const block = make('details', '', summary, make('p', '', only), ...connections, ...steps);
    if (left) block.append(make('p', 'quiet', `${counted(left, 'step')} left out`));
    if (block instanceof HTMLDetailsElement) block.open = all.length <= 3;
    return block;
  });
  const more = all.length - blocks.length;
  return make(
    'div',
    'sessions',
    ...blocks,
    more > 0 ? make('p', 'quiet', `and ${counted(more, 'more session')}`) : null,
  );
}

/** A heading of a table's column or row. @param {string} text @param {string} scope */
function heading(text, scope) {
  const cell = make('th', '', make('span', '', text));
  cell.setAttribute('scope', scope);
  return cell;
}

/** One row a type of request: a dot a reply on a logarithmic scale. @param {Capture} report @param {(row: number) => void} open */
function latency(report, open) {
  /** @type {Map<string, {service: string, replies: [number, number][], network: number[], unanswered: number}>} */
  const kinds = new Map();
  const kind = (/** @type {number} */ row) => {
    const name = report.name(row);
    const known = kinds.get(name) || { service: report.stream(row).service, replies: [], network: [], unanswered: 0 };
    kinds.set(name, known);
    return known;
  };
  for (let row = 0; row < report.rows; row++) {
    const request = report.rowOf.get(report.columns.reply[row]);
    if (request !== undefined && report.columns.network[row] > NETWORK.notLast) {
      kind(request).replies.push([report.columns.elapsed[row], row]);
      const network = report.network(row);
      if (network !== undefined) kind(request).network.push(network);
    }
    if (report.has(row, FLAG.unanswered) && !report.has(row, FLAG.event)) kind(row).unanswered++;
  }
  const all = [...kinds]
    .map(([name, { service, replies, network, unanswered }]) => {
      const sorted = replies.map((reply) => reply[0]).sort((a, b) => a - b);
      network.sort((a, b) => a - b);
      return { name, service, replies, network, unanswered, sorted, max: sorted[sorted.length - 1] ?? 0 };
    })
    .sort((a, b) => b.max - a.max);
  if (!all.length) return make('p', 'quiet', 'No replies were tied to requests.');
  // The lists are sorted.
  const least = all.reduce((least, one) => Math.min(least, one.sorted[0] ?? least, one.network[0] ?? least), Infinity);
  const low = Math.log10(Math.max(0.001, Math.min(least, 1e6))),
    high = Math.log10(Math.max(...all.map((one) => one.max), 0.01));
  const x = (/** @type {number} */ ms) =>
    2 + (96 * (Math.log10(Math.max(0.001, ms)) - low)) / Math.max(0.1, high - low);
  const table = make('table', 'latency');
  const cells = (/** @type {string} */ tag, /** @type {(string | Node)[]} */ ...texts) =>
    make('tr', '', ...texts.map((text) => make(tag, '', text)));
  const heads = cells('th', 'request', 'each reply', 'n', 'network ms', 'p50 ms', 'p95 ms', 'max ms', 'no reply');
  heads.children[1].className = 'plot';
  table.append(make('thead', '', heads));
  const body = make('tbody');
  for (const one of all) {
    const plot = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    plot.setAttribute('role', 'img');
    plot.setAttribute('aria-label', `${one.sorted.length} replies`);
    plot.setAttribute('class', serviceClass(one.service));
    const draw = (/** @type {string} */ shape, /** @type {Record<string, string>} */ given) => {
      const element = document.createElementNS('http://www.w3.org/2000/svg', shape);
      for (const [name, value] of Object.entries(given)) element.setAttribute(name, value);
      plot.append(element);
      return element;
    };
    const fill = 'var(--service, var(--other))';
    for (const [ms, row] of one.replies.slice(0, 400)) {
      const circle = draw('circle', { cx: x(ms) + '%', cy: '50%', r: '2.6', fill, 'fill-opacity': '.65' });
      circle.addEventListener('click', () => open(row));
    }
    const wire = one.network.length ? percentile(one.network, 0.5) : undefined;
    if (wire !== undefined) {
      const end = x(wire) + '%';
      const look = { stroke: 'currentColor', 'stroke-dasharray': '2 2' };
      draw('line', { x1: '0', x2: end, y1: '50%', y2: '50%', ...look });
      draw('line', { x1: end, x2: end, y1: '25%', y2: '75%', ...look });
    }
    if (one.sorted.length) {
      const half = x(percentile(one.sorted, 0.5)) + '%';
      draw('line', { x1: half, x2: half, y1: '15%', y2: '85%', stroke: 'currentColor', 'stroke-width': '2' });
      draw('circle', {
        cx: x(percentile(one.sorted, 0.95)) + '%',
        cy: '50%',
        r: '4.5',
        fill: 'none',
        stroke: 'currentColor',
      });
    }
    const figure = (/** @type {number} */ share) =>
      one.sorted.length ? milliseconds(percentile(one.sorted, share)) : '';
    const row = cells(
      'td',
      make('span', '', dot(one.service), ...nameParts(one.name)),
      plot,
      count(one.sorted.length),
      wire === undefined ? '' : milliseconds(wire),
      figure(0.5),
      figure(0.95),
      one.sorted.length ? milliseconds(one.max) : '',
      one.unanswered ? count(one.unanswered) : '·',
    );
    row.children[1].className = 'plot';
    if (one.sorted.length < 20) row.children[5].className = 'few';
    if (one.unanswered) row.children[7].className = 'warning';
    body.append(row);
  }
  table.append(body);
  return make(
    'div',
    '',
    sessionTimes(report, open),
    make(
      'p',
      'quiet',
      'Time from a request to its last reply. One dot a reply, on a logarithmic scale; the bar marks the median, the ring the 95th percentile. The dashed line ends at what the network takes of it (its median, where the capture shows it): what lies to the right of it is the time of the side that replies. Slanted: fewer than 20 replies, where that is hardly more than the maximum.',
    ),
    table,
  );
}

/** A symbol of a table as words: `kNodeType_PlayerInfoList` is "Player Info List", `kAgesIOwnFolder` "Ages I Own Folder". @param {string} symbol */
function plainWords(symbol) {
  const own = symbol.replace(/^k?[A-Z][A-Za-z]*_/, '').replace(/^k(?=[A-Z])/, '');
  return own.replace(/([a-z0-9])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$1$2 ').replace(/_/g, ' ');
}

/** The name that a field's text gives to its number: `node_type={"value":22,"name":"kNodeType_Folder"}`. @param {string} field */
function symbolOf(field) {
  return /^[^=]*=\{"value":-?\d+,"name":"(\w+)"\}$/.exec(field)?.[1];
}

/** What a node is called: its name, or the name that a table gives to one of its numbers, such as a folder's kind. @param {VaultNode} node */
function vaultName(node) {
  if (node.name) return `“${node.name}”`;
  const symbol = node.also.map(symbolOf).find((symbol) => symbol && symbol !== node.type);
  return symbol ? plainWords(symbol).replace(/ Folder$/, '') : '';
}

/** The vault as an indented tree. @param {Capture} report @param {(row: number) => void} open */
function vault(report, open) {
  const { vault: data } = report.meta;
  if (!data || !data.nodes.length) return make('p', 'quiet', 'This capture holds no vault nodes.');
  const nodes = new Map(data.nodes.map((node) => [node.id, node]));
  /** @type {Map<string, VaultLink[]>} */
  const children = new Map();
  /** @type {Map<string, VaultLink[]>} */
  const parents = new Map();
  for (const link of data.links) {
    children.set(link.parent, [...(children.get(link.parent) || []), link]);
    parents.set(link.child, [...(parents.get(link.child) || []), link]);
  }
  const nodeOf = (/** @type {string} */ id) =>
    nodes.get(id) || { id, type: null, name: null, also: [], fetched: false, deleted: false, said: [] };
  const holder = make('div'),
    said = make('aside');
  /** @type {Map<string, HTMLElement>} The line of each node where it is shown with what is below it. */
  const lines = new Map();
  /** Shows what is known of a node, and where the tree has it. */
  const select = (/** @type {string} */ id) => {
    const node = nodeOf(id);
    for (const line of holder.querySelectorAll('[aria-current]')) line.removeAttribute('aria-current');
    const line = lines.get(id);
    line?.setAttribute('aria-current', 'true');
    const list = make('dl');
    /** @param {string} title @param {VaultLink[]} links @param {'parent' | 'child'} end */
    const related = (title, links, end) => {
      if (!links.length) return;
      const all = links.slice(0, 40).map((link) => {
        const other = nodeOf(link[end]);
        const button = make(
          'button',
          link.gone ? 'link gone' : 'link',
          vaultName(other) || plainWords(other.type || '') || other.id,
        );
        button.addEventListener('click', () => goTo(other.id));
        return button;
      });
      const more = links.length > all.length ? ` and ${count(links.length - all.length)} more` : '';
      list.append(make('dt', '', title), make('dd', 'links', ...all, more));
    };
    related('in', parents.get(id) || [], 'parent');
    related('holds', children.get(id) || [], 'child');
    for (const field of node.also) {
      const at = field.indexOf('=');
      list.append(make('dt', '', field.slice(0, at)), make('dd', '', symbolOf(field) ?? field.slice(at + 1)));
    }
    said.replaceChildren(
      make(
        'h3',
        '',
        vaultName(node) || '(without a name)',
        ' ',
        make('span', 'quiet', `${node.id} · ${node.type || 'never fetched'}`),
      ),
      list,
      make('h3', '', 'What was said of it'),
      ...node.said.map(([record, text]) => {
        const row = report.rowOf.get(record);
        const line = make('button', 'finding', make('span', 'quiet', '#' + record), make('span', 'say', text));
        if (row !== undefined) line.addEventListener('click', () => open(row));
        return line;
      }),
    );
  };
  /** Unfolds what is above a node, and selects it. @param {string} id */
  const goTo = (id) => {
    const line = lines.get(id);
    for (let around = line?.parentElement; around && around !== holder; around = around.parentElement) {
      around.hidden = false;
      const twist = around.previousElementSibling?.querySelector('.twist');
      if (twist) fold(twist, around, false);
    }
    select(id);
    line?.scrollIntoView({ block: 'nearest' });
  };
  const fold = (/** @type {Element} */ twist, /** @type {HTMLElement} */ below, /** @type {boolean} */ folded) => {
    below.hidden = folded;
    twist.textContent = folded ? '▸' : '▾';
    twist.setAttribute('aria-expanded', String(!folded));
  };
  const add = (
    /** @type {HTMLElement} */ to,
    /** @type {string} */ id,
    /** @type {number} */ depth,
    /** @type {boolean} */ gone,
  ) => {
    const node = nodeOf(id);
    const again = lines.has(id);
    const [name, type] = [vaultName(node), plainWords(node.type || '') || 'never fetched'];
    const links = again || depth > 40 ? [] : children.get(id) || [];
    const say = make('span', 'say', name ? name + ' ' : '', make('span', 'quiet', type, again ? ' · shown above' : ''));
    const choose = make(
      'button',
      ['finding', node.fetched ? '' : 'missing', gone || node.deleted ? 'gone' : ''].join(' '),
      say,
      make('span', 'quiet', id),
    );
    choose.addEventListener('click', () => (again ? goTo(id) : select(id)));
    const twist = make(links.length ? 'button' : 'span', 'twist');
    const line = make('div', 'vault-line', twist, choose);
    to.append(line);
    if (!again) lines.set(id, line);
    if (!links.length) return;
    const below = make('div', 'vault-below');
    twist.setAttribute('aria-label', `what ${name || type} ${id} holds`);
    twist.addEventListener('click', () => fold(twist, below, !below.hidden));
    fold(twist, below, false);
    to.append(below);
    for (const link of links) add(below, link.child, depth + 1, link.gone);
  };
  for (const node of data.nodes) if (!parents.has(node.id)) add(holder, node.id, 0, false);
  for (const node of data.nodes) if (!lines.has(node.id)) add(holder, node.id, 0, false);
  select(data.nodes.find((node) => !parents.has(node.id) && children.has(node.id))?.id ?? data.nodes[0].id);
  const view = make('div', '', holder, said);
  view.id = 'vault-view';
  return make(
    'div',
    '',
    make(
      'p',
      'quiet',
      `${count(data.nodes.length)} nodes and ${count(data.links.length)} links. Grey: referred to, never fetched. Struck out: the link or the node was removed. What is in several places is shown once; its other lines lead there.` +
        (data.left_out ? ` ${count(data.left_out)} more are left out.` : ''),
    ),
    view,
  );
}
