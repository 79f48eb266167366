// @ts-check
'use strict';
// Opens the data that stands in this page. Every block is deflated and written in base64. `meta` is JSON, `columns` holds typed
// arrays that `meta.columns` lists in order, `info` is one line of text a row, and each `chunk-N` has the trees and the bytes
// of the rows from `meta.chunks[N]` on. Nothing here touches the page's elements.

/** @typedef {{key: string, transport: string, number: number, protocol: string, service: string, client: string, server: string, session: number, how: string, start: number, end: number, places: {name: string, from: number, to: number}[]}} Stream */
/** @typedef {[number, string, string, boolean]} Step Of a story: its record, its time, what it is about, and whether it is bad. */
/** @typedef {{conclusion: number, weight: string, kind: string, text: string, session?: number, records?: number[], frames?: number[], side?: string, more?: string}} Conclusion */
/** @typedef {{number: number, state: string, bad: boolean, from: string, to: string, story: Step[], steps_left_out: number, title: string, inferred: boolean, detail: string, sent: number, answered: number, refused: number, unanswered: number, p50: number | null, p95: number | null, max: number | null, network: number | null, to_server: number | null, to_client: number | null, slowest: number | null, slowest_network: number | null}} Session Times in milliseconds. */
/** @typedef {{id: string, type: string | null, name: string | null, also: string[], fetched: boolean, deleted: boolean, said: [number, string][]}} VaultNode */
/** @typedef {{parent: string, child: string, gone: boolean}} VaultLink */
/** @typedef {{captures: string[], keys: string[], limits: string[], start: string, frames: number, folded: number, rows: number, chunks: number[], columns: [string, string, number][], messages: string[], streams: Stream[], sessions: Session[], conclusions: Conclusion[], requests: number, problems: {error: number, warning: number, note: number}, bytes: Record<string, number>, texts: string[], vault: {nodes: VaultNode[], links: VaultLink[], left_out: number} | null, program: string}} Meta */
/** @typedef {{name: string, type: string, kind: number, marks: number, buffer: number, start: number, bits: number, value: string | number | bigint, note: string, called: string, by: number, depth: number, end: number, parent: number}} TreeNode */
/** @typedef {{name: string, type: string, kind: number, marks: number, buffer: number, bits: number, has: number}} Form What many nodes of a chunk have in common. */
/** @typedef {{severity: number, node: number, text: string}} Problem */
/** @typedef {{nodes: TreeNode[], buffers: {made: string, length: number, bytes: Uint8Array}[], problems: Problem[], doc: string}} Detail */

const KIND = {
  struct: 0,
  list: 1,
  none: 2,
  unsigned: 3,
  signed: 4,
  unsigned64: 5,
  signed64: 6,
  f32: 7,
  f64: 8,
  bool: 9,
  uuid: 10,
  uuidbe: 11,
  ipv4: 12,
  text: 13,
  bytes: 14,
  hidden: 15,
  undecoded: 16,
};
const MARK = { span: 1, secret: 2, opaque: 4, guess: 8 };
/** What is written of each node of a form. */
const HAS = { descendants: 1, place: 2, length: 4, meaning: 8, name: 16, hidden: 32, captured: 64 };
/** How many of a chunk's nodes tell which forms are expected. */
const MAX_MODEL = 1 << 20;
/** Added to how a buffer was made: its bytes are among the stored ones, which are not deflated. */
const STORED = 8;
const MADE = ['captured', 'decompressed', 'decrypted', 'expanded', 'reassembled'];
/** In the column `network`: the capture does not show it; the row is no reply, or not the last one to its request. */
const NETWORK = { unknown: -1, notLast: -2 };
const FLAG = { server: 1, event: 2, refused: 4, unanswered: 8, expects: 16, note: 32, warning: 64, error: 128 };

/** The bytes of a block of this page as they are written, if the page has the block. @param {string} id */
function writtenBlock(id) {
  const element = document.getElementById(id);
  if (!element) return undefined;
  const text = atob((element.textContent || '').trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** The bytes of a block of this page, without its compression. @param {string} id */
async function openBlock(id) {
  const packed = writtenBlock(id);
  if (!packed) throw new Error('this report lacks its part ' + id);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads the numbers and texts of a chunk, one after the other. */
class ChunkReader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  byte() {
    return this.bytes[this.at++] || 0;
  }
  /** An unsigned LEB128; numbers above 2^53 come as BigInt. @returns {number | bigint} */
  wide() {
    let value = 0,
      scale = 1;
    for (let i = 0; i < 7; i++) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
    let big = BigInt(value),
      shift = 49n;
    for (let i = 0; i < 3; i++) {
      const byte = this.byte();
      big += BigInt(byte & 127) << shift;
      if (byte < 128) break;
      shift += 7n;
    }
    return big > BigInt(Number.MAX_SAFE_INTEGER) ? big : Number(big);
  }
  number() {
    return Number(this.wide());
  }
  take(/** @type {number} */ length) {
    const bytes = this.bytes.subarray(this.at, this.at + length);
    this.at += length;
    return bytes;
  }
  text() {
    return new TextDecoder().decode(this.take(this.number()));
  }
}

/** The forms of a chunk's nodes: how many have the form that is expected, the form of the next one, and so on. Behind it the forms are expected that followed when it came unexpectedly the last time. */
class FormReader {
  /** @param {ChunkReader} from @param {Form[]} forms */
  constructor(from, forms) {
    this.from = from;
    this.forms = forms;
    /** @type {number[]} The forms of the first nodes. */
    this.nodes = [];
    /** The next node is expected to have the form of this one. */
    this.model = 0;
    /** The node behind the last one that unexpectedly had a form. */
    this.behind = new Uint32Array(forms.length);
    this.run = from.number();
  }
  form() {
    let form;
    if (this.run > 0) {
      this.run--;
      form = this.nodes[this.model++];
      this.add(form);
    } else {
      form = this.from.number();
      this.add(form);
      this.model = this.behind[form];
      this.behind[form] = this.nodes.length;
      this.run = this.from.number();
    }
    return this.forms[form];
  }
  /** @param {number} form */
  add(form) {
    if (this.nodes.length < MAX_MODEL) this.nodes.push(form);
  }
}

/** Reads one row's tree. @param {ChunkReader} from @param {ChunkReader} stored @param {string[]} strings @param {FormReader} forms @returns {Detail} */
function readDetail(from, stored, strings, forms) {
  const doc = strings[from.number()];
  const buffers = [];
  for (let count = from.number(); count > 0; count--) {
    const how = from.byte();
    const [length, kept] = [from.number(), from.number()];
    buffers.push({ made: MADE[how % STORED] || '', length, bytes: (how < STORED ? from : stored).take(kept) });
  }
  const nodes = [];
  /** @type {number[]} The nodes around the present one. */
  const open = [];
  /** @type {number[]} How many children of each node were read. */
  const places = [];
  let expected = 0;
  for (let index = 0, count = from.number(); index < count; index++) {
    const { type, kind, marks, buffer, bits: length, has, name: named } = forms.form();
    let name = named;
    const end = index + 1 + (has & HAS.descendants ? from.number() : 0);
    const start = expected + (has & HAS.place ? unzigzag(from.number()) : 0);
    const bits = has & HAS.length ? unrotate(from.number()) : length;
    expected = end > index + 1 ? start : start + bits;
    const value =
      has & HAS.captured
        ? capturedValue(kind, buffers[buffer].bytes, start, bits)
        : readValue(has & HAS.hidden ? KIND.hidden : kind, from, strings);
    const note = has & HAS.meaning ? strings[from.number()] : '';
    const called = has & HAS.name ? strings[from.number()] : '';
    const by = called ? from.number() : 0;
    while (open.length && nodes[open[open.length - 1]].end <= index) open.pop();
    const parent = open.length ? open[open.length - 1] : -1;
    if (parent >= 0) {
      if (!name) name = `[${places[parent]}]`;
      places[parent] = (places[parent] || 0) + 1;
    }
    places[index] = 0;
    nodes.push({
      name,
      type,
      kind: has & HAS.hidden ? KIND.hidden : kind,
      marks,
      buffer,
      start,
      bits,
      value,
      note,
      called,
      by,
      depth: open.length,
      end,
      parent,
    });
    if (end > index + 1) open.push(index);
  }
  const problems = [];
  for (let count = from.number(); count > 0; count--) {
    problems.push({ severity: from.byte(), node: from.number(), text: strings[from.number()] });
  }
  return { nodes, buffers, problems, doc };
}

/** A length in bits whose three lowest bits were put above the others. @param {number} written */
function unrotate(written) {
  return ((written << 3) | (written >>> 29)) >>> 0;
}

/** The signed number that zigzag coding made `coded` of. @param {number} coded */
function unzigzag(coded) {
  return coded % 2 ? -(coded + 1) / 2 : coded / 2;
}

/** The integer at a place in captured bytes, lowest byte first. @param {number} kind @param {Uint8Array} bytes @param {number} start @param {number} bits @returns {number | bigint} */
function capturedValue(kind, bytes, start, bits) {
  const first = start / 8;
  if (bits <= 32) {
    let value = 0;
    for (let at = first + bits / 8 - 1; at >= first; at--) value = value * 256 + (bytes[at] || 0);
    return kind === KIND.signed && value >= 2 ** (bits - 1) ? value - 2 ** bits : value;
  }
  let value = 0n;
  for (let at = first + bits / 8 - 1; at >= first; at--) value = (value << 8n) | BigInt(bytes[at] || 0);
  if (kind === KIND.signed64) value = BigInt.asIntN(bits, value);
  return BigInt.asIntN(54, value) === value ? Number(value) : value;
}

/** @param {number} kind @param {ChunkReader} from @param {string[]} strings @returns {string | number | bigint} */
function readValue(kind, from, strings) {
  switch (kind) {
    case KIND.struct:
    case KIND.list:
    case KIND.none:
    case KIND.bytes:
    case KIND.undecoded:
      return '';
    case KIND.unsigned:
    case KIND.unsigned64:
    case KIND.bool:
      return from.wide();
    case KIND.signed:
    case KIND.signed64: {
      const coded = BigInt(from.wide());
      const value = coded & 1n ? -((coded + 1n) >> 1n) : coded >> 1n;
      return BigInt.asIntN(53, value) === value ? Number(value) : value;
    }
    case KIND.f32:
    case KIND.f64:
    case KIND.uuid:
    case KIND.uuidbe:
    case KIND.ipv4:
    case KIND.hidden:
    case KIND.text:
      return strings[from.number()];
    default:
      return from.number();
  }
}

/** All that the page shows. */
class Capture {
  /** @param {Meta} meta @param {Record<string, any>} columns @param {string[]} info */
  constructor(meta, columns, info) {
    this.meta = meta;
    this.columns = columns;
    this.info = info;
    this.rows = meta.rows;
    /** @type {Map<number, Promise<Detail[]>>} The chunks opened last, at most four. */
    this.chunks = new Map();
    /** @type {Map<number, number>} Rows by record number. */
    this.rowOf = new Map();
    for (let row = 0; row < this.rows; row++) this.rowOf.set(columns.record[row], row);
    /** @type {Map<number, number>} The row of the first reply to a request's record. */
    this.replyTo = new Map();
    for (let row = 0; row < this.rows; row++) {
      const request = columns.reply[row];
      if (request && !this.replyTo.has(request)) this.replyTo.set(request, row);
    }
  }

  static async open() {
    /** @type {Meta} */
    const meta = JSON.parse(new TextDecoder().decode(await openBlock('data-meta')));
    const bytes = await openBlock('data-columns');
    /** @type {Record<string, any>} */
    const columns = {};
    let at = 0;
    for (const [name, kind, count] of meta.columns) {
      const make = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array }[kind];
      if (!make) throw new Error('a column of an unknown kind: ' + kind);
      at = Math.ceil(at / make.BYTES_PER_ELEMENT) * make.BYTES_PER_ELEMENT;
      columns[name] = new make(bytes.buffer, bytes.byteOffset + at, count);
      at += count * make.BYTES_PER_ELEMENT;
    }
    const info = new TextDecoder().decode(await openBlock('data-info')).split('\n');
    return new Capture(meta, columns, info);
  }

  /** The name of a row's message or event. @param {number} row */
  name(row) {
    return this.meta.messages[this.columns.name[row]] || '';
  }
  /** @param {number} row */
  stream(row) {
    return this.meta.streams[this.columns.stream[row]];
  }
  /** @param {number} row @param {number} flag */
  has(row, flag) {
    return (this.columns.flags[row] & flag) !== 0;
  }

  /** How many milliseconds of a reply's time the network took, or undefined. @param {number} row @returns {number | undefined} */
  network(row) {
    const network = this.columns.network[row];
    return network >= 0 ? Math.min(network, this.columns.elapsed[row]) : undefined;
  }

  /** A row's tree and bytes. @param {number} row @returns {Promise<Detail>} */
  async detail(row) {
    const chunks = this.meta.chunks;
    // The last chunk that begins at this row or before it.
    let [number, end] = [0, chunks.length];
    while (end - number > 1) {
      const middle = (number + end) >> 1;
      if (chunks[middle] <= row) number = middle;
      else end = middle;
    }
    let chunk = this.chunks.get(number);
    if (chunk) this.chunks.delete(number);
    else
      chunk = openBlock('data-chunk-' + number).then((bytes) =>
        readChunk(bytes, writtenBlock('data-stored-' + number)),
      );
    this.chunks.set(number, chunk);
    if (this.chunks.size > 4) this.chunks.delete(this.chunks.keys().next().value ?? 0);
    return (await chunk)[row - chunks[number]];
  }
}

/** @param {Uint8Array} bytes @param {Uint8Array} [storedBytes] @returns {Detail[]} */
function readChunk(bytes, storedBytes = new Uint8Array()) {
  const [from, stored] = [new ChunkReader(bytes), new ChunkReader(storedBytes)];
  const strings = [''];
  for (let count = from.number(); count > 0; count--) strings.push(from.text());
  /** @type {Form[]} */
  const forms = [];
  for (let count = from.number(); count > 0; count--) {
    const [name, type] = [strings[from.number()], strings[from.number()]];
    const [kind, marks, buffer] = [from.number(), from.number(), from.number()];
    forms.push({ name, type, kind, marks, buffer, bits: from.number(), has: from.number() });
  }
  const ofNodes = new FormReader(new ChunkReader(from.take(from.number())), forms);
  const details = [];
  for (let count = from.number(); count > 0; count--) details.push(readDetail(from, stored, strings, ofNodes));
  return details;
}

/** A node's value as a tree shows it. @param {TreeNode} node @param {Detail} detail */
function valueText(node, detail) {
  switch (node.kind) {
    case KIND.struct:
      return '';
    case KIND.list:
      return '';
    case KIND.none:
      return 'null';
    case KIND.bool:
      return node.value === 0 ? 'false' : node.value === 1 ? 'true' : String(node.value);
    case KIND.text:
      return JSON.stringify(node.value);
    case KIND.bytes:
    case KIND.undecoded: {
      const all = detail.buffers[node.buffer]?.bytes ?? new Uint8Array();
      const bytes = all.subarray(Math.floor(node.start / 8), Math.ceil((node.start + node.bits) / 8));
      const hex = Array.from(bytes.subarray(0, 24), (b) => b.toString(16).padStart(2, '0')).join('');
      return bytes.length > 24 ? `${hex}… (${count(bytes.length)} bytes)` : hex;
    }
    default:
      return String(node.value);
  }
}

/** A whole number with its thousands apart. @param {number} value */
function count(value) {
  return Math.round(value).toLocaleString('en');
}
/** A count with its noun: `1 frame`, `2 frames`. @param {number} value @param {string} noun */
function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}
/** Milliseconds with three digits that mean something. @param {number} value */
function milliseconds(value) {
  return value >= 1000
    ? count(value)
    : value >= 100
      ? value.toFixed(0)
      : value >= 10
        ? value.toFixed(1)
        : value.toFixed(3);
}
