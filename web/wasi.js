// @ts-check
'use strict';
// Runs the program, which is compiled for WASI, in a worker or in Node: its arguments, its files and its standard streams.
// Every run has a memory of its own, so that nothing of one run is left in the next. It knows nothing of the program's options.

/** @typedef {{size: number, read: (at: number, length: number) => Uint8Array}} ReadOnly A file that is given. */
/** @typedef {ReadOnly | Pile} AnyFile */
/** @typedef {{id: number, folder: string} | {id: number, file: AnyFile, at: number, append: boolean}} Opened */
/** @typedef {{args: string[], files: Record<string, ReadOnly>, stdin?: Uint8Array, progress?: (read: number) => void}} Run */
/** @typedef {{status: number, stdout: Pile, stderr: string, made: Record<string, Pile>}} Outcome */

const OK = 0;
const BAD_NUMBER = 8;
const EXISTS = 20;
const INVALID = 28;
const IS_FOLDER = 31;
const NOT_THERE = 44;
const NOT_SUPPORTED = 58;
const IS_NO_FOLDER = 54;
/** What a file is: standard streams are neither files nor terminals. */
const TYPE = { stream: 0, folder: 3, file: 4 };
/** The rights of everything: all of them. */
const ALL_RIGHTS = (1n << 30n) - 1n;
/** The number of the folder that holds all files. */
const ROOT = 3;

/** Bytes that are written, in pieces, so that growing copies nothing. */
class Pile {
  constructor() {
    this.size = 0;
    /** @type {Uint8Array<ArrayBuffer>[]} */
    this.pieces = [];
  }

  /** @param {number} at @param {Uint8Array} bytes */
  write(at, bytes) {
    for (let done = 0; done < bytes.length; ) {
      const [piece, from] = [Math.floor((at + done) / Pile.PIECE), (at + done) % Pile.PIECE];
      while (this.pieces.length <= piece) this.pieces.push(new Uint8Array(Pile.PIECE));
      const part = bytes.subarray(done, done + Pile.PIECE - from);
      this.pieces[piece].set(part, from);
      done += part.length;
    }
    this.size = Math.max(this.size, at + bytes.length);
  }

  /** @param {number} at @param {number} length */
  read(at, length) {
    const [piece, from] = [Math.floor(at / Pile.PIECE), at % Pile.PIECE];
    return this.pieces[piece]?.subarray(from, Math.min(from + length, from + this.size - at)) ?? new Uint8Array();
  }

  /** All of it, for a Blob. @returns {Uint8Array<ArrayBuffer>[]} */
  parts() {
    return this.pieces.map((piece, i) => piece.subarray(0, Math.max(0, this.size - i * Pile.PIECE)));
  }

  text() {
    const decoder = new TextDecoder();
    return this.parts().reduce((text, part) => text + decoder.decode(part, { stream: true }), '') + decoder.decode();
  }
}
Pile.PIECE = 1 << 20;

/** The program's end. */
class Exit {
  /** @param {number} status */
  constructor(status) {
    this.status = status;
  }
}

/** The functions that WASI has, for one run. */
class Wasi {
  /** @param {Run} run */
  constructor(run) {
    this.args = ['moulsniff', ...run.args].map((word) => new TextEncoder().encode(word + '\0'));
    this.progress = run.progress ?? (() => {});
    this.given = run.files;
    /** @type {Record<string, Pile>} */
    this.made = {};
    const stdin = new Pile();
    stdin.write(0, run.stdin ?? new Uint8Array());
    this.stdout = new Pile();
    this.stderr = new Pile();
    /** @type {Map<number, Opened>} */
    this.open = new Map();
    for (const [id, file] of [stdin, this.stdout, this.stderr].entries())
      this.open.set(id, { id, file, at: 0, append: false });
    this.open.set(ROOT, { id: ROOT, folder: '' });
    this.next = ROOT + 1;
    this.bytesRead = 0;
    /** @type {WebAssembly.Memory | undefined} */
    this.memory = undefined;
  }

  get view() {
    return new DataView(/** @type {WebAssembly.Memory} */ (this.memory).buffer);
  }

  /** @param {number} at @param {number} length */
  bytes(at, length) {
    return new Uint8Array(/** @type {WebAssembly.Memory} */ (this.memory).buffer, at >>> 0, length >>> 0);
  }

  /** A path within a folder, without what leads nowhere. @param {number} folder @param {number} at @param {number} length */
  path(folder, at, length) {
    const open = this.open.get(folder);
    const text = new TextDecoder().decode(this.bytes(at, length));
    const steps = `${open && 'folder' in open ? open.folder : ''}/${text}`.split('/');
    return steps.filter((step) => step !== '' && step !== '.').join('/');
  }

  /** @param {string} path @returns {AnyFile | undefined} */
  file(path) {
    if (Object.hasOwn(this.made, path)) return this.made[path];
    return Object.hasOwn(this.given, path) ? this.given[path] : undefined;
  }

  /** The names in a folder, and whether each is a folder. @param {string} folder @returns {[string, boolean][]} */
  names(folder) {
    const before = folder === '' ? '' : folder + '/';
    const rest = [...Object.keys(this.given), ...Object.keys(this.made)]
      .filter((path) => path.startsWith(before))
      .map((path) => path.slice(before.length).split('/'));
    return [...new Map(rest.map((steps) => [steps[0], steps.length > 1]))].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** @param {string} path */
  isFolder(path) {
    return path === '' || (this.file(path) === undefined && this.names(path).length > 0);
  }

  /** Writes what is known of a file. @param {number} to @param {number} type @param {number} size @param {number} id */
  filestat(to, type, size, id) {
    this.bytes(to, 64).fill(0);
    this.view.setBigUint64(to + 8, BigInt(id), true);
    this.view.setUint8(to + 16, type);
    this.view.setBigUint64(to + 24, 1n, true);
    this.view.setBigUint64(to + 32, BigInt(size), true);
    return OK;
  }

  /** @param {number} pointers @param {number} bytes @param {Uint8Array[]} words */
  words(pointers, bytes, words) {
    for (const [i, word] of words.entries()) {
      this.view.setUint32(pointers + 4 * i, bytes, true);
      this.bytes(bytes, word.length).set(word);
      bytes += word.length;
    }
    return OK;
  }

  /** Calls `act` with each of a list of buffers until it takes less than all of one; returns what it took. @param {number} list @param {number} count @param {(bytes: Uint8Array) => number} act */
  each(list, count, act) {
    let all = 0;
    for (let i = 0; i < count; i++) {
      const buffer = this.bytes(this.view.getUint32(list + 8 * i, true), this.view.getUint32(list + 8 * i + 4, true));
      const taken = act(buffer);
      all += taken;
      if (taken < buffer.length) break;
    }
    return all;
  }

  /** The functions by name. A function that is not here says that it is not supported. */
  functions() {
    /** @type {Record<string, (...words: any[]) => number>} */
    const all = {
      args_sizes_get: (count, size) => {
        this.view.setUint32(count, this.args.length, true);
        this.view.setUint32(
          size,
          this.args.reduce((sum, word) => sum + word.length, 0),
          true,
        );
        return OK;
      },
      args_get: (pointers, bytes) => this.words(pointers, bytes, this.args),
      environ_sizes_get: (count, size) => {
        this.view.setUint32(count, 0, true);
        this.view.setUint32(size, 0, true);
        return OK;
      },
      environ_get: () => OK,
      clock_time_get: (clock, _precision, to) => {
        const now = clock === 0 ? Date.now() : performance.now();
        this.view.setBigUint64(to, BigInt(Math.round(now * 1e6)), true);
        return OK;
      },
      random_get: (at, length) => {
        for (let done = 0; done < length; done += 65536)
          crypto.getRandomValues(this.bytes(at + done, Math.min(65536, length - done)));
        return OK;
      },
      sched_yield: () => OK,
      proc_exit: (status) => {
        throw new Exit(status);
      },
      fd_prestat_get: (fd, to) => {
        if (fd !== ROOT) return BAD_NUMBER;
        this.view.setUint32(to, 0, true);
        this.view.setUint32(to + 4, 1, true);
        return OK;
      },
      fd_prestat_dir_name: (_fd, to) => {
        this.bytes(to, 1)[0] = 0x2f;
        return OK;
      },
      fd_fdstat_get: (fd, to) => {
        const open = this.open.get(fd);
        if (!open) return BAD_NUMBER;
        this.bytes(to, 24).fill(0);
        this.view.setUint8(to, fd < ROOT ? TYPE.stream : 'folder' in open ? TYPE.folder : TYPE.file);
        this.view.setBigUint64(to + 8, ALL_RIGHTS, true);
        this.view.setBigUint64(to + 16, ALL_RIGHTS, true);
        return OK;
      },
      fd_fdstat_set_flags: () => OK,
      fd_filestat_get: (fd, to) => {
        const open = this.open.get(fd);
        if (!open) return BAD_NUMBER;
        if ('folder' in open) return this.filestat(to, TYPE.folder, 0, fd);
        return this.filestat(to, fd < ROOT ? TYPE.stream : TYPE.file, open.file.size, fd);
      },
      fd_close: (fd) => (this.open.delete(fd) ? OK : BAD_NUMBER),
      fd_sync: () => OK,
      fd_datasync: () => OK,
      fd_read: (fd, list, count, to) => {
        const open = this.open.get(fd);
        if (!open || 'folder' in open) return BAD_NUMBER;
        const read = this.each(list, count, (buffer) => {
          const bytes = open.file.read(open.at, Math.min(buffer.length, Math.max(0, open.file.size - open.at)));
          buffer.set(bytes);
          open.at += bytes.length;
          return bytes.length;
        });
        this.bytesRead += read;
        this.progress(this.bytesRead);
        this.view.setUint32(to, read, true);
        return OK;
      },
      fd_write: (fd, list, count, to) => {
        const open = this.open.get(fd);
        if (!open || 'folder' in open || !(open.file instanceof Pile)) return BAD_NUMBER;
        const file = open.file;
        const written = this.each(list, count, (buffer) => {
          if (open.append) open.at = file.size;
          file.write(open.at, buffer);
          open.at += buffer.length;
          return buffer.length;
        });
        this.view.setUint32(to, written, true);
        return OK;
      },
      fd_seek: (fd, offset, whence, to) => {
        const open = this.open.get(fd);
        if (!open || 'folder' in open || fd < ROOT) return BAD_NUMBER;
        const at = [0, open.at, open.file.size][whence] + Number(offset);
        if (!(at >= 0)) return INVALID;
        open.at = at;
        this.view.setBigUint64(to, BigInt(at), true);
        return OK;
      },
      fd_readdir: (fd, to, length, cookie, used) => {
        const open = this.open.get(fd);
        if (!open || !('folder' in open)) return BAD_NUMBER;
        let at = 0;
        for (const [i, [name, isFolder]] of this.names(open.folder).entries()) {
          if (i < Number(cookie)) continue;
          const bytes = new TextEncoder().encode(name);
          const entry = new Uint8Array(24 + bytes.length);
          const view = new DataView(entry.buffer);
          view.setBigUint64(0, BigInt(i + 1), true);
          view.setBigUint64(8, BigInt(i + 1), true);
          view.setUint32(16, bytes.length, true);
          view.setUint8(20, isFolder ? TYPE.folder : TYPE.file);
          entry.set(bytes, 24);
          const part = entry.subarray(0, length - at);
          this.bytes(to + at, part.length).set(part);
          at += part.length;
          if (at >= length) break;
        }
        this.view.setUint32(used, at, true);
        return OK;
      },
      path_filestat_get: (folder, _flags, at, length, to) => {
        const path = this.path(folder, at, length);
        const file = this.file(path);
        if (file) return this.filestat(to, TYPE.file, file.size, 0);
        return this.isFolder(path) ? this.filestat(to, TYPE.folder, 0, 0) : NOT_THERE;
      },
      path_open: (folder, _follow, at, length, wanted, _rights, _inherited, flags, to) => {
        const path = this.path(folder, at, length);
        const [create, isFolder, alone, empty] = [1, 2, 4, 8].map((bit) => (wanted & bit) !== 0);
        const id = this.next++;
        let file = this.file(path);
        if (file && create && alone) return EXISTS;
        if (file && isFolder) return IS_NO_FOLDER;
        if (!file && this.isFolder(path)) {
          if (create) return IS_FOLDER;
          this.open.set(id, { id, folder: path });
        } else {
          if (!file && !create) return NOT_THERE;
          if (!file || empty) file = this.made[path] = new Pile();
          this.open.set(id, { id, file, at: 0, append: (flags & 1) !== 0 });
        }
        this.view.setUint32(to, id, true);
        return OK;
      },
      path_rename: (folder, at, length, newFolder, newAt, newLength) => {
        const [from, to] = [this.path(folder, at, length), this.path(newFolder, newAt, newLength)];
        if (!Object.hasOwn(this.made, from)) return NOT_THERE;
        this.made[to] = this.made[from];
        delete this.made[from];
        return OK;
      },
      path_unlink_file: (folder, at, length) => {
        const path = this.path(folder, at, length);
        return Object.hasOwn(this.made, path) && delete this.made[path] ? OK : NOT_THERE;
      },
    };
    const missing = () => NOT_SUPPORTED;
    return new Proxy(all, { get: (_, name) => all[/** @type {string} */ (name)] ?? missing });
  }
}

/** Runs the program once. @param {WebAssembly.Module} program @param {Run} run @returns {Promise<Outcome>} */
async function runProgram(program, run) {
  const wasi = new Wasi(run);
  const instance = await WebAssembly.instantiate(program, { wasi_snapshot_preview1: wasi.functions() });
  const { memory, _start } = /** @type {{memory: WebAssembly.Memory, _start: () => void}} */ (
    /** @type {unknown} */ (instance.exports)
  );
  wasi.memory = memory;
  let status = 0;
  try {
    _start();
  } catch (error) {
    if (!(error instanceof Exit)) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`the program failed here (${why}); the command line may read it. ${wasi.stderr.text()}`);
    }
    status = error.status;
  }
  return { status, stdout: wasi.stdout, stderr: wasi.stderr.text(), made: wasi.made };
}
