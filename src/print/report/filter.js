// @ts-check
'use strict';
// The filter box: words that a row must have, `-word` that it must not have, `"exact words"`, `is:refused`, `#134`, and
// comparisons such as `service=auth`, `bytes>500` or `node_id=1001`. Comparisons with the keys of KEYS need only the columns;
// others look into the trees, chunk by chunk, while the page stays alive.

/** @typedef {{not: boolean, test: (row: number) => boolean} | {not: boolean, field: string, sign: string, value: string}} Term */

const IS = /** @type {Record<string, number>} */ ({
  refused: FLAG.refused,
  unanswered: FLAG.unanswered,
  event: FLAG.event,
  request: FLAG.expects,
  note: FLAG.note,
  warning: FLAG.warning,
  error: FLAG.error,
});

/** What a row has under a key that needs no tree. @type {Record<string, (report: Capture, row: number) => string | number>} */
const KEYS = {
  record: (report, row) => report.columns.record[row],
  frame: (report, row) => report.columns.frame[row],
  message: (report, row) => report.name(row),
  event: (report, row) => (report.has(row, FLAG.event) ? report.name(row) : ''),
  service: (report, row) => report.stream(row).service,
  protocol: (report, row) => report.stream(row).protocol,
  stream: (report, row) => report.stream(row).number,
  session: (report, row) => report.stream(row).session,
  from: (report, row) => (report.has(row, FLAG.server) ? 'server' : 'client'),
  bytes: (report, row) => report.columns.length[row],
  elapsed_ms: (report, row) => report.columns.elapsed[row],
  network_ms: (report, row) => report.network(row) ?? '',
};

/** Takes a filter apart. @param {string} text @param {Capture} report @returns {Term[]} */
function parseFilter(text, report) {
  const terms = [];
  for (const match of text.matchAll(/(-?)("[^"]*"?|\S+)/g)) {
    const not = match[1] === '-';
    const word = match[2];
    const compared = /^([\w.[\]*]+)(!=|>=|<=|=|>|<|~)(.*)$/.exec(word);
    if (/^#\d+$/.test(word)) {
      const record = Number(word.slice(1));
      terms.push({ not, test: (/** @type {number} */ row) => report.columns.record[row] === record });
    } else if (word.startsWith('is:')) {
      const flag = IS[word.slice(3)];
      if (!flag) throw new Error(`is: knows ${Object.keys(IS).join(', ')}`);
      terms.push({ not, test: (/** @type {number} */ row) => report.has(row, flag) });
    } else if (compared && !word.startsWith('"')) {
      const [, field, sign, raw] = compared;
      const value = raw.replace(/^"|"$/g, '');
      const key = Object.hasOwn(KEYS, field) ? KEYS[field] : null;
      if (key) terms.push({ not, test: (/** @type {number} */ row) => compare(key(report, row), sign, value) });
      else terms.push({ not, field: field.replace(/^fields\./, ''), sign, value });
    } else {
      const wanted = word.replace(/^"|"$/g, '').toLowerCase();
      terms.push({ not, test: (/** @type {number} */ row) => haystack(report, row).includes(wanted) });
    }
  }
  return terms;
}

/** The text that words are looked for in. @param {Capture} report @param {number} row */
function haystack(report, row) {
  const stream = report.stream(row);
  return `${report.name(row)} ${report.info[row]} ${stream.service} ${stream.key}`.toLowerCase();
}

/** @param {string | number | bigint} have @param {string} sign @param {string} want */
function compare(have, sign, want) {
  const numbers = want !== '' && !Number.isNaN(Number(want)) && !Number.isNaN(Number(have)) && have !== '';
  const [a, b] = numbers ? [Number(have), Number(want)] : [String(have).toLowerCase(), want.toLowerCase()];
  switch (sign) {
    case '=':
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
    default:
      return String(a).includes(String(b));
  }
}

/** Whether a tree has a field with a name or a path's end, and a value, a symbol or an inferred name that compares so.
 * @param {Detail} detail @param {{field: string, sign: string, value: string}} term */
function treeHas(detail, term) {
  const wanted = term.field.split('.');
  return detail.nodes.some((node) => {
    let at = node;
    for (let i = wanted.length - 1; i >= 0; i--) {
      if (!at || (wanted[i] !== '*' && at.name !== wanted[i])) return false;
      at = detail.nodes[at.parent];
    }
    const symbol = node.note.split(/\s/)[0];
    return [node.value, symbol, node.called].some(
      (have, i) => (i === 0 || have !== '') && compare(/** @type {any} */ (have), term.sign, term.value),
    );
  });
}

/** The rows that a filter keeps. Gives way to the page now and then; `stop` says that the result is no longer wanted.
 * @param {Capture} report @param {string} text @param {() => boolean} stop @param {(done: number) => void} progress */
async function filterRows(report, text, stop, progress) {
  const terms = parseFilter(text, report);
  const quick = terms.flatMap((term) => ('test' in term ? [term] : []));
  const deep = terms.flatMap((term) => ('test' in term ? [] : [term]));
  let rows = [];
  for (let row = 0; row < report.rows; row++) {
    if (quick.every((term) => term.test(row) !== term.not)) rows.push(row);
  }
  if (deep.length === 0) return Uint32Array.from(rows);
  const kept = [];
  for (const [done, row] of rows.entries()) {
    const detail = await report.detail(row);
    if (deep.every((term) => treeHas(detail, term) !== term.not)) kept.push(row);
    if (done % 2000 === 1999) {
      progress(done / rows.length);
      await new Promise((next) => setTimeout(next));
      if (stop()) return null;
    }
  }
  return Uint32Array.from(kept);
}
