// @ts-check
'use strict';
// The message list. Only the rows in sight exist as elements; they are made anew when the list scrolls. All captured text goes
// into text nodes.

/** Makes an element with classes and children. @param {string} tag @param {string} [classes] @param {(Node | string | null)[]} children */
function make(tag, classes = '', ...children) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  for (const child of children) if (child !== null && child !== '') element.append(child);
  return element;
}

/** The element with an id, which the page has. @param {string} id @returns {any} */
function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error('this page lacks #' + id);
  return element;
}

/** The class that gives a service its colour; the square beside it is never alone. @param {string} service */
function serviceClass(service) {
  return service === 'link' ? 'link-service' : service.replace(/[^a-z_]/g, '');
}

/** @param {string} service */
function dot(service) {
  return make('span', 'dot ' + serviceClass(service));
}

/** Splits `Cli2Auth_VaultNodeFetch` so that the part all messages of a service share can be quiet. @param {string} name */
function nameParts(name) {
  const split = /^([A-Za-z]+2[A-Za-z]+_)(.+)$/.exec(name);
  return split ? [make('span', 'prefix quiet', split[1]), make('span', '', split[2])] : [make('span', '', name)];
}

/** Beyond this height browsers stop counting pixels exactly; longer lists scroll in proportion. */
const MAX_HEIGHT = 8_000_000;

class List {
  /** @param {Capture} report @param {(row: number) => void} open */
  constructor(report, open) {
    this.report = report;
    this.open = open;
    /** @type {Uint32Array} The rows that the filter keeps. */
    this.rows = Uint32Array.from({ length: report.rows }, (_, row) => row);
    this.selected = -1;
    this.scroller = byId('list-scroll');
    this.space = byId('list-space');
    this.holder = byId('list-rows');
    this.height = 24;
    this.slowest = 0;
    for (let row = 0; row < report.rows; row++) {
      const elapsed = report.columns.elapsed[row];
      if (elapsed > this.slowest) this.slowest = elapsed;
    }
    const heads = [
      ['number', '#'],
      ['time', 'time, UTC'],
      ['', 'connection'],
      ['', '⇄'],
      ['', 'message'],
      ['', 'what it says'],
      ['size wide', 'bytes'],
      ['wide', 'reply'],
      ['wide', 'ms'],
      ['', 'worth a look'],
    ];
    byId('list-head').replaceChildren(
      ...heads.map(([classes, text]) => {
        const cell = make('span', classes, text === 'worth a look' ? make('span', 'hidden', text) : text);
        cell.setAttribute('role', 'columnheader');
        return cell;
      }),
    );
    this.scroller.addEventListener('scroll', () => this.schedule(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    this.holder.addEventListener('click', (/** @type {MouseEvent} */ event) => {
      const row = event.target instanceof Element ? event.target.closest('.row') : null;
      if (row instanceof HTMLElement) this.open(Number(row.dataset.row));
    });
    this.pending = false;
    this.show(this.rows);
  }

  /** Shows some rows, in order. @param {Uint32Array} rows */
  show(rows) {
    this.rows = rows;
    this.scroller.setAttribute('aria-rowcount', String(rows.length + 1));
    this.space.style.height = `${Math.min(MAX_HEIGHT, rows.length * this.height)}px`;
    this.draw();
  }

  schedule() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  /** The first place in sight, with its fraction. */
  top() {
    const full = this.rows.length * this.height;
    if (full <= MAX_HEIGHT) return this.scroller.scrollTop / this.height;
    const room = MAX_HEIGHT - this.scroller.clientHeight;
    return (this.scroller.scrollTop / room) * (this.rows.length - this.scroller.clientHeight / this.height);
  }

  draw() {
    const first = Math.max(0, Math.floor(this.top()) - 4);
    const many = Math.ceil(this.scroller.clientHeight / this.height) + 9;
    const elements = [];
    for (let place = first; place < Math.min(first + many, this.rows.length); place++) elements.push(this.row(place));
    this.holder.replaceChildren(...elements);
    const shift = this.scroller.scrollTop - (this.top() - first) * this.height;
    this.holder.style.transform = `translateY(${shift}px)`;
    const measured = elements[0]?.offsetHeight;
    if (measured && Math.abs(measured - this.height) > 0.5) {
      this.height = measured;
      this.space.style.height = `${Math.min(MAX_HEIGHT, this.rows.length * this.height)}px`;
    }
  }

  /** @param {number} place */
  row(place) {
    const report = this.report,
      row = this.rows[place],
      columns = report.columns;
    const stream = report.stream(row),
      server = report.has(row, FLAG.server),
      event = report.has(row, FLAG.event);
    const element = make('div', 'row ' + serviceClass(stream.service));
    element.setAttribute('role', 'row');
    element.setAttribute('aria-rowindex', String(place + 2));
    element.setAttribute('aria-selected', String(row === this.selected));
    element.id = 'row-' + row;
    element.dataset.row = String(row);
    const cell = (/** @type {string} */ classes, /** @type {(Node | string | null)[]} */ ...children) => {
      const made = make('span', classes, ...children);
      made.setAttribute('role', 'gridcell');
      element.append(made);
      return made;
    };
    cell('number', String(columns.record[row]));
    cell('time mono', clock(report, row));
    cell(
      '',
      dot(stream.service),
      make('span', 'word', stream.service + ' '),
      make('span', 'quiet', String(stream.number)),
    );
    cell('quiet', make('span', 'hidden', server ? 'from the server' : 'from the client'), server ? '←' : '→');
    cell(event ? 'event' : '', ...nameParts(report.name(row)));
    const what = cell(event ? 'event' : 'quiet', report.info[row] || '');
    if (report.has(row, FLAG.refused)) what.classList.add('refused');
    cell('size wide', columns.length[row] ? count(columns.length[row]) : '');
    const request = columns.reply[row],
      reply = this.report.replyTo.get(columns.record[row]);
    cell('wide quiet', request ? `↰${request}` : reply !== undefined ? `↳${columns.record[reply]}` : '');
    const late = cell('wide late', columns.elapsed[row] >= 0 ? milliseconds(columns.elapsed[row]) : '');
    if (columns.elapsed[row] > 0) {
      const bar = make('i');
      bar.style.width = `${Math.max(0.1, (3.5 * Math.log1p(columns.elapsed[row])) / Math.log1p(this.slowest))}rem`;
      late.append(bar);
    }
    cell('', ...badges(report, row));
    return element;
  }

  /** Selects a row and brings it into sight; nothing happens where the filter hides it. @param {number} row */
  select(row) {
    this.selected = row;
    const place = this.place(row);
    if (place >= 0) this.reveal(place);
    this.draw();
    this.scroller.setAttribute('aria-activedescendant', 'row-' + row);
  }

  /** Where a row stands in the list, or -1. @param {number} row */
  place(row) {
    let low = 0,
      high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle] < row) low = middle + 1;
      else high = middle;
    }
    return this.rows[low] === row ? low : -1;
  }

  /** @param {number} place */
  reveal(place) {
    const seen = this.scroller.clientHeight / this.height,
      top = this.top();
    if (place >= top + 1 && place < top + seen - 2) return;
    const wanted = Math.max(0, place - seen / 2);
    const full = this.rows.length * this.height;
    const share =
      full <= MAX_HEIGHT
        ? wanted * this.height
        : (wanted / (this.rows.length - seen)) * (MAX_HEIGHT - this.scroller.clientHeight);
    this.scroller.scrollTop = share;
  }

  /** Moves the selection. @param {number} by */
  move(by) {
    if (this.rows.length === 0) return;
    let place = this.place(this.selected);
    if (place < 0) place = by > 0 ? -1 : 0;
    const row = this.rows[Math.max(0, Math.min(this.rows.length - 1, place + by))];
    this.select(row);
    return row;
  }
}

/** Shapes for what is worth a look in a row. @param {Capture} report @param {number} row */
function badges(report, row) {
  const all = [
    [FLAG.refused, 'refused', '×', 'refused'],
    [FLAG.unanswered, 'warning', '◌', 'unanswered'],
    [FLAG.error, 'error', '●', 'an error'],
    [FLAG.warning, 'warning', '▲', 'a warning'],
    [FLAG.note, 'quiet', '∘', 'a note'],
  ];
  const first = all.find(([flag]) => report.has(row, Number(flag)));
  if (!first) return [];
  const mark = make('span', String(first[1]), String(first[2]), make('span', 'hidden', String(first[3])));
  mark.title = String(first[3]);
  return [mark];
}

/** A row's time of day with microseconds. @param {Capture} report @param {number} row */
function clock(report, row) {
  return timeOfDay(report, report.columns.time[row]);
}

/** The time of day some milliseconds after the capture's start. @param {Capture} report @param {number} at */
function timeOfDay(report, at) {
  const start = Date.parse(report.meta.start),
    whole = start + Math.floor(at);
  const micros = Math.round((at - Math.floor(at)) * 1000);
  const text = new Date(whole).toISOString().slice(11, 23);
  return `${text}${String(Math.min(999, micros)).padStart(3, '0')}`;
}
