// @ts-check
'use strict';
// One message: its annotated tree beside its bytes. Pointing at a field marks its bytes, and the reverse.

/** What the network and what the replying side took of a reply's time, in words and as a bar. @param {Capture} report @param {number} row */
function shares(report, row) {
  const all = report.columns.elapsed[row],
    network = report.network(row);
  if (network === undefined) return [];
  const side = report.has(row, FLAG.server) ? 'server' : 'client';
  const bar = make('span', 'shares ' + serviceClass(report.stream(row).service), make('i', 'net'));
  const part = /** @type {HTMLElement} */ (bar.firstElementChild);
  part.style.width = all > 0 ? `${(network / all) * 100}%` : '0';
  return [bar, `network ${milliseconds(network)} ms, ${side} ${milliseconds(Math.max(0, all - network))} ms`];
}

class DetailView {
  /** @param {Capture} report @param {(row: number) => void} open @param {() => void} close */
  constructor(report, open, close) {
    this.report = report;
    this.open = open;
    this.close = close;
    this.element = byId('detail');
    this.row = -1;
    /** @type {Detail | null} */
    this.detail = null;
    this.buffer = 0;
    this.pointed = -1;
    this.focused = -1;
    /** @type {Set<number>} */
    this.shut = new Set();
  }

  /** Shows a row, or nothing for -1. @param {number} row */
  async show(row) {
    this.row = row;
    this.element.hidden = row < 0;
    byId('view-messages').classList.toggle('split', row >= 0);
    if (row < 0) return;
    const detail = await this.report.detail(row);
    if (this.row !== row) return;
    this.detail = detail;
    this.buffer = 0;
    this.pointed = this.focused = -1;
    this.shut = new Set(detail.nodes.flatMap((node, at) => (node.depth >= 7 && node.end > at + 1 ? [at] : [])));
    const body = make('div');
    body.id = 'detail-body';
    this.tree = make('div');
    this.tree.id = 'tree';
    this.tree.tabIndex = 0;
    this.tree.setAttribute('role', 'tree');
    this.tree.setAttribute('aria-label', 'Fields');
    this.bytes = make('div');
    this.bytes.id = 'bytes';
    this.bytes.tabIndex = 0;
    body.append(this.tree, this.bytes);
    this.foot = make('div', 'quiet', 'Point at a field or a byte');
    this.foot.id = 'detail-foot';
    this.element.replaceChildren(this.head(detail), body, this.foot);
    this.drawTree();
    this.drawBytes();
    for (const side of [this.tree, this.bytes]) {
      side.addEventListener('pointerover', (event) => this.pointAt(event));
      side.addEventListener('pointerleave', () => this.point(-1));
    }
    this.tree.addEventListener('click', (event) => {
      const node = this.nodeOf(event);
      if (node >= 0) {
        this.focused = node;
        this.toggle(node);
      }
    });
    this.bytes.addEventListener('click', (event) => {
      const node = this.nodeOf(event);
      if (node >= 0) {
        this.focused = node;
        this.unfold(node);
        this.drawTree();
        this.point(node);
        this.element.querySelector('.node.pointed')?.scrollIntoView({ block: 'nearest' });
      }
    });
    this.tree.addEventListener('keydown', (event) => this.key(event));
  }

  /** @param {Detail} detail */
  head(detail) {
    const report = this.report,
      row = this.row,
      columns = report.columns,
      stream = report.stream(row);
    const step = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ act) => {
      const button = make('button', '', text);
      button.setAttribute('aria-label', label);
      button.addEventListener('click', act);
      return button;
    };
    const nav = make(
      'div',
      'steps',
      step('←', 'Message before', () => this.go(-1)),
      step('→', 'Next message', () => this.go(1)),
      step('Close', 'Close', this.close),
    );
    const title = make(
      'div',
      'title',
      make('span', 'quiet', '#' + columns.record[row]),
      dot(stream.service),
      make('b', '', ...nameParts(report.name(row))),
      nav,
    );
    const side = report.has(row, FLAG.server) ? 'server → client' : 'client → server';
    const place = columns.length[row] ? ` · ${counted(columns.length[row], 'byte')}` : '';
    const about = make(
      'p',
      'quiet',
      `${stream.service} · ${stream.key} · ${side} · frame ${columns.frame[row]} · `,
      make('span', 'mono', clock(report, row)),
      place,
    );
    const head = make('div', '', title, about);
    head.id = 'detail-head';
    const request = columns.reply[row],
      reply = report.replyTo.get(columns.record[row]);
    if (request)
      head.append(
        make(
          'p',
          '',
          'Answers ',
          this.link(request),
          columns.elapsed[row] >= 0 ? ` after ${milliseconds(columns.elapsed[row])} ms` : '',
          ...shares(report, row),
        ),
      );
    if (reply !== undefined)
      head.append(
        make(
          'p',
          '',
          'Answered by ',
          this.link(columns.record[reply]),
          columns.elapsed[reply] >= 0 ? ` after ${milliseconds(columns.elapsed[reply])} ms` : '',
          ...shares(report, reply),
        ),
      );
    if (report.info[row]) head.append(make('p', report.has(row, FLAG.refused) ? 'refused' : '', report.info[row]));
    if (detail.doc) head.append(make('p', 'quiet', detail.doc));
    for (const problem of detail.problems) {
      const word = ['note', 'warning', 'error'][problem.severity];
      head.append(make('p', word === 'note' ? 'quiet' : word, `${word}: ${problem.text}`));
    }
    return head;
  }

  /** A link to a record. @param {number} record */
  link(record) {
    const row = this.report.rowOf.get(record);
    if (row === undefined) return make('span', '', '#' + record);
    const button = make('button', 'link', `#${record} ${this.report.name(row)}`);
    button.addEventListener('click', () => this.open(row));
    return button;
  }

  /** @param {number} by */
  go(by) {
    const row = Math.max(0, Math.min(this.report.rows - 1, this.row + by));
    this.open(row);
  }

  drawTree() {
    const { detail, tree } = this;
    if (!detail || !tree) return;
    const lines = [];
    for (let at = 0; at < detail.nodes.length; ) {
      const node = detail.nodes[at];
      if (at > 0 || detail.nodes.length === 1) lines.push(this.line(at, node, detail));
      at = this.shut.has(at) ? node.end : at + 1;
      if (lines.length > 20_000) {
        lines.push(make('p', 'quiet problem', 'the rest of this tree is not drawn'));
        break;
      }
    }
    tree.replaceChildren(...lines);
  }

  /** @param {number} at @param {TreeNode} node @param {Detail} detail */
  line(at, node, detail) {
    const parent = node.end > at + 1,
      open = !this.shut.has(at);
    const line = make('div', node.marks & MARK.span ? 'node span' : 'node');
    line.dataset.n = String(at);
    line.setAttribute('role', 'treeitem');
    line.setAttribute('aria-level', String(node.depth));
    if (parent) line.setAttribute('aria-expanded', String(open));
    line.setAttribute('aria-selected', String(at === this.focused));
    line.style.setProperty('--depth', String(Math.max(0, node.depth - 1)));
    line.append(make('span', 'twist', parent ? (open ? '▾' : '▸') : ''), make('span', 'name', node.name));
    const value = valueText(node, detail);
    if (value) {
      const shown = make('span', node.kind === KIND.undecoded ? 'value mono warning' : 'value mono', value);
      // A short value is never cut; a long one shows its beginning.
      shown.style.minWidth = `${Math.min(value.length, 16)}ch`;
      line.append(shown);
    }
    if (node.note) line.append(make('span', 'symbol', node.note));
    if (node.marks & MARK.guess) line.append(make('span', 'quiet', '(guess)'));
    if (node.called)
      line.append(
        make('span', 'inferred', JSON.stringify(node.called)),
        make('span', 'quiet', `inferred, #${node.by}`),
      );
    line.append(make('span', 'type', node.type));
    if (at === this.pointed) line.classList.add('pointed');
    return line;
  }

  drawBytes() {
    const { detail, bytes: holder } = this;
    if (!detail || !holder) return;
    const tabs = make(
      'div',
      '',
      ...detail.buffers.map(({ made, length }, buffer) => {
        const button = make('button', buffer === this.buffer ? '' : 'quiet', `${made} ${count(length)}`);
        button.addEventListener('click', () => {
          this.buffer = buffer;
          this.drawBytes();
        });
        return button;
      }),
    );
    const bytes = detail.buffers[this.buffer]?.bytes ?? new Uint8Array();
    const owner = this.owners(bytes.length),
      wide = holder.clientWidth > 520 ? 16 : 8;
    const hex = make('div', 'hex');
    const shown = Math.min(bytes.length, 16_384);
    for (let line = 0; line < shown; line += wide) {
      const row = make('div', '', make('span', 'place', line.toString(16).padStart(4, '0')));
      const plain = make('span');
      for (let at = line; at < Math.min(line + wide, shown); at++) {
        const n = owner[at],
          odd = n >= 0 && n % 2 === 1 ? 'odd' : '';
        row.append(this.byte(bytes[at].toString(16).padStart(2, '0') + ' ', n, odd));
        const sign = bytes[at] >= 32 && bytes[at] < 127 ? String.fromCharCode(bytes[at]) : '·';
        plain.append(this.byte(sign, n, odd));
      }
      const missing = wide - Math.min(wide, shown - line);
      row.append('   '.repeat(missing) + ' ', plain);
      hex.append(row);
    }
    const length = detail.buffers[this.buffer]?.length ?? 0;
    if (shown < length) hex.append(make('p', 'quiet', `${count(length - shown)} more bytes are not drawn`));
    holder.replaceChildren(tabs, hex);
    this.mark();
  }

  /** @param {string} text @param {number} node @param {string} classes */
  byte(text, node, classes) {
    const span = make('span', classes, text);
    span.dataset.n = String(node);
    return span;
  }

  /** The innermost node of each byte of the buffer in sight, or -1. @param {number} length */
  owners(length) {
    const owner = new Int32Array(length).fill(-1);
    for (const [at, node] of this.detail?.nodes.entries() ?? []) {
      if (node.buffer !== this.buffer) continue;
      owner.fill(at, Math.floor(node.start / 8), Math.ceil((node.start + node.bits) / 8));
    }
    return owner;
  }

  /** @param {Event} event */
  nodeOf(event) {
    const holder = event.target instanceof Element ? event.target.closest('[data-n]') : null;
    return holder instanceof HTMLElement ? Number(holder.dataset.n) : -1;
  }

  /** @param {Event} event */
  pointAt(event) {
    const node = this.nodeOf(event);
    if (node < 0) return;
    const buffer = this.detail?.nodes[node]?.buffer ?? 0;
    const inTree = event.currentTarget === this.tree;
    if (inTree && buffer !== this.buffer) {
      this.buffer = buffer;
      this.drawBytes();
    }
    this.point(node);
  }

  /** @param {number} node */
  point(node) {
    this.pointed = node;
    this.mark();
    const detail = this.detail,
      foot = this.foot;
    if (!detail || !foot) return;
    const at = detail.nodes[node];
    if (!at) {
      foot.textContent = 'Point at a field or a byte';
      return;
    }
    const path = [];
    for (let up = node; up > 0; up = detail.nodes[up].parent) path.unshift(detail.nodes[up].name);
    const where = `${Math.floor(at.start / 8)}${at.start % 8 ? ` bit ${at.start % 8}` : ''}`;
    const long = at.bits % 8 ? counted(at.bits, 'bit') : counted(at.bits / 8, 'byte');
    foot.textContent = `${path.join('.')} · ${at.type} · ${long} at ${where}`;
  }

  /** Marks the pointed node's line and bytes. */
  mark() {
    const node = this.pointed,
      at = this.detail?.nodes[node];
    for (const line of this.tree?.querySelectorAll('.node') ?? []) {
      line.classList.toggle('pointed', line instanceof HTMLElement && line.dataset.n === String(node));
    }
    const inside = (/** @type {number} */ n) => at && n >= node && n < at.end;
    for (const span of this.bytes?.querySelectorAll('.hex [data-n]') ?? []) {
      span.classList.toggle('pointed', span instanceof HTMLElement && Boolean(inside(Number(span.dataset.n))));
    }
  }

  /** @param {number} node */
  toggle(node) {
    const known = this.detail?.nodes[node];
    if (!known || known.end <= node + 1) {
      this.drawTree();
      return;
    }
    if (!this.shut.delete(node)) this.shut.add(node);
    this.drawTree();
  }

  /** Opens all that a node stands in. @param {number} node */
  unfold(node) {
    for (let up = this.detail?.nodes[node]?.parent ?? -1; up >= 0; up = this.detail?.nodes[up]?.parent ?? -1)
      this.shut.delete(up);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const lines = [...(this.tree?.querySelectorAll('.node') ?? [])].map((line) =>
      Number(line instanceof HTMLElement ? line.dataset.n : -1),
    );
    const place = lines.indexOf(this.focused);
    switch (event.key) {
      case 'ArrowDown':
      case 'j':
        this.focused = lines[Math.min(lines.length - 1, place + 1)];
        break;
      case 'ArrowUp':
      case 'k':
        this.focused = lines[Math.max(0, place - 1)];
        break;
      case 'ArrowRight':
        this.shut.delete(this.focused);
        break;
      case 'ArrowLeft':
        if (this.focused >= 0) this.shut.add(this.focused);
        break;
      case 'Enter':
      case ' ':
        this.toggle(this.focused);
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
    this.drawTree();
    this.point(this.focused);
    this.tree?.querySelector('.node[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }
}
