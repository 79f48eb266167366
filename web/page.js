// @ts-check
'use strict';
// The page: takes files, has the program write a report of them, shows it in a frame, and gives out what else the program writes.
// All that is shown of captures is what the program wrote; every run of it is a worker of its own, which ends with it.

/** @typedef {{path: string, blob: Blob, kind: string}} Given */
/** @typedef {{status: number, stderr: string, stdout: Blob, made: [string, Blob][]}} Done */

/** Bytes of captures that a page reads. */
const MOST = 64 << 20;
/** Rows of a report; later records are counted, and said to be. */
const ROWS = '300000';
const REPORT = 'report.html';
const PSEUDONYM_KEY = 'moulsniff-pseudonyms.txt';

/** What a file can be, and the option it is given with. @type {Record<string, string[]>} */
const FILE_KINDS = { capture: [], keys: ['--keys'], tables: ['--tables'], descriptors: ['--sdl'] };
/** Names of files that are keys, tables and descriptors. @type {[RegExp, string][]} */
const BY_NAME = [
  [/\.table$/i, 'tables'],
  [/\.sdl$/i, 'descriptors'],
  [/\.(ini|toml|keys?|der|pem|conf|wireshark)$/i, 'keys'],
  [/\.(pcap|pcapng|cap|gz|zst|log)$/i, 'capture'],
];
/** How captures begin: pcap in its forms, pcapng, gzip, zstd. */
const MAGIC = ['a1b2c3d4', 'd4c3b2a1', 'a1b23c4d', '4d3cb2a1', '0a0d0d0a', '1f8b', '28b52ffd'];

/** What can be saved: its name, the words of the command, the end of the file's name, and whether a filter applies. @type {Record<string, {label: string, words: string[], end: string, made?: string, filter: boolean}>} */
const SAVED = {
  report: {
    label: 'Report: this page as one file',
    words: ['report', '-o', REPORT],
    end: '.html',
    made: REPORT,
    filter: true,
  },
  json: { label: 'JSON, one line a record', words: ['--json'], end: '.jsonl', filter: true },
  csv: { label: 'CSV, for a spreadsheet', words: ['--csv'], end: '.csv', filter: true },
  messages: {
    label: 'Decrypted messages, for Wireshark and this page',
    words: ['export', 'messages', '-o', 'messages.pcapng'],
    end: '.messages.pcapng',
    made: 'messages.pcapng',
    filter: true,
  },
  diagnosis: { label: 'What is wrong, as text', words: ['diagnose', '--all'], end: '.diagnosis.txt', filter: false },
  sessions: { label: 'Sessions, as text', words: ['sessions'], end: '.sessions.txt', filter: false },
  stats: { label: 'Statistics, as text', words: ['stats'], end: '.stats.txt', filter: true },
};

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);

/** @param {string} name @param {string} text */
function make(name, text = '') {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}

/** The bytes of a block of this page. @param {string} id */
function block(id) {
  const element = byId(id);
  const text = atob(element.textContent.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  element.remove();
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw')));
}

/** Words as a shell would take them apart. @param {string} text */
function shellWords(text) {
  return Array.from(text.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g), ([word]) =>
    word.replace(/"([^"]*)"|'([^']*)'/g, '$1$2'),
  );
}

/** A size, for people. @param {number} bytes */
const megabytes = (bytes) => `${(bytes / (1 << 20)).toFixed(1)} MB`;

/** Runs the program. One run at a time is of the page; runs for a filter are the report's. */
class Program {
  constructor() {
    this.module = (async () => WebAssembly.compile(await (await block('program')).arrayBuffer()))();
    const url = URL.createObjectURL(new Blob([byId('worker').textContent], { type: 'text/javascript' }));
    const trusted = /** @type {any} */ (window).trustedTypes;
    const policy = trusted?.createPolicy('moulsniff', { createScriptURL: (/** @type {string} */ given) => given });
    this.script = policy ? policy.createScriptURL(url) : url;
  }

  /** @param {string[]} args @param {[string, Blob][]} files @param {{stdin?: Uint8Array, stop?: AbortSignal, progress?: (read: number) => void}} [more] @returns {Promise<Done>} */
  async run(args, files, { stdin, stop, progress } = {}) {
    const program = await this.module;
    const worker = new Worker(this.script);
    try {
      return await new Promise((resolve, reject) => {
        stop?.addEventListener('abort', () => reject(stop.reason));
        if (stop?.aborted) reject(stop.reason);
        worker.onmessage = ({ data }) => {
          if (data.done) resolve(data.done);
          else if (data.failed) reject(new Error(data.failed));
          else progress?.(data.read);
        };
        worker.onerror = (event) => reject(new Error(event.message || 'the program could not be started'));
        worker.postMessage({ program, args, files, stdin });
      });
    } finally {
      worker.terminate();
    }
  }
}

class Page {
  constructor() {
    this.program = new Program();
    /** @type {Given[]} */
    this.files = [];
    /** The file of `--pseudonyms`, once there is one. @type {Blob | undefined} */
    this.pseudonymKey = undefined;
    /** The report that is shown. @type {Blob | undefined} */
    this.report = undefined;
    /** Its address. */
    this.url = '';
    /** The last filter of the report that the program took. */
    this.filter = '';
    /** @type {Record<string, Blob>} */
    this.samples = {};
    this.stop = new AbortController();
    this.filtering = new AbortController();
    this.buttons();
    this.dropping();
  }

  buttons() {
    const on = (/** @type {string} */ id, /** @type {() => void} */ act) => byId(id).addEventListener('click', act);
    on('choose', () => byId('pick').click());
    on('add', () => byId('pick').click());
    on('choose-folder', () => byId('pick-folder').click());
    for (const id of ['pick', 'pick-folder'])
      byId(id).addEventListener('change', () =>
        this.take(this.picked(id).map((file) => [file.webkitRelativePath || file.name, file])),
      );
    on('sample', () => this.sample());
    on('files-open', () => this.showFiles());
    on('read', () => {
      byId('files').close();
      this.read();
    });
    on('cancel', () => this.stop.abort(new Error('cancelled')));
    on('close', () => this.close());
    on('save-open', () => this.showSave());
    on('save-now', () => this.save());
    on('keep-key', () => this.pseudonymKey && this.download(this.pseudonymKey, PSEUDONYM_KEY));
    on('compare', () => byId('pick-second').click());
    byId('pick-second').addEventListener('change', () => this.compare(this.picked('pick-second')[0]));
    for (const button of document.querySelectorAll('.decode-open'))
      button.addEventListener('click', () => this.showDecode());
    on('decode-now', () => this.decode());
    for (const button of document.querySelectorAll('dialog .shut'))
      button.addEventListener('click', () => button.closest('dialog')?.close());
    for (const [kind, { label }] of Object.entries(SAVED)) {
      const line = make('p');
      const whole = make('label');
      const radio = document.createElement('input');
      Object.assign(radio, { type: 'radio', name: 'kind', value: kind, checked: kind === 'report' });
      radio.addEventListener('change', () => (byId('columns-row').hidden = this.kind() !== 'csv'));
      whole.append(radio, ' ' + label);
      line.append(whole);
      byId('kinds').append(line);
    }
    byId('columns-row').hidden = true;
  }

  /** The files that were chosen. @param {string} id @returns {File[]} */
  picked(id) {
    const files = Array.from(byId(id).files);
    // The same file may be chosen again.
    byId(id).value = '';
    return files;
  }

  dropping() {
    const over = (/** @type {boolean} */ is) => document.body.classList.toggle('over', is);
    document.addEventListener('dragover', (event) => {
      event.preventDefault();
      over(true);
    });
    document.addEventListener('dragleave', (event) => event.relatedTarget === null && over(false));
    document.addEventListener('drop', async (event) => {
      event.preventDefault();
      over(false);
      const items = Array.from(
        event.dataTransfer?.items ?? [],
        (item) => item.webkitGetAsEntry?.() ?? item.getAsFile(),
      );
      this.take((await Promise.all(items.map((item) => filesOf(item)))).flat());
    });
  }

  /** Adds files and reads all of them. @param {[string, Blob][]} files */
  async take(files) {
    for (const [name, blob] of files) {
      if (name.split('/').some((step) => step.startsWith('.'))) continue;
      const kind = await this.kindOf(name, blob);
      if (kind === 'pseudonyms') this.pseudonymKey = blob;
      else {
        // A file that is given again takes the place of the first.
        this.files = this.files.filter((file) => file.path !== name);
        this.files.push({ path: name, blob, kind });
      }
    }
    if (byId('files').open) this.showFiles();
    else if (this.files.some((file) => file.kind === 'capture')) await this.read();
    else if (this.files.length)
      this.trouble(`${this.files.map((file) => file.path).join(', ')}: taken. Now drop a capture.`);
  }

  /** What a file is: by its content where that tells, else by its name, else as the program says. @param {string} name @param {Blob} blob */
  async kindOf(name, blob) {
    const head = new Uint8Array(await blob.slice(0, 1024).arrayBuffer());
    const hex = Array.from(head.subarray(0, 4), (byte) => byte.toString(16).padStart(2, '0')).join('');
    if (MAGIC.some((magic) => hex.startsWith(magic))) return 'capture';
    if (new TextDecoder().decode(head).includes('\nmoulsniff pseudonyms ')) return 'pseudonyms';
    const known = BY_NAME.find(([pattern]) => pattern.test(name));
    if (known) return known[1];
    const { status } = await this.program.run(['keys', 'check', name], [[name, blob]]);
    return status === 0 ? 'keys' : 'capture';
  }

  /** Captures, and all files that the program is given. */
  captures() {
    return this.files.filter((file) => file.kind === 'capture');
  }

  /** @returns {[string, Blob][]} */
  blobs() {
    return this.files.map(({ path, blob }) => [path, blob]);
  }

  /** The words that name the files, and the further options. @param {string[]} captures */
  words(captures = this.captures().map((file) => file.path)) {
    const named = this.files.flatMap(({ kind, path }) => (kind === 'capture' ? [] : [...FILE_KINDS[kind], path]));
    return [...named, ...shellWords(byId('options').value), '--', ...captures];
  }

  /** Runs the program for the page: with progress, one run at a time. @param {string} doing @param {string[]} args @param {{files?: [string, Blob][], stdin?: Uint8Array}} [more] @returns {Promise<Done | undefined>} */
  async run(doing, args, { files = this.blobs(), stdin } = {}) {
    this.stop.abort(new Error('another run began'));
    const stop = (this.stop = new AbortController());
    const bar = byId('progress');
    const total = files.reduce((sum, [, blob]) => sum + blob.size, 0);
    byId('doing').textContent = doing;
    bar.removeAttribute('value');
    byId('busy').hidden = false;
    this.trouble('');
    try {
      const progress = (/** @type {number} */ read) => (bar.value = Math.min(1, read / Math.max(1, total)));
      return await this.program.run(args, files, { stdin, stop: stop.signal, progress });
    } catch (error) {
      if (stop === this.stop) this.trouble(error instanceof Error ? error.message : String(error));
      return undefined;
    } finally {
      if (stop === this.stop) byId('busy').hidden = true;
    }
  }

  /** Says what went wrong. @param {string} text */
  trouble(text) {
    byId('trouble').textContent = text.trim();
    byId('trouble').hidden = text.trim() === '';
  }

  /** Has a report written of all files, and shows it. */
  async read() {
    const captures = this.captures();
    const size = captures.reduce((sum, { blob }) => sum + blob.size, 0);
    if (size > MOST) {
      this.trouble(
        `${megabytes(size)} of captures: this page reads ${megabytes(MOST)}. The program reads any size: moulsniff report ${captures[0].path} -o ${REPORT}`,
      );
      return;
    }
    const done = await this.run(`Reading ${megabytes(size)}`, [
      'report',
      '-o',
      REPORT,
      '--max-messages',
      ROWS,
      ...this.words(),
    ]);
    if (!done) return;
    const report = done.made.find(([path]) => path === REPORT)?.[1];
    const said = done.stderr.trim();
    if (report) this.show(report, said);
    // With a report, what is said is about damaged or doubtful input.
    if (done.status !== 0 || !report) this.trouble(said || 'nothing was read');
  }

  /** @param {Blob} report @param {string} said */
  show(report, said) {
    this.clear();
    this.report = new Blob([report], { type: 'text/html' });
    this.url = URL.createObjectURL(this.report);
    const frame = document.createElement('iframe');
    frame.title = 'Report';
    frame.addEventListener('load', () => {
      this.answer(frame);
      frame.focus();
    });
    frame.src = this.url;
    byId('shown').replaceChildren(frame);
    const names = this.captures().map((file) => file.path);
    document.title = `${names.join(', ')} · moulsniff`;
    byId('names').textContent = names.length > 3 ? `${names.length} captures` : names.join(', ');
    // The counts are in the report.
    const lines = said.split('\n').filter((line) => !/^\d+ frames?, /.test(line));
    byId('state').textContent = lines
      .map((line) => line.replace(/^moulsniff: /, ''))
      .join('\n')
      .trim();
    byId('start').hidden = true;
    byId('top').hidden = byId('shown').hidden = false;
  }

  /** Forgets the report. */
  clear() {
    this.filtering.abort(new Error('closed'));
    byId('shown').replaceChildren();
    if (this.url) URL.revokeObjectURL(this.url);
    this.url = '';
    this.filter = '';
    this.report = undefined;
  }

  /** Forgets everything that was given. */
  close() {
    this.stop.abort(new Error('closed'));
    this.clear();
    this.files = [];
    this.pseudonymKey = undefined;
    byId('options').value = '';
    document.title = 'moulsniff';
    byId('top').hidden = byId('shown').hidden = true;
    byId('start').hidden = false;
    this.trouble('');
    byId('choose').focus();
  }

  /** Answers the report: which records a filter keeps. Takes what was dropped on it. @param {HTMLIFrameElement} frame */
  answer(frame) {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = async ({ data: { text, files } }) => {
      if (files) return this.take(files.map((/** @type {File} */ file) => [file.name, file]));
      this.filtering.abort(new Error('another filter'));
      this.filtering = new AbortController();
      const stop = this.filtering.signal;
      this.filter = '';
      // The report needs nobody for its own words.
      if (text === '') return;
      try {
        const args = ['--columns', 'record', '-Y', text, ...this.words()];
        const { status, stdout, stderr } = await this.program.run(args, this.blobs(), { stop });
        const said = stderr.split('\n').find((line) => line.startsWith('moulsniff: filter: '));
        const fault = said?.slice('moulsniff: filter: '.length);
        if (status === 2) return port1.postMessage({ fault: fault ?? stderr.trim() });
        this.filter = text;
        const records = (await stdout.text()).split('\n').slice(1, -1).map(Number);
        port1.postMessage({ records: Uint32Array.from(records) });
      } catch (error) {
        if (!stop.aborted) port1.postMessage({ fault: error instanceof Error ? error.message : String(error) });
      }
    };
    frame.contentWindow?.postMessage('moulsniff', '*', [port2]);
  }

  async sample() {
    const [capture, keys] = [await this.sampleBlob('sample-capture'), await this.sampleBlob('sample-keys')];
    this.take([
      ['evening.pcapng', capture],
      ['evening.keys', keys],
    ]);
  }

  /** @param {string} id */
  async sampleBlob(id) {
    return (this.samples[id] ??= await block(id).blob());
  }

  showFiles() {
    byId('file-list').replaceChildren(
      ...this.files.map((file) => {
        const line = make('li');
        const kinds = document.createElement('select');
        kinds.setAttribute('aria-label', `What ${file.path} is`);
        kinds.append(...Object.keys(FILE_KINDS).map((kind) => new Option(kind, kind, false, kind === file.kind)));
        kinds.addEventListener('change', () => (file.kind = kinds.value));
        const away = make('button', 'Remove');
        away.setAttribute('aria-label', `Remove ${file.path}`);
        away.addEventListener('click', () => {
          this.files = this.files.filter((other) => other !== file);
          line.remove();
        });
        line.append(make('span', file.path), make('small', megabytes(file.blob.size)), kinds, away);
        return line;
      }),
    );
    if (!byId('files').open) byId('files').showModal();
  }

  kind() {
    return /** @type {HTMLInputElement} */ (document.querySelector('input[name=kind]:checked')).value;
  }

  showSave() {
    byId('only-row').hidden = this.filter === '';
    byId('only-filter').textContent = this.filter;
    byId('keep-key').hidden = !this.pseudonymKey;
    byId('saved').textContent = '';
    byId('save').showModal();
  }

  async save() {
    const { words, end, made, filter } = SAVED[this.kind()];
    const name =
      (this.captures()[0]?.path.split('/').pop() ?? 'capture').replace(/(\.(pcap|pcapng|cap|gz|zst|log))+$/i, '') + end;
    const pseudonyms = byId('pseudonyms').checked;
    const only = filter && this.filter !== '' && byId('only').checked;
    if (this.kind() === 'report' && this.report && !only && !pseudonyms && !byId('redact').checked) {
      this.download(this.report, name);
      return;
    }
    const args = [...words, '--quiet'];
    if (this.kind() === 'csv' && byId('columns').value) args.push('--columns', byId('columns').value);
    if (byId('redact').checked) args.push('--redact');
    if (pseudonyms) args.push('--pseudonyms', PSEUDONYM_KEY);
    if (only) args.push('-Y', this.filter);
    const files = this.blobs();
    if (pseudonyms && this.pseudonymKey) files.push([PSEUDONYM_KEY, this.pseudonymKey]);
    byId('saved').textContent = 'being written …';
    const done = await this.run(`Writing ${name}`, [...args, ...this.words()], { files });
    if (!done) {
      byId('saved').textContent = byId('trouble').textContent;
      return;
    }
    this.pseudonymKey ??= done.made.find(([path]) => path === PSEUDONYM_KEY)?.[1];
    byId('keep-key').hidden = !this.pseudonymKey;
    const blob = made ? done.made.find(([path]) => path === made)?.[1] : done.stdout;
    if (blob?.size) this.download(blob, name);
    byId('saved').textContent =
      [blob?.size ? `${name} is written.` : '', done.stderr.trim()].join(' ').trim() || 'There is nothing to write.';
  }

  /** @param {Blob} blob @param {string} name */
  download(blob, name) {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  /** Compares the capture that is shown with another one. @param {File} second */
  async compare(second) {
    const name = this.files.some((file) => file.path === second.name) ? `second ${second.name}` : second.name;
    const first = this.captures().map((file) => file.path);
    const done = await this.run(`Comparing with ${name}`, ['diff', ...this.words([...first, name])], {
      files: [...this.blobs(), [name, second]],
    });
    if (!done) return;
    // 4: they differ.
    if (![0, 4].includes(done.status)) return this.trouble(done.stderr);
    this.showText(
      `${first.join(', ')} and ${name}`,
      (await done.stdout.text()) || 'They say the same.',
      'difference.txt',
    );
  }

  async showDecode() {
    byId('decode').showModal();
    if (byId('services').firstChild) return;
    const { stdout } = await this.program.run(['tables', 'list'], []);
    const names = (await stdout.text()).split('\n').map((line) => line.split('\t')[0]);
    byId('services').replaceChildren(...Array.from(new Set(names), (name) => new Option(name)));
  }

  async decode() {
    const text = byId('bytes').value;
    const args = ['decode', ...this.words([byId('service').value, '-'])];
    const done = await this.run('Decoding', args, { stdin: new TextEncoder().encode(text) });
    const shown = byId('decoded');
    shown.hidden = false;
    shown.textContent = done ? ((await done.stdout.text()) + done.stderr).trim() : byId('trouble').textContent;
  }

  /** @param {string} title @param {string} text @param {string} name */
  showText(title, text, name) {
    byId('text-title').textContent = title;
    byId('text-shown').textContent = text;
    byId('text-save').onclick = () => this.download(new Blob([text]), name);
    byId('text').showModal();
  }
}

/** The files of what was dropped, with their paths. @param {any} entry a file, or an entry of the dropped folders @returns {Promise<[string, Blob][]>} */
async function filesOf(entry) {
  if (!entry) return [];
  if (entry instanceof File) return [[entry.name, entry]];
  if (entry.isFile)
    return [[entry.fullPath.slice(1), await new Promise((resolve, reject) => entry.file(resolve, reject))]];
  const reader = entry.createReader();
  const all = [];
  // A folder comes in parts.
  for (;;) {
    const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!part.length) break;
    all.push(...(await Promise.all(part.map((/** @type {any} */ inner) => filesOf(inner)))).flat());
  }
  return all.sort(([a], [b]) => (a < b ? -1 : 1));
}

new Page();
