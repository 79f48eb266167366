// @ts-check
'use strict';
// Runs the program in a worker, once for each worker, with files that the page gives. Behind wasi.js in the same script.

/** How much of a file is in memory at a time. */
const WINDOW = 1 << 20;
/** Milliseconds between two words about progress. */
const PAUSE = 100;

/** A file of the page, of which only a part is in memory. */
class BlobFile {
  /** @param {Blob} blob */
  constructor(blob) {
    this.blob = blob;
    this.size = blob.size;
    this.at = 0;
    this.window = new Uint8Array();
  }

  /** @param {number} at @param {number} length */
  read(at, length) {
    if (at < this.at || at >= this.at + this.window.length) {
      // @ts-expect-error only workers have this
      this.window = new Uint8Array(new FileReaderSync().readAsArrayBuffer(this.blob.slice(at, at + WINDOW)));
      this.at = at;
    }
    return this.window.subarray(at - this.at, at - this.at + length);
  }
}

/** @param {MessageEvent<{program: WebAssembly.Module, args: string[], files: [string, Blob][], stdin?: Uint8Array}>} event */
self.onmessage = async ({ data: { program, args, files, stdin } }) => {
  let said = 0;
  const progress = (/** @type {number} */ read) => {
    const now = performance.now();
    if (now - said < PAUSE) return;
    said = now;
    self.postMessage({ read });
  };
  try {
    const given = Object.fromEntries(files.map(([path, blob]) => [path, new BlobFile(blob)]));
    const { status, stdout, stderr, made } = await runProgram(program, { args, files: given, stdin, progress });
    const blobs = Object.entries(made).map(([path, pile]) => [path, new Blob(pile.parts())]);
    self.postMessage({ done: { status, stderr, stdout: new Blob(stdout.parts()), made: blobs } });
  } catch (error) {
    self.postMessage({ failed: error instanceof Error ? error.message : String(error) });
  }
};
