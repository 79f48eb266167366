// Tests of moulsniff.html, the page that has the program in it: what it decodes, in Node, and how it is used, in a real browser.
//
//     PAGE=moulsniff.html MOULSNIFF=target/debug/moulsniff CHROMIUM=/usr/bin/chromium npm --prefix tests/browser run web
//
// The page is opened from a file. A request to anything but itself and its blobs counts as a fault, as does every message on the console.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { inflateRawSync } from 'node:zlib';
import puppeteer from 'puppeteer-core';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const PAGE = path.resolve(ROOT, process.env.PAGE ?? 'moulsniff.html');
const PROGRAM = path.resolve(ROOT, process.env.MOULSNIFF ?? 'target/release/moulsniff');
const CHROMIUM = process.env.CHROMIUM;
const FIREFOX = process.env.FIREFOX;
const AXE = readFileSync(path.join(ROOT, 'tests/browser/node_modules/axe-core/axe.min.js'), 'utf8');
const KEYS = ['dirtsand.ini', 'moulars.toml', 'nagus.ini', 'shard.keys', 'moss_auth_key.der', 'moss_game_key.der'];
const CAPTURES = readdirSync(path.join(ROOT, 'captures'), { recursive: true })
  .filter((name) => /\.pcap(ng)?(\.gz|\.zst)?$/.test(name))
  .map((name) => `captures/${name}`)
  .sort();

/** The program in the page, and the page's code that runs it. */
function programOfPage() {
  const [, block] = /id="program">([^<]*)</.exec(readFileSync(PAGE, 'utf8'));
  const context = vm.createContext({ WebAssembly, TextEncoder, TextDecoder, performance, crypto });
  vm.runInContext(readFileSync(path.join(ROOT, 'web/wasi.js'), 'utf8'), context);
  const program = new WebAssembly.Module(inflateRawSync(Buffer.from(block, 'base64')));
  const run = vm.runInContext('runProgram', context);
  return (args, names, stdin) => {
    const files = names.map((name) => {
      const bytes = readFileSync(path.join(ROOT, name));
      return [name, { size: bytes.length, read: (at, length) => bytes.subarray(at, at + length) }];
    });
    return run(program, { args, files: Object.fromEntries(files), stdin });
  };
}

/** What the program prints natively. */
function native(args) {
  return execFileSync(PROGRAM, [...args, '--no-config'], {
    cwd: ROOT,
    maxBuffer: 1 << 30,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, MOULSNIFF_KEYS: '' },
  });
}

const run = programOfPage();
const keys = KEYS.map((name) => `keys/${name}`);
const withKeys = keys.flatMap((name) => ['--keys', name]);

for (const capture of CAPTURES)
  test(`${capture} gives the same JSON as natively, byte for byte`, async () => {
    const args = [capture, ...withKeys, '--json', '--quiet'];
    const { stdout, status } = await run(args, [capture, ...keys]);
    assert.equal(status, 0);
    assert.ok(Buffer.concat(stdout.parts()).equals(native(args)), capture);
  });

test('all other outputs are the same too', async () => {
  const capture = 'captures/moul/full_dirtsand.pcapng';
  for (const words of [
    ['stats', '--json'],
    ['sessions', '--story'],
    ['diagnose', '--all'],
    ['--csv'],
    ['--oneline'],
    ['--redact'],
  ]) {
    const args = [...words, capture, ...withKeys, '--quiet'];
    const { stdout } = await run(args, [capture, ...keys]);
    assert.equal(stdout.text(), native(args).toString(), words.join(' '));
  }
});

test('what a length of more than 4 GiB would need is said in full', async () => {
  // A text of 2^32 - 1 units of 2 bytes.
  const args = ['decode', '--type', 'utf16[u32]', 'ffffffff4100'];
  const here = await run(args, []);
  assert.equal(here.stdout.text(), native(args).toString());
});

test('a filter that is none is answered as on the command line', async () => {
  const capture = 'captures/moul/golden.pcap';
  const { status, stderr } = await run([capture, '-Y', 'servise == auth'], [capture]);
  assert.equal(status, 2);
  assert.match(stderr, /service/);
});

const browserTest = CHROMIUM || FIREFOX ? test : test.skip;
let folder = '';
/** @type {import('puppeteer-core').Browser} */
let browser;

before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'web-'));
  if (FIREFOX) browser = await puppeteer.launch({ browser: 'firefox', executablePath: FIREFOX });
  else if (CHROMIUM)
    browser = await puppeteer.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens the page, and notes what goes wrong in it. */
async function open({ width = 1440, height = 900 } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000);
  const faults = [];
  page.on('console', (message) => ['error', 'warn'].includes(message.type()) && faults.push(message.text()));
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => /^(file|blob):/.test(request.url()) || faults.push('a request: ' + request.url()));
  await page.setViewport({ width, height });
  if (!FIREFOX) {
    const session = await page.createCDPSession();
    await session.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: folder });
  }
  await page.goto(String(pathToFileURL(PAGE)));
  return { page, faults };
}

/** Chromium sends a click to what it painted last, so a dialog that just opened is waited for. */
async function painted(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** The frame of the report, once it shows rows. */
async function report(page) {
  const handle = await page.waitForSelector('#shown iframe');
  const frame = await handle.contentFrame();
  await frame.waitForFunction(() => document.querySelectorAll('#list-rows .row').length > 0);
  return frame;
}

/** Drops files of the project on the page, or on a frame. */
async function drop(page, names) {
  const files = names.map((name) => [path.basename(name), readFileSync(path.join(ROOT, name)).toString('base64')]);
  await page.evaluate((files) => {
    const data = new DataTransfer();
    for (const [name, text] of files)
      data.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
    document.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
  }, files);
}

/** Types a filter and returns what is said of its rows. */
async function filter(frame, words) {
  await frame.$eval(
    '#filter',
    (box, words) => {
      box.value = words;
      box.dispatchEvent(new Event('input'));
    },
    words,
  );
  await frame.waitForFunction((words) => location.hash.includes('q=' + encodeURIComponent(words)), {}, words);
  return frame.$eval('#count', (count) => count.textContent);
}

async function axe(page) {
  // Through the debugger: the page's policy lets no other script in.
  await page.evaluate(AXE);
  const result = await page.evaluate(() => globalThis.axe.run(document, { iframes: false }));
  return result.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
}

browserTest('the sample opens with one click, and nothing is asked of any network', async () => {
  const { page, faults } = await open();
  assert.deepEqual(await axe(page), []);
  await page.click('#sample');
  const frame = await report(page);
  await frame.click('#list-rows .row');
  await frame.waitForSelector('#tree .node');
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(faults, []);
  await page.close();
});

browserTest('a dropped capture with its keys is read; the program filters it, with its own errors', async () => {
  const { page, faults } = await open();
  const capture = 'captures/moul/kind_game.pcap';
  await drop(page, [capture, 'keys/dirtsand.ini']);
  const frame = await report(page);
  const count = (expression) =>
    native([capture, '--keys', 'keys/dirtsand.ini', '--columns', 'record', '-Y', expression, '--quiet'])
      .toString()
      .trim()
      .split('\n').length - 1;
  // Networks are what the report alone does not take.
  for (const expression of ['src in 127.0.0.0/8 and message contains "Join"', 'fields.trans_id == 1'])
    assert.match(await filter(frame, expression), new RegExp(`^${count(expression)} of `), expression);
  assert.match(await filter(frame, 'servise == auth'), /did you mean.*service|service/);
  assert.match(await filter(frame, 'is:event'), /^\d+ of /);
  assert.deepEqual(faults, []);
  // A further key file, dropped on the report: all is read again.
  const old = await page.$eval('#shown iframe', (element) => element.src);
  await drop(frame, ['keys/shard.keys']);
  await page.waitForFunction((old) => document.querySelector('#shown iframe').src !== old, {}, old);
  await report(page);
  assert.deepEqual(faults, []);
  await page.close();
});

browserTest(
  'everything that can be saved is what the command line writes',
  { skip: FIREFOX ? 'its downloads cannot be watched' : false },
  async () => {
    const { page, faults } = await open();
    const capture = 'captures/moul/golden.pcap';
    await drop(page, [capture, 'keys/shard.keys']);
    await report(page);
    const saved = async (kind, end, setUp = () => {}) => {
      await page.click('#save-open');
      await page.click(`input[name=kind][value=${kind}]`);
      await page.$eval('#save', setUp);
      await page.click('#save-now');
      const file = path.join(folder, `golden${end}`);
      for (let tries = 0; tries < 200; tries++) {
        if (existsSync(file)) break;
        await new Promise((next) => setTimeout(next, 50));
      }
      await page.click('#save .shut');
      return readFileSync(file);
    };
    const args = [capture, '--keys', 'keys/shard.keys', '--quiet'];
    assert.ok((await saved('json', '.jsonl')).equals(native([...args, '--json'])));
    assert.match((await saved('report', '.html')).toString(), /^<!doctype html>/);
    rmSync(path.join(folder, 'golden.jsonl'));
    const hidden = await saved('json', '.jsonl', (dialog) => (dialog.querySelector('#redact').checked = true));
    assert.ok(hidden.equals(native([...args, '--json', '--redact'])));
    rmSync(path.join(folder, 'golden.jsonl'));
    const other = await saved('json', '.jsonl', (dialog) => (dialog.querySelector('#pseudonyms').checked = true));
    assert.ok(!other.includes('player1@lab.test') && other.includes('Cli2Auth_AcctLoginRequest'));
    assert.deepEqual(faults, []);
    await page.close();
  },
);

browserTest('captures are compared, bytes are decoded, and all is forgotten', async () => {
  const { page, faults } = await open();
  await drop(page, ['captures/moul/golden.pcap', 'keys/shard.keys']);
  await report(page);
  const second = await page.$('#pick-second');
  await second.uploadFile(path.join(ROOT, 'captures/moul/changed.pcap'));
  await page.waitForSelector('#text[open]');
  await painted(page);
  assert.match(await page.$eval('#text-shown', (text) => text.textContent), /Auth2Cli_PlayerDeleteReply/);
  await page.click('#text .shut');
  await page.click('#top .decode-open');
  await page.type('#bytes', '1a00 07000000 e9030000');
  await page.click('#decode-now');
  await page.waitForFunction(() => document.querySelector('#decoded').textContent.includes('VaultNodeFetch'));
  await page.click('#decode .shut');
  await page.click('#close');
  assert.equal(await page.$('#shown iframe'), null);
  assert.equal(await page.$eval('#start', (start) => start.hidden), false);
  assert.deepEqual(faults, []);
  await page.close();
});

browserTest('what is no capture, and what is too large, is said', async () => {
  const { page, faults } = await open({ width: 360, height: 740 });
  assert.deepEqual(await axe(page), []);
  await page.evaluate(() => {
    const data = new DataTransfer();
    data.items.add(new File(['not a capture'], 'a.pcap'));
    document.dispatchEvent(new DragEvent('drop', { dataTransfer: data }));
  });
  await page.waitForFunction(() => document.querySelector('#trouble').textContent.includes('a.pcap'));
  await page.evaluate(() => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(65 << 20)], 'a.pcap'));
    document.dispatchEvent(new DragEvent('drop', { dataTransfer: data }));
  });
  await page.waitForFunction(() => document.querySelector('#trouble').textContent.includes('moulsniff report a.pcap'));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  assert.equal(wide, false);
  assert.deepEqual(faults, []);
  await page.close();
});
