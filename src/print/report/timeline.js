// @ts-check
'use strict';
// The timeline: a strip of the whole capture, and below it one lane a connection, grouped by session. A tick is a message,
// the client's above the line and the server's below. Three scales: time, time with idle stretches folded, and order.

/** Longer idle stretches than this, in milliseconds, are folded to this length. */
const FOLDED = 200;
const LANE = 17.5;
/** With more connections than this, sessions are folded at first. */
const LANES = 40;
/** Connections of one session that have lanes of their own, and rows in all: a canvas cannot be taller. */
const LANES_OPEN = 100;
const MAX_ROWS = 800;
/** Sessions with a heading of their own. */
const SHOWN_GROUPS = 200;
const DAY = 86_400_000;
/** Distances between marks of the time scale, in milliseconds. */
const STEPS = [1, 2, 5]
  .flatMap((n) => [n, n * 10, n * 100])
  .sort((a, b) => a - b)
  .concat(
    [1, 2, 5, 10, 15, 30].map((s) => s * 1000),
    [1, 2, 5, 10, 15, 30].map((m) => m * 60_000),
    [1, 2, 3, 6, 12].map((h) => h * 3_600_000),
    [DAY],
  );

/** @typedef {{session: Session | undefined, order: number, streams: number[], shut: boolean, others?: number}} LaneGroup A session, or those without a name, with its streams. */
/** @typedef {{group: LaneGroup | null, streams: number[]}} LaneRow A row beside the canvas, and the streams that are drawn in it. */

class Timeline {
  /** @param {Capture} report @param {(row: number) => void} open @param {() => void} ranged is called when another part is shown */
  constructor(report, open, ranged) {
    this.report = report;
    this.open = open;
    this.ranged = ranged;
    this.scale = 'time';
    this.selected = -1;
    /** @type {{time: Float64Array, idle: Float64Array, order: Float64Array | null}} Places of all rows, for each scale. */
    this.axes = { time: this.axis((at) => at), idle: this.idleAxis(), order: null };
    this.range = [0, 1];
    /** @type {LaneRow[]} */
    this.lanes = [];
    this.groups = this.group();
    /** @type {Map<number, number>} How many rows each stream has. */
    this.messages = new Map();
    for (const stream of report.columns.stream) this.messages.set(stream, (this.messages.get(stream) || 0) + 1);
    this.strip = byId('strip');
    this.canvas = byId('lane-canvas');
    this.buttons();
    this.layOut();
    this.drag(this.strip, true);
    this.drag(this.canvas, false);
    new ResizeObserver(() => this.draw()).observe(byId('timeline'));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
    this.draw();
  }

  /** Places of all rows on a scale, from 0 to 1. @param {(at: number, row: number) => number} place */
  axis(place) {
    const { rows, columns } = this.report;
    const all = new Float64Array(rows);
    let last = 1e-9;
    for (let row = 0; row < rows; row++) {
      all[row] = place(columns.time[row], row);
      last = Math.max(last, all[row]);
    }
    return all.map((at) => at / last);
  }

  idleAxis() {
    let before = 0,
      sum = 0;
    return this.axis((at) => {
      sum += Math.min(FOLDED, Math.max(0, at - before));
      before = Math.max(before, at);
      return sum;
    });
  }

  places() {
    if (this.scale === 'order') return (this.axes.order ??= this.axis((_, row) => row));
    return this.scale === 'idle' ? this.axes.idle : this.axes.time;
  }

  /** The sessions with their lanes; sessions without a name share one heading for each address. @returns {LaneGroup[]} */
  group() {
    const { streams, sessions } = this.report.meta;
    /** @type {Map<string | number, LaneGroup>} */
    const headings = new Map();
    streams.forEach((stream, index) => {
      const session = sessions[stream.session - 1];
      const key = !session ? '' : session.inferred ? stream.session : session.title;
      const order = session?.inferred ? stream.session : 0;
      const own = headings.get(key) ?? { session, order, streams: [], shut: streams.length > LANES };
      own.streams.push(index);
      headings.set(key, own);
    });
    const ordered = [...headings.values()].sort((a, b) => a.order - b.order);
    const last = ordered[SHOWN_GROUPS - 1];
    for (const more of ordered.splice(SHOWN_GROUPS)) {
      last.others = (last.others ?? 0) + 1;
      last.streams.push(...more.streams);
    }
    return ordered;
  }

  /** The rows of the lanes: a heading for each session and, where it is open, a row for each of its connections. Streams without a row of their own are drawn in the last one. */
  layOut() {
    /** @type {LaneRow[]} */
    const rows = [];
    for (const group of this.groups) {
      const room = Math.max(0, Math.min(LANES_OPEN, MAX_ROWS - rows.length));
      rows.push({ group, streams: group.shut ? group.streams : [] });
      if (group.shut) continue;
      const own = group.streams.length > room ? group.streams.slice(0, room) : group.streams;
      rows.push(...own.map((stream) => ({ group: null, streams: [stream] })));
      if (own.length < group.streams.length) rows.push({ group: null, streams: group.streams.slice(own.length) });
    }
    this.lanes = rows;
    this.names();
  }

  buttons() {
    const scales = [
      ['time', 'Time'],
      ['idle', 'Idle folded'],
      ['order', 'Order'],
    ];
    byId('scales').replaceChildren(
      ...scales.map(([scale, label]) => {
        const button = make('button', '', label);
        button.setAttribute('aria-pressed', String(scale === this.scale));
        button.dataset.scale = scale;
        button.addEventListener('click', () => this.setScale(scale));
        return button;
      }),
    );
    byId('whole').addEventListener('click', () => this.zoom(0, 1));
    const fold = () => {
      const hidden = byId('lanes').toggleAttribute('hidden');
      byId('lanes-toggle').setAttribute('aria-expanded', String(!hidden));
    };
    byId('lanes-toggle').addEventListener('click', fold);
    // A narrow page has no room for lanes beside the list.
    if (innerWidth < 600) fold();
    const legend = new Map();
    for (let row = 0; row < this.report.rows; row++) {
      const service = this.report.stream(row).service;
      legend.set(service, (legend.get(service) || 0) + 1);
    }
    byId('legend').replaceChildren(
      ...[...legend].map(([service, n]) =>
        make('li', '', dot(service), service + ' ', make('span', 'quiet', count(n))),
      ),
      make('li', 'refused', '× refused'),
      make('li', 'warning', '◌ unanswered, and how long it waited'),
      make('li', 'error', '// gap'),
    );
  }

  /** The names beside the lanes. */
  names() {
    const many = (/** @type {LaneRow} */ { streams }) =>
      streams.reduce((sum, stream) => sum + (this.messages.get(stream) || 0), 0);
    byId('lane-names').replaceChildren(
      ...this.lanes.map((row) => {
        if (row.group) return this.heading(row.group, many(row));
        if (row.streams.length === 1) return this.laneName(this.report.meta.streams[row.streams[0]], many(row));
        const more = counted(row.streams.length, 'more connection');
        return make('div', 'lane', make('span', 'quiet', more), make('em', 'quiet', count(many(row))));
      }),
    );
  }

  /** A session's heading, which opens and folds its lanes. @param {LaneGroup} group @param {number} records of the connections that are folded */
  heading(group, records) {
    const { session, others } = group;
    const detail = !session ? '' : session.inferred ? session.detail : 'not named';
    const name = make('span', session?.inferred ? 'inferred' : '', session ? session.title : 'outside any session');
    const lanes = counted(group.streams.length, 'lane');
    const button = make(
      'button',
      '',
      name,
      make('span', 'quiet', detail + (others ? ` and ${counted(others, 'more session')}` : '')),
      group.shut ? make('em', 'quiet', lanes) : null,
    );
    button.title = `${lanes}${group.shut ? `, ${counted(records, 'record')}` : ''}`;
    button.setAttribute('aria-expanded', String(!group.shut));
    button.addEventListener('click', () => {
      group.shut = !group.shut;
      const place = this.lanes.findIndex((row) => row.group === group);
      this.layOut();
      this.draw();
      const again = byId('lane-names').children[place];
      if (again instanceof HTMLElement) again.focus();
    });
    return button;
  }

  /** @param {Stream} stream @param {number} records */
  laneName(stream, records) {
    const named = stream.places.map((place) => place.name).join(', ');
    const lane = make('div', 'lane', dot(stream.service), `${stream.service} ${stream.key}`);
    if (named) lane.append(make('span', 'quiet', '·'), make('span', 'inferred', named));
    lane.append(make('em', 'quiet', count(records)));
    lane.title = `${stream.client} → ${stream.server}`;
    return lane;
  }

  /** @param {string} scale */
  setScale(scale) {
    this.scale = scale;
    for (const button of byId('scales').children)
      button.setAttribute('aria-pressed', String(button.dataset.scale === scale));
    this.draw();
    if (!this.isWhole()) this.ranged();
  }

  /** Whether all of the capture is shown. */
  isWhole() {
    return this.range[1] - this.range[0] >= 1;
  }

  /** Whether a row is in the part that is shown. @param {number} row */
  shows(row) {
    const place = this.places()[row];
    return this.range[0] <= place && place <= this.range[1];
  }

  /** Shows the part from one place to another. @param {number} from @param {number} to */
  zoom(from, to) {
    const width = Math.max(1e-5, to - from);
    const before = this.range;
    this.range = [Math.max(0, Math.min(from, 1 - width)), Math.min(1, Math.max(to, width))];
    this.draw();
    if (before[0] !== this.range[0] || before[1] !== this.range[1]) this.ranged();
  }

  /** @param {number} by */
  zoomBy(by) {
    const [from, to] = this.range,
      middle = this.selected >= 0 ? this.places()[this.selected] : (from + to) / 2;
    const half = ((to - from) * by) / 2;
    this.zoom(middle - half, middle + half);
  }

  /** Lets a drag choose what is shown, and a click the nearest message. @param {HTMLCanvasElement} canvas @param {boolean} whole */
  drag(canvas, whole) {
    let from = -1;
    const place = (/** @type {PointerEvent} */ event) => {
      const box = canvas.getBoundingClientRect(),
        share = (event.clientX - box.left) / box.width;
      const [low, high] = whole ? [0, 1] : this.range;
      return low + Math.max(0, Math.min(1, share)) * (high - low);
    };
    canvas.addEventListener('pointerdown', (event) => {
      from = place(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointerup', (event) => {
      if (from < 0) return;
      const to = place(event),
        width = ((whole ? 1 : this.range[1] - this.range[0]) * 6) / canvas.clientWidth;
      if (Math.abs(to - from) > width) this.zoom(Math.min(from, to), Math.max(from, to));
      else this.openNear(to, whole ? -1 : Math.floor(event.offsetY / LANE));
      from = -1;
    });
    canvas.addEventListener(
      'wheel',
      (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        this.zoomBy(event.deltaY > 0 ? 1.25 : 0.8);
      },
      { passive: false },
    );
  }

  /** Opens the message nearest to a place, of one lane where one is given. @param {number} at @param {number} lane */
  openNear(at, lane) {
    const of = new Set(this.lanes[lane]?.streams),
      places = this.places();
    let best = -1;
    for (let row = 0; row < this.report.rows; row++) {
      if (of.size && !of.has(this.report.columns.stream[row])) continue;
      if (best < 0 || Math.abs(places[row] - at) < Math.abs(places[best] - at)) best = row;
    }
    if (best >= 0) this.open(best);
  }

  /** @param {number} row */
  select(row) {
    this.selected = row;
    this.draw();
  }

  /** A canvas made ready for drawing in CSS pixels. @param {HTMLCanvasElement} canvas @param {number} height */
  ready(canvas, height) {
    const width = canvas.clientWidth || 1,
      ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext('2d');
    if (!context) return null;
    context.scale(ratio, ratio);
    return { context, width };
  }

  /** The colours of the present scheme. */
  colours() {
    const style = getComputedStyle(document.documentElement);
    const get = (/** @type {string} */ name) => style.getPropertyValue('--' + name).trim();
    const services = new Map();
    for (const stream of this.report.meta.streams) {
      if (services.has(stream.service)) continue;
      const probe = make('span', serviceClass(stream.service));
      document.body.append(probe);
      services.set(stream.service, getComputedStyle(probe).getPropertyValue('--service').trim() || get('other'));
      probe.remove();
    }
    return { get, services };
  }

  draw() {
    const colours = this.colours();
    this.drawStrip(colours);
    this.drawLanes(colours);
  }

  /** @param {{get: (name: string) => string, services: Map<string, string>}} colours */
  drawStrip({ get, services }) {
    const height = 36,
      ready = this.ready(this.strip, height);
    if (!ready) return;
    const { context, width } = ready,
      places = this.places();
    const bins = new Map();
    for (let row = 0; row < this.report.rows; row++) {
      const bin = Math.min(Math.floor(width / 2) - 1, Math.floor((places[row] * width) / 2));
      const entry = bins.get(bin) || { n: 0, stream: 0 };
      entry.n++;
      entry.stream = this.report.columns.stream[row];
      bins.set(bin, entry);
    }
    const most = Math.sqrt(Math.max(1, ...[...bins.values()].map((bin) => bin.n)));
    const [from, to] = this.range;
    if (to - from < 1) {
      context.fillStyle = get('selection');
      context.fillRect(from * width, 0, (to - from) * width, height);
    }
    for (const [bin, { n, stream }] of bins) {
      context.fillStyle = services.get(this.report.meta.streams[stream].service) || get('other');
      const tall = Math.max(2, (Math.sqrt(n) / most) * (height - 4));
      context.fillRect(bin * 2, height - 1 - tall, 1.5, tall);
    }
    context.fillStyle = get('rule');
    context.fillRect(0, height - 1, width, 1);
  }

  /** @param {{get: (name: string) => string, services: Map<string, string>}} colours */
  drawLanes({ get, services }) {
    const height = this.lanes.length * LANE + 18,
      ready = this.ready(this.canvas, height);
    if (!ready) return;
    const { context, width } = ready,
      places = this.places(),
      { columns, meta } = this.report;
    const [from, to] = this.range,
      x = (/** @type {number} */ place) => ((place - from) / (to - from)) * width;
    const middle = new Map(
      this.lanes.flatMap(({ streams }, at) => streams.map((stream) => [stream, (at + 0.5) * LANE])),
    );
    const ends = new Map();
    for (let row = 0; row < this.report.rows; row++) {
      const known = ends.get(columns.stream[row]);
      if (known) known[1] = places[row];
      else ends.set(columns.stream[row], [places[row], places[row]]);
    }
    context.fillStyle = get('rule');
    for (const [stream, [first, last]] of ends) {
      const left = Math.max(0, x(first)),
        right = Math.min(width, x(last));
      if (right >= left) context.fillRect(left, (middle.get(stream) ?? -9) - 0.5, right - left + 1, 1);
    }
    // A request that was never answered waits until its connection ends.
    context.globalAlpha = 0.4;
    context.fillStyle = get('warning');
    for (let row = 0; row < this.report.rows; row++) {
      const flags = columns.flags[row];
      if (!(flags & FLAG.unanswered) || flags & FLAG.event) continue;
      const left = Math.max(0, x(places[row])),
        right = Math.min(width, x(ends.get(columns.stream[row])?.[1] ?? 0));
      if (right >= left) context.fillRect(left, (middle.get(columns.stream[row]) ?? -9) - 3, right - left + 1, 6);
    }
    context.globalAlpha = 1;
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'center';
    for (let row = 0; row < this.report.rows; row++) {
      const at = x(places[row]);
      if (at < -4 || at > width + 4) continue;
      const y = middle.get(columns.stream[row]) ?? -9,
        flags = columns.flags[row];
      if (flags & FLAG.event) {
        if (this.report.name(row) === 'gap') {
          context.fillStyle = get('error');
          context.fillText('//', at, y + 4);
        } else if (flags & FLAG.unanswered) {
          context.fillStyle = get('warning');
          context.fillText('◌', at, y - 2);
        }
        continue;
      }
      context.fillStyle = services.get(meta.streams[columns.stream[row]].service) || get('other');
      context.fillRect(at - 0.6, flags & FLAG.server ? y : y - 5, 1.3, 5);
      if (flags & FLAG.refused) {
        context.fillStyle = get('refused');
        context.fillText('×', at, y + 9);
      }
    }
    this.drawScale(context, width, height, get);
    if (this.selected >= 0) {
      context.fillStyle = get('auth');
      context.fillRect(x(places[this.selected]) - 0.75, 0, 1.5, height - 16);
    }
  }

  /** Times or record numbers below the lanes. @param {CanvasRenderingContext2D} context @param {number} width @param {number} height @param {(name: string) => string} get */
  drawScale(context, width, height, get) {
    context.fillStyle = get('quiet');
    for (const { share, text } of this.scale === 'time' ? this.roundTimes(width) : this.evenMarks(width)) {
      const at = share * width;
      context.textAlign = at < 30 ? 'left' : at > width - 30 ? 'right' : 'center';
      context.fillText(text, at, height - 4);
      context.fillRect(at, height - 18, 1, 4);
    }
  }

  /** Round times of day in the part that is shown. @param {number} width */
  roundTimes(width) {
    const span = this.report.columns.time[this.report.rows - 1] || 1,
      [from, to] = this.range;
    const begin = new Date(this.report.meta.start).getTime();
    const wanted = ((to - from) * span * 100) / width;
    const step = STEPS.find((step) => step >= wanted) ?? Math.ceil(wanted / DAY) * DAY;
    const marks = [];
    for (let at = Math.ceil((begin + from * span) / step) * step - begin; at <= to * span; at += step) {
      const text = timeOfDay(this.report, at).slice(0, step >= 60_000 ? 5 : step >= 1000 ? 8 : 12);
      marks.push({ share: (at / span - from) / (to - from), text });
    }
    return marks;
  }

  /** Evenly spaced places, with what stands there. @param {number} width */
  evenMarks(width) {
    const places = this.places(),
      [from, to] = this.range,
      many = Math.max(2, Math.floor(width / 110));
    return Array.from({ length: many + 1 }, (_, mark) => {
      const place = from + ((to - from) * mark) / many;
      let low = 0,
        high = places.length - 1;
      while (low < high) {
        const half = (low + high) >> 1;
        if (places[half] < place) low = half + 1;
        else high = half;
      }
      const { time, record } = this.report.columns;
      const text =
        this.scale === 'order' ? '#' + (record[low] ?? '') : timeOfDay(this.report, time[low] || 0).slice(0, 10);
      return { share: mark / many, text };
    });
  }
}
