// @ts-check
'use strict';
// Puts the page together: header, tabs, filter, keyboard, and the address, which holds the record, the filter and the view.

const VIEWS = ['messages', 'findings', 'sessions', 'latency', 'vault'];
/** Conclusions at the head of the page. */
const AT_HEAD = 3;
const KEYS_HELP = [
  ['j k ↓ ↑', 'next and previous message'],
  ['Enter', 'open the message; into its tree'],
  ['Esc', 'one step back'],
  ['/', 'filter'],
  ['n p', 'next and previous finding'],
  ['r', 'to the reply or the request'],
  ['1 to 5', 'views'],
  ['t', 'scale of the timeline'],
  ['i o 0', 'zoom in, zoom out, whole capture'],
  ['g G', 'first and last message'],
];

class App {
  /** @param {Capture} report */
  constructor(report) {
    this.report = report;
    this.view = 'messages';
    this.row = -1;
    this.asked = 0;
    this.made = new Set();
    this.found = findings(
      report,
      (row) => this.open(row),
      (conclusion) => this.lead(conclusion),
    );
    this.header();
    this.conclusions();
    this.tabs();
    this.list = new List(report, (row) => this.open(row));
    this.detail = new DetailView(
      report,
      (row) => this.open(row),
      () => this.shut(),
    );
    this.kept = this.list.rows;
    this.timeline = new Timeline(
      report,
      (row) => this.open(row),
      () => this.within(),
    );
    this.help();
    const filter = byId('filter');
    let wait = 0;
    filter.addEventListener('input', () => {
      clearTimeout(wait);
      wait = setTimeout(() => this.filter(filter.value), 120);
    });
    document.addEventListener('keydown', (event) => this.key(event));
    window.addEventListener('hashchange', () => this.follow());
    this.counted(report.rows);
    this.follow();
  }

  header() {
    const { meta } = this.report,
      { columns, rows } = this.report;
    byId('title').textContent = meta.captures.join(', ');
    document.title = meta.captures.join(', ') + ' · moulsniff';
    const length = rows ? columns.time[rows - 1] : 0,
      start = new Date(meta.start);
    const day = start.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });
    // Where nothing was read there is no time.
    const when = rows
      ? `${day}, ${timeOfDay(this.report, 0).slice(0, 12)} – ${timeOfDay(this.report, length).slice(0, 12)} UTC · ${(length / 1000).toPrecision(4)} s · `
      : 'nothing was read · ';
    byId('span').textContent = when + counted(meta.frames, 'frame');
    const who = meta.sessions.flatMap((session, i) => {
      if (!session.inferred) return [];
      const name = make('button', 'link inferred', session.title);
      name.title = 'Only the records of this session';
      name.addEventListener('click', () => {
        this.setFilter(`session == ${i + 1}`);
        this.show('messages');
      });
      return [name];
    });
    const parts = who.slice(0, 6).flatMap((name, i) => (i ? [', ', name] : [name]));
    if (meta.keys.length)
      parts.push(make('span', '', `${parts.length ? ' · ' : ''}opened with ${meta.keys.join(', ')}`));
    byId('who').replaceChildren(...parts);
    for (const text of meta.limits) byId('about').append(make('p', 'warning', text));
    let messages = 0,
      events = 0,
      unanswered = 0,
      refused = 0;
    for (let row = 0; row < rows; row++) {
      const flags = columns.flags[row];
      if (flags & FLAG.event) events++;
      else messages++;
      if (flags & FLAG.unanswered && !(flags & FLAG.event)) unanswered++;
      if (flags & FLAG.refused) refused++;
    }
    const figure = (
      /** @type {string} */ name,
      /** @type {(Node | string)[]} */ value,
      /** @type {string} */ small,
      /** @type {string} */ filter,
    ) => {
      const button = make(
        'button',
        'figure',
        make('span', 'quiet', name),
        make('b', '', ...value),
        make('small', 'quiet', small),
      );
      button.addEventListener('click', () => {
        this.setFilter(filter);
        this.show('messages');
      });
      return button;
    };
    const { error, warning, note } = meta.problems,
      bytes = meta.bytes;
    const understood = ((bytes.explained + bytes.opaque) / bytes.payload) * 100;
    const share = understood === 100 ? '100 %' : `${Math.min(99.99, understood).toFixed(2)} %`;
    const bar = make('span');
    bar.id = 'share';
    const whole = Math.max(1, bytes.payload + bytes.lost),
      words = [];
    for (const kind of ['explained', 'opaque', 'undecoded', 'closed', 'lost']) {
      if (!bytes[kind]) continue;
      const part = make('i', kind);
      part.style.width = `${(bytes[kind] / whole) * 100}%`;
      bar.append(part);
      words.push(`${count(bytes[kind])} ${kind === 'explained' ? 'in fields' : kind}`);
    }
    const understanding = make(
      'div',
      'figure',
      make('span', 'quiet', 'Bytes understood'),
      make('b', '', bytes.payload ? share : 'nothing read'),
      bar,
      make('small', 'quiet', words.join(', ')),
    );
    byId('figures').replaceChildren(
      figure('Messages', [count(messages)], `+ ${counted(events, 'event')}`, ''),
      figure('Sessions', [count(meta.sessions.length)], counted(meta.streams.length, 'connection'), ''),
      figure(
        'Unanswered',
        [make('span', 'warning shape', '◌'), count(unanswered)],
        `of ${count(meta.requests)} requests`,
        'is:unanswered',
      ),
      figure('Refused', [make('span', 'refused shape', '×'), count(refused)], 'by the other side', 'is:refused'),
      figure(
        'Problems',
        [
          make('span', 'error shape', '●'),
          count(error),
          ' ',
          make('span', 'warning shape', '▲'),
          count(warning),
          ' ',
          make('span', 'quiet shape', '∘'),
          make('span', 'quiet', count(note)),
        ],
        'errors, warnings, notes',
        error ? 'is:error' : 'is:warning',
      ),
      understanding,
    );
  }

  /** The heaviest conclusions, above everything else. */
  conclusions() {
    const { conclusions } = this.report.meta;
    const heavy = conclusions.filter((conclusion) => conclusion.weight !== 'hint');
    const shown = heavy.slice(0, AT_HEAD);
    const lines = shown.map((conclusion) => conclusionLine(conclusion, (one) => this.lead(one)));
    if (conclusions.length > shown.length) {
      const words = `${count(conclusions.length - shown.length)} ${shown.length ? 'more' : 'worth knowing'}`;
      const more = make('button', 'link quiet', words);
      more.addEventListener('click', () => this.show('findings'));
      lines.push(more);
    }
    byId('conclusions').replaceChildren(...lines);
    byId('conclusions').hidden = !shown.length;
  }

  /** Leads to what shows a conclusion: its records, or those of its frames or its session. @param {Conclusion} conclusion */
  async lead({ records = [], frames = [], session }) {
    const rows = records.flatMap((record) => this.report.rowOf.get(record) ?? []);
    let filter = '';
    if (rows.length > 1) filter = `record in {${records.join(', ')}}`;
    else if (!rows.length && frames.length) filter = `frame in {${frames.join(', ')}}`;
    else if (!rows.length && session) filter = `session == ${session}`;
    else if (!rows.length) return;
    this.timeline.zoom(0, 1);
    byId('filter').value = filter;
    await this.filter(filter);
    const first = rows[0] ?? this.list.rows[0];
    if (first === undefined) this.show('messages');
    else this.open(first);
  }

  tabs() {
    const names = {
      messages: 'Messages',
      findings: 'Findings',
      sessions: 'Sessions',
      latency: 'Latency',
      vault: 'Vault',
    };
    byId('tabs').replaceChildren(
      ...VIEWS.map((view) => {
        const tab = make('button', '', names[/** @type {keyof typeof names} */ (view)]);
        tab.id = 'tab-' + view;
        tab.setAttribute('role', 'tab');
        tab.setAttribute('aria-controls', 'view-' + view);
        tab.setAttribute('aria-selected', String(view === this.view));
        tab.addEventListener('click', () => this.show(view));
        return tab;
      }),
    );
  }

  /** @param {string} view */
  show(view) {
    this.view = view;
    const makers = {
      findings: () => this.found.element,
      sessions: () =>
        sessions(
          this.report,
          (row) => this.open(row),
          (filter) => {
            this.setFilter(filter);
            this.show('messages');
          },
        ),
      latency: () => latency(this.report, (row) => this.open(row)),
      vault: () => vault(this.report, (row) => this.open(row)),
    };
    if (view in makers && !this.made.has(view)) {
      byId('view-' + view).replaceChildren(makers[/** @type {keyof typeof makers} */ (view)]());
      this.made.add(view);
    }
    for (const other of VIEWS) {
      byId('view-' + other).hidden = other !== view;
      byId('tab-' + other).setAttribute('aria-selected', String(other === view));
    }
    this.remember();
  }

  help() {
    const list = make('dl');
    for (const [keys, text] of KEYS_HELP) list.append(make('dt', 'mono', keys), make('dd', '', text));
    const close = make('button', '', 'Close');
    const dialog = byId('help');
    close.addEventListener('click', () => dialog.close());
    dialog.replaceChildren(
      make('h2', '', 'Keys'),
      list,
      make('h2', '', 'Filter'),
      make(
        'p',
        '',
        'Words that a row must have, -word that it must not have, "exact words", #134, is:refused, is:unanswered, is:warning. Conditions as -Y has them: session == 2 and service in {auth, game}, elapsed_ms > 10, not refused, time >= 10:16, info matches "a door", and any field of the trees: node_id == 1001, *.name contains "Door".',
      ),
      make('p', 'quiet', `Made by ${this.report.meta.program}. This file asks nothing of any network.`),
      close,
    );
    byId('help-open').addEventListener('click', () => dialog.showModal());
  }

  /** Opens a row in the message view. @param {number} row */
  open(row) {
    if (this.view !== 'messages') this.show('messages');
    this.row = row;
    if (!this.timeline.shows(row)) this.timeline.zoom(0, 1);
    this.list.select(row);
    this.timeline.select(row);
    this.detail.show(row);
    this.remember();
  }

  shut() {
    this.row = -1;
    this.detail.show(-1);
    this.list.draw();
    byId('list-scroll').focus();
    this.remember();
  }

  /** @param {string} text */
  setFilter(text) {
    byId('filter').value = text;
    this.filter(text);
  }

  /** @param {string} text */
  async filter(text) {
    const asked = ++this.asked,
      box = byId('filter');
    try {
      const rows = await filterRows(
        this.report,
        text,
        () => this.asked !== asked,
        (done) => {
          byId('count').textContent = `looking … ${Math.round(done * 100)} %`;
        },
      );
      if (!rows || this.asked !== asked) return;
      box.setAttribute('aria-invalid', 'false');
      this.kept = rows;
      this.within();
    } catch (error) {
      box.setAttribute('aria-invalid', 'true');
      byId('count').textContent = error instanceof Error ? error.message : String(error);
    }
    this.remember();
  }

  /** Lists the rows that the filter keeps, of the part that the timeline shows. */
  within() {
    const whole = this.timeline.isWhole();
    const rows = whole ? this.kept : this.kept.filter((row) => this.timeline.shows(row));
    this.list.show(rows);
    // The open record stays in sight.
    if (this.row >= 0) this.list.select(this.row);
    this.counted(rows.length);
    this.remember();
  }

  /** @param {number} shown */
  counted(shown) {
    const { rows, meta } = this.report;
    const part = this.timeline && !this.timeline.isWhole() ? ' of this part of the time' : '';
    const folded = meta.folded ? `, ${count(meta.folded)} more folded away` : '';
    byId('count').textContent =
      (shown === rows ? counted(rows, 'record') : `${count(shown)} of ${counted(rows, 'record')}`) + part + folded;
  }

  /** Writes the place into the address, so that a link leads there. */
  remember() {
    const parts = [];
    if (this.row >= 0) parts.push('record=' + this.report.columns.record[this.row]);
    const filter = byId('filter').value;
    if (filter) parts.push('q=' + encodeURIComponent(filter));
    if (this.view !== 'messages') parts.push('view=' + this.view);
    const [from, to] = this.timeline?.range ?? [0, 1];
    if (to - from < 1) parts.push(`t=${from.toFixed(5)},${to.toFixed(5)}`);
    history.replaceState(null, '', parts.length ? '#' + parts.join('&') : '#');
  }

  /** Goes where the address leads. */
  follow() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const [from, to] = (wanted.get('t') || '').split(',').map(Number);
    if (to > from) this.timeline.zoom(from, to);
    const view = wanted.get('view') || '',
      query = wanted.get('q');
    if (query) this.setFilter(query);
    const row = this.report.rowOf.get(Number(wanted.get('record')));
    if (row !== undefined) this.open(row);
    if (VIEWS.includes(view)) this.show(view);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const typing = event.target instanceof HTMLInputElement;
    if (event.ctrlKey || event.altKey || event.metaKey || byId('help').open) return;
    if (event.key === 'Escape') {
      if (typing && byId('filter').value) this.setFilter('');
      else if (typing) byId('list-scroll').focus();
      else if (this.row >= 0) this.shut();
      else if (byId('filter').value) this.setFilter('');
      return;
    }
    if (typing && event.key !== 'Enter') return;
    const acts = /** @type {Record<string, () => void>} */ ({
      j: () => this.step(1),
      ArrowDown: () => this.step(1),
      k: () => this.step(-1),
      ArrowUp: () => this.step(-1),
      PageDown: () => this.step(20),
      PageUp: () => this.step(-20),
      g: () => this.step(-Infinity),
      G: () => this.step(Infinity),
      Home: () => this.step(-Infinity),
      End: () => this.step(Infinity),
      Enter: () => this.enter(),
      '/': () => byId('filter').focus(),
      n: () => this.finding(1),
      p: () => this.finding(-1),
      r: () => this.partner(),
      t: () => this.timeline.setScale({ time: 'idle', idle: 'order', order: 'time' }[this.timeline.scale] ?? 'time'),
      i: () => this.timeline.zoomBy(0.5),
      o: () => this.timeline.zoomBy(2),
      0: () => this.timeline.zoom(0, 1),
      '?': () => byId('help').showModal(),
      1: () => this.show('messages'),
      2: () => this.show('findings'),
      3: () => this.show('sessions'),
      4: () => this.show('latency'),
      5: () => this.show('vault'),
    });
    const act = acts[event.key];
    if (!act || (event.target instanceof HTMLButtonElement && event.key === 'Enter')) return;
    event.preventDefault();
    act();
  }

  /** @param {number} by */
  step(by) {
    if (this.view !== 'messages') return;
    const row = this.list.move(by);
    if (row !== undefined && this.row >= 0) this.open(row);
  }

  enter() {
    if (this.row >= 0 && this.row === this.list.selected) byId('tree')?.focus();
    else if (this.list.selected >= 0) this.open(this.list.selected);
    else if (this.list.rows.length) this.open(this.list.rows[0]);
  }

  /** To the next finding, or the one before. @param {number} by */
  finding(by) {
    const rows = this.found.rows,
      at = this.list.selected;
    const next = by > 0 ? rows.find((row) => row > at) : rows.findLast((row) => row < at);
    if (next !== undefined) this.open(next);
  }

  partner() {
    const row = this.list.selected;
    if (row < 0) return;
    const request = this.report.rowOf.get(this.report.columns.reply[row]);
    const reply = this.report.replyTo.get(this.report.columns.record[row]);
    const to = request ?? reply;
    if (to !== undefined) this.open(to);
  }
}

Capture.open().then(
  (report) => new App(report),
  (error) => {
    document.body.prepend(
      make(
        'p',
        'plain error',
        'This report could not be opened: ' + (error instanceof Error ? error.message : String(error)),
      ),
    );
  },
);
