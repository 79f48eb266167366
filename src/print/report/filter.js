// @ts-check
'use strict';
// The filter box: the conditions of the program's `-Y`, and words that a row must have, `-word` that it must not have,
// `"exact words"`, `is:refused` and `#134`. What stands side by side must all hold. Conditions on the keys of KEYS need only
// the columns; others look into the trees, chunk by chunk, while the page stays alive. What the page does not take, it says.
// In the page of the program (host.js), the program itself looks.

/** @typedef {{kind: 'row', test: (row: number) => boolean} | {kind: 'tree', test: (detail: Detail) => boolean} | {kind: 'not', of: Condition} | {kind: 'and' | 'or', of: Condition[]}} Condition */
/** @typedef {{kind: 'sign' | 'word' | 'text', text: string, at: number, end: number}} Token */
/** @typedef {(...have: (string | number | bigint | undefined)[]) => boolean} ValueTest Any of the values may do. */

const IS = /** @type {Record<string, number>} */ ({
  refused: FLAG.refused,
  unanswered: FLAG.unanswered,
  event: FLAG.event,
  request: FLAG.expects,
  note: FLAG.note,
  warning: FLAG.warning,
  error: FLAG.error,
});

/** What a row has under a key that needs no tree; undefined where it is absent. @type {Record<string, (report: Capture, row: number) => string | number | undefined>} */
const KEYS = {
  record: (report, row) => report.columns.record[row],
  frame: (report, row) => report.columns.frame[row],
  time: (report, row) => clock(report, row),
  message: (report, row) => (report.has(row, FLAG.event) ? undefined : report.name(row).split(' ')[0]),
  carries: (report, row) => report.name(row).split(' ')[1],
  event: (report, row) => (report.has(row, FLAG.event) ? report.name(row) : undefined),
  transport: (report, row) => report.stream(row).key.split(' ')[0],
  service: (report, row) => report.stream(row).service,
  protocol: (report, row) => report.stream(row).protocol,
  stream: (report, row) => report.stream(row).number,
  session: (report, row) => report.stream(row).session || undefined,
  from: (report, row) => (report.has(row, FLAG.server) ? 'server' : 'client'),
  src: (report, row) => report.stream(row)[report.has(row, FLAG.server) ? 'server' : 'client'],
  dst: (report, row) => report.stream(row)[report.has(row, FLAG.server) ? 'client' : 'server'],
  bytes: (report, row) => report.columns.length[row],
  length: (report, row) => report.columns.length[row],
  reply_to: (report, row) => report.columns.reply[row] || undefined,
  elapsed_ms: (report, row) => (report.columns.elapsed[row] >= 0 ? report.columns.elapsed[row] : undefined),
  network_ms: (report, row) => report.network(row),
  expects_reply: (report, row) => (report.has(row, FLAG.expects) ? 'true' : undefined),
  refused: (report, row) => (report.has(row, FLAG.refused) ? 'true' : undefined),
  'refused.name': (report, row) => report.meta.texts[report.columns.why[row]] || undefined,
  info: (report, row) => report.info[row],
};

/** Keys that a record has in the program and not in this page. */
const NOT_HERE = ['bytes_cut', 'sent_again', 'acknowledges', 'names', 'waited_ms', 'in_part', 'key_file'];
/** Other words and signs for the same. @type {Record<string, string>} */
const SIGNS = {
  eq: '==',
  ne: '!=',
  lt: '<',
  le: '<=',
  gt: '>',
  ge: '>=',
  '=': '==',
  '~': 'matches',
  '&&': 'and',
  '||': 'or',
  '!': 'not',
};
const COMPARISONS = ['==', '!=', '<', '<=', '>', '>=', 'matches', 'contains', 'has', 'in'];
/** How deep conditions may be within each other. */
const DEEPEST = 100;
const TOKEN =
  /"((?:[^"\\]|\\.)*)"?|'([^']*)'?|(==|!=|<=|>=|&&|\|\||\.\.(?=\S)|[=<>~!(){},])|((?:\["[^"]*"\]|[^\s"'=<>~!(){},&|.]|\.(?!\.)|[&|](?![&|]))+)/g;

/** Takes a filter's text apart. @param {string} text @returns {Token[]} */
function tokens(text) {
  return Array.from(text.matchAll(TOKEN), (match) => {
    const [all, quoted, single, sign, word] = match;
    const kind = sign !== undefined ? 'sign' : word !== undefined ? 'word' : 'text';
    const escaped = quoted?.replace(/\\(["\\nt])/g, (_, c) => (c === 'n' ? '\n' : c === 't' ? '\t' : c));
    return { kind, text: sign ?? word ?? escaped ?? single ?? '', at: match.index, end: match.index + all.length };
  });
}

/** Makes conditions of a filter's words. */
class FilterReader {
  /** @param {string} text @param {Capture} report */
  constructor(text, report) {
    this.report = report;
    this.tokens = tokens(text);
    this.at = 0;
    this.depth = 0;
    /** Whether there is a condition, and whether there is what only this page has: words, `is:`, `#`. */
    this.conditions = false;
    this.ownWords = false;
  }

  /** The sign that comes next, or the word in place of one. */
  sign() {
    const next = this.tokens[this.at];
    if (!next || next.kind === 'text') return '';
    return Object.hasOwn(SIGNS, next.text) ? SIGNS[next.text] : next.text;
  }

  /** @param {string} wanted */
  take(wanted) {
    if (this.sign() !== wanted) return false;
    this.at++;
    return true;
  }

  /** A value. @param {string} missing what to say where there is none */
  value(missing) {
    const token = this.tokens[this.at];
    if (!token || token.kind === 'sign') this.fault(missing);
    this.at++;
    return token.text;
  }

  /** @param {string} text @returns {never} */
  fault(text) {
    const at = this.tokens[this.at]?.at ?? this.tokens[this.tokens.length - 1]?.end ?? 0;
    throw new Error(`column ${at + 1}: ${text}`);
  }

  /** @returns {Condition} */
  all() {
    if (!this.tokens.length) return { kind: 'and', of: [] };
    const condition = this.or();
    if (this.at < this.tokens.length) this.fault(`\`${this.tokens[this.at].text}\` stands alone`);
    return condition;
  }

  /** @returns {Condition} */
  or() {
    const of = [this.and()];
    while (this.take('or')) of.push(this.and());
    return of.length > 1 ? { kind: 'or', of } : of[0];
  }

  /** @returns {Condition} */
  and() {
    const of = [this.not()];
    while (this.take('and') || (this.at < this.tokens.length && !['or', ')'].includes(this.sign())))
      of.push(this.not());
    return of.length > 1 ? { kind: 'and', of } : of[0];
  }

  /** @returns {Condition} */
  not() {
    if (++this.depth > DEEPEST) this.fault('too deep');
    /** @type {Condition} */
    const condition = this.take('not') ? { kind: 'not', of: this.not() } : this.one();
    this.depth--;
    return condition;
  }

  /** @returns {Condition} */
  one() {
    if (this.take('(')) {
      const condition = this.or();
      if (!this.take(')')) this.fault('`)` is missing');
      return condition;
    }
    const word = this.tokens[this.at];
    if (!word || word.kind === 'sign' || ['and', 'or'].includes(this.sign()))
      this.fault('a condition or a word is missing');
    this.at++;
    if (word.kind === 'text') return this.words(word.text);
    // `-word` and `-"words"`: not this.
    const next = this.tokens[this.at];
    if (word.text === '-' && next?.kind === 'text' && next.at === word.end) {
      this.at++;
      return { kind: 'not', of: this.words(next.text) };
    }
    return /^-[^\d-]/.test(word.text) ? { kind: 'not', of: this.path(word.text.slice(1)) } : this.path(word.text);
  }

  /** What begins with a word: a condition on a value, or the word itself. @param {string} path @returns {Condition} */
  path(path) {
    const sign = this.sign();
    if (!COMPARISONS.includes(sign)) return this.alone(path);
    // A word such as `in` at the end is one to look for.
    if (this.at + 1 === this.tokens.length && this.tokens[this.at].kind === 'word') return this.alone(path);
    this.at++;
    this.conditions = true;
    if (path.startsWith('@') || path.includes('["') || NOT_HERE.includes(path.split(/[.[]/)[0]))
      throw new Error(`\`${path}\` is for the program: this page does not have it`);
    return this.compared(path, this.comparison(sign));
  }

  /** A word without a comparison. @param {string} path @returns {Condition} */
  alone(path) {
    const { report } = this;
    this.ownWords ||= /^(is:|#)/.test(path);
    const flag = (path.startsWith('is:') ? IS[path.slice(3)] : { expects_reply: FLAG.expects, ...IS }[path]) ?? 0;
    if (path.startsWith('is:') && !flag) throw new Error(`is: knows ${Object.keys(IS).join(', ')}`);
    if (path.startsWith('is:') || ['refused', 'event', 'expects_reply'].includes(path))
      return { kind: 'row', test: (row) => report.has(row, flag) };
    if (/^#\d+$/.test(path)) {
      const record = Number(path.slice(1));
      return { kind: 'row', test: (row) => report.columns.record[row] === record };
    }
    if (path.startsWith('@')) throw new Error('names of the configuration file are not in this page');
    if (/^(fields\.|\*\.)/.test(path)) {
      this.conditions = true;
      return this.field(path, () => true);
    }
    return this.words(path);
  }

  /** A condition on the value at a path. @param {string} path @param {ValueTest} test @returns {Condition} */
  compared(path, test) {
    const { report } = this;
    if (path === 'src' || path === 'dst') {
      // An end is an address, a port, or both.
      const passes = (/** @type {number} */ row) => {
        const end = String(KEYS[path](report, row));
        const colon = end.lastIndexOf(':');
        return test(end, end.slice(0, colon).replace(/[[\]]/g, ''), end.slice(colon + 1), end.slice(colon));
      };
      return { kind: 'row', test: passes };
    }
    if (path === 'time')
      return { kind: 'row', test: (row) => test(clock(report, row), day(report, row) + 'T' + clock(report, row)) };
    if (path === 'problems[*].severity')
      return {
        kind: 'row',
        test: (row) => ['note', 'warning', 'error'].some((word) => report.has(row, IS[word]) && test(word)),
      };
    if (Object.hasOwn(KEYS, path)) return { kind: 'row', test: (row) => test(KEYS[path](report, row)) };
    if (path === '*') {
      const passes = (/** @type {Detail} */ detail) => detail.nodes.some((node) => nodeHas(node, detail, test));
      return {
        kind: 'or',
        of: [
          { kind: 'row', test: (row) => test(report.info[row]) },
          { kind: 'tree', test: passes },
        ],
      };
    }
    return this.field(path, test);
  }

  /** A field of the trees, by its name or the end of its path. @param {string} path @param {ValueTest} test @returns {Condition} */
  field(path, test) {
    const plain = path.replace(/^(fields|\*)\./, '').replace(/\[(\d+|\*)\]/g, '.[$1]');
    const wanted = plain.split('.').filter((step) => step !== '');
    // The number or the name of a value that has both.
    const part = wanted.length > 1 && ['value', 'name', 'names'].includes(wanted[wanted.length - 1]);
    return {
      kind: 'tree',
      test: (detail) =>
        treeHas(detail, wanted, test) ||
        (part && treeHas(detail, wanted.slice(0, -1), test)) ||
        (plain === 'name' && detail.nodes.some((node) => node.called !== '' && test(node.called))),
    };
  }

  /** What a sign and the value behind it test. @param {string} sign @returns {ValueTest} */
  comparison(sign) {
    if (sign === 'in') return this.oneOf();
    const want = this.value('a value is missing');
    if (/^[\d.]+\/\d+$/.test(want))
      throw new Error('networks are for the program; this page compares addresses and ports');
    if (sign !== 'matches') return (...have) => have.some((one) => one !== undefined && compare(one, sign, want));
    const [, flags = '', pattern] = /^(?:\(\?([a-z]+)\))?(.*)$/s.exec(want) ?? [];
    const regex = new RegExp(pattern, 'u' + flags.replace(/[^is]/g, ''));
    return (...have) => have.some((one) => one !== undefined && regex.test(String(one)));
  }

  /** `{a, b, 1..5}`. @returns {ValueTest} */
  oneOf() {
    if (!this.take('{')) this.fault('`in` needs a list here, such as {a, b}; networks are for the program');
    /** @type {[string, string | null][]} */
    const items = [];
    while (!this.take('}')) {
      const from = this.value('a value or `}` is missing');
      items.push([from, this.take('..') ? this.value('the end of a range is missing') : null]);
      this.take(',');
    }
    const among = (/** @type {string | number | bigint} */ have) =>
      items.some(([from, to]) =>
        to === null ? compare(have, '==', from) : compare(have, '>=', from) && compare(have, '<=', to),
      );
    return (...have) => have.some((one) => one !== undefined && among(one));
  }

  /** Text that a row must have. @param {string} text @returns {Condition} */
  words(text) {
    this.ownWords = true;
    const wanted = text.toLowerCase();
    return { kind: 'row', test: (row) => haystack(this.report, row).includes(wanted) };
  }
}

/** The text that words are looked for in. @param {Capture} report @param {number} row */
function haystack(report, row) {
  const stream = report.stream(row);
  return `${report.name(row)} ${report.info[row]} ${stream.service} ${stream.key}`.toLowerCase();
}

/** The date of a row, in UTC. @param {Capture} report @param {number} row */
function day(report, row) {
  return new Date(Date.parse(report.meta.start) + Math.floor(report.columns.time[row])).toISOString().slice(0, 10);
}

/** @param {string | number | bigint} text */
const isDate = (text) => /^\d{4}-\d\d-\d\d/.test(String(text));
/** @param {string | number | bigint} text */
const isTime = (text) => /^\d\d:\d\d/.test(String(text));

/** @param {string | number | bigint} have @param {string} sign @param {string} want */
function compare(have, sign, want) {
  const numbers = want !== '' && !Number.isNaN(Number(want)) && !Number.isNaN(Number(have)) && have !== '';
  // Times are texts that sort; a date and a time of day have no order.
  if (!numbers && isDate(want) !== isDate(have) && (isTime(want) || isTime(have))) return false;
  const plain = (/** @type {string | number | bigint} */ value) =>
    String(value)
      .toLowerCase()
      .replace(/(\d)z$/, '$1');
  const [a, b] = numbers ? [Number(have), Number(want)] : [plain(have), plain(want)];
  switch (sign) {
    case '==':
      return a === b;
    case '!=':
      return a !== b;
    case '>':
      return a > b;
    case '<':
      return a < b;
    case '>=':
      return a >= b;
    case '<=':
      return a <= b;
    case 'has':
      return String(a)
        .split(/[^\w]+/)
        .includes(String(b));
    default:
      return String(a).includes(String(b));
  }
}

/** Whether a node's value, its symbol or an inferred name does. @param {TreeNode} node @param {Detail} detail @param {ValueTest} test */
function nodeHas(node, detail, test) {
  const shown = [KIND.bytes, KIND.undecoded, KIND.bool].includes(node.kind) ? valueText(node, detail) : node.value;
  const meant = [node.note.split(/\s/)[0], node.note, node.called].filter((one) => one !== '');
  return test(shown, ...(node.kind === KIND.bool ? [node.value] : []), ...meant);
}

/** Whether a tree has a field with a name or a path's end whose value does. @param {Detail} detail @param {string[]} wanted @param {ValueTest} test */
function treeHas(detail, wanted, test) {
  return detail.nodes.some((node) => {
    let at = node;
    for (let i = wanted.length - 1; i >= 0; i--) {
      if (!at) return false;
      const any = wanted[i] === '*' || (wanted[i] === '[*]' && at.name.startsWith('['));
      if (!any && at.name !== wanted[i]) return false;
      at = detail.nodes[at.parent];
    }
    return nodeHas(node, detail, test);
  });
}

/** Whether a condition holds for a row; undefined where only its tree tells. @param {Condition} condition @param {number} row @param {Detail | null} detail @returns {boolean | undefined} */
function holds(condition, row, detail) {
  switch (condition.kind) {
    case 'row':
      return condition.test(row);
    case 'tree':
      return detail ? condition.test(detail) : undefined;
    case 'not': {
      const held = holds(condition.of, row, detail);
      return held === undefined ? undefined : !held;
    }
    default: {
      const ends = condition.kind === 'or';
      /** @type {boolean | undefined} */
      let all = !ends;
      for (const one of condition.of) {
        const held = holds(one, row, detail);
        if (held === ends) return ends;
        if (held === undefined) all = undefined;
      }
      return all;
    }
  }
}

/** The rows that a filter keeps. Gives way to the page now and then; `stop` says that the result is no longer wanted.
 * @param {Capture} report @param {string} text @param {() => boolean} stop @param {(done: number) => void} progress */
async function filterRows(report, text, stop, progress) {
  const asked = await askProgram(report, text);
  if (asked) return asked;
  const condition = new FilterReader(text, report).all();
  const kept = [];
  /** Rows of which only the tree tells. @type {number[]} */
  const open = [];
  for (let row = 0; row < report.rows; row++) {
    const held = holds(condition, row, null);
    if (held !== false) kept.push(row);
    if (held === undefined) open.push(row);
  }
  if (open.length === 0) return Uint32Array.from(kept);
  const dropped = new Set();
  for (const [done, row] of open.entries()) {
    if (!holds(condition, row, await report.detail(row))) dropped.add(row);
    if (done % 2000 === 1999) {
      progress(done / open.length);
      await new Promise((next) => setTimeout(next));
      if (stop()) return null;
    }
  }
  return Uint32Array.from(kept.filter((row) => !dropped.has(row)));
}
