// Tests of the page that `moulsniff report` writes, in a real browser.
//
//     MOULSNIFF=target/debug/moulsniff CHROMIUM=/usr/bin/chromium npm --prefix tests/browser test
//     MOULSNIFF=target/debug/moulsniff FIREFOX=/usr/bin/firefox-esr npm --prefix tests/browser test
//
// Each test opens a page from a file, as a reader would. Network access is refused and counted; every message on the console counts as a fault.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import puppeteer from 'puppeteer-core';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const PROGRAM = path.resolve(ROOT, process.env.MOULSNIFF ?? 'target/release/moulsniff');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const FIREFOX = process.env.FIREFOX;
const AXE = readFileSync(path.join(ROOT, 'tests/browser/node_modules/axe-core/axe.min.js'), 'utf8');
const DIRTSAND = ['captures/moul/full_dirtsand.pcapng', '--keys', 'keys/dirtsand.ini'];

let folder = '';
/** @type {import('puppeteer-core').Browser} */
let browser;

before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'report-'));
  browser = await puppeteer.launch(
    FIREFOX
      ? { browser: 'firefox', executablePath: FIREFOX }
      : { executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb'] },
  );
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Writes a report and returns the file's name. @param {string} name @param {string[]} words */
function report(name, words) {
  const file = path.join(folder, name + '.html');
  execFileSync(PROGRAM, ['report', ...words, '--no-config', '--quiet', '-o', file], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  return file;
}

/** Opens a report in a page of its own, and fails on anything that goes wrong in it. */
async function open(file, { hash = '', width = 1440, height = 900, dark = false } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000);
  const faults = [];
  page.on('console', (message) => ['error', 'warn'].includes(message.type()) && faults.push(message.text()));
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => /^(file|data):/.test(request.url()) || faults.push('a request: ' + request.url()));
  await page.setViewport({ width, height });
  if (!FIREFOX) await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }]);
  await page.goto(pathToFileURL(file) + hash);
  await page.waitForFunction(
    () => document.querySelectorAll('#list-rows .row').length > 0 || document.querySelector('p.error'),
  );
  const text = (selector) => page.$eval(selector, (element) => element.textContent ?? '');
  const rows = () => page.$$eval('#list-rows .row', (all) => all.map((row) => row.textContent ?? ''));
  return { page, faults, text, rows };
}

/** Types a filter and waits until it is done. */
async function filter({ page }, words) {
  await page.$eval('#filter', (box) => (box.value = ''));
  await page.type('#filter', words);
  await page.waitForFunction((words) => location.hash.includes('q=' + encodeURIComponent(words)), {}, words);
}

const PROTOCOLS = {
  moul: DIRTSAND,
  damaged: ['captures/moul/mangled_gaps.pcap.gz', '--keys', 'keys/dirtsand.ini'],
  secondlife: ['captures/secondlife/opensim.pcapng.gz'],
  intermud3: ['captures/intermud3/i3_edge_small.pcapng'],
  ouro: ['captures/ouro/coh_segs_udp.pcapng'],
};

for (const [name, words] of Object.entries(PROTOCOLS)) {
  test(`${name}: every view opens without a fault`, async () => {
    const opened = await open(report(name, words));
    for (const key of ['2', '3', '4', '5', '1']) await opened.page.keyboard.press(key);
    await opened.page.keyboard.press('j');
    await opened.page.keyboard.press('Enter');
    await opened.page.waitForSelector('#tree');
    assert.deepEqual(opened.faults, []);
    await opened.page.close();
  });
}

test('the figures are those of stats and sessions', async () => {
  const opened = await open(report('figures', DIRTSAND));
  const json = (...words) =>
    execFileSync(PROGRAM, [...words, '--no-config', '--quiet'], { cwd: ROOT, encoding: 'utf8' });
  const stats = JSON.parse(json('stats', ...DIRTSAND, '--json'));
  const messages = Object.values(stats.messages).reduce((sum, n) => sum + n, 0);
  const sessions = json('sessions', ...DIRTSAND, '--json')
    .trim()
    .split('\n');
  const figures = await opened.page.$$eval('#figures .figure b', (all) => all.map((one) => one.textContent ?? ''));
  assert.equal(figures[0], String(messages));
  assert.equal(figures[1], String(sessions.length));
  const refused = json(...DIRTSAND, '-Y', 'refused', '--json')
    .trim()
    .split('\n').length;
  assert.equal(figures[3], `×${refused}`);
  await opened.page.close();
});

test('times and what the network took of them are those of stats and sessions', async () => {
  const { page, faults } = await open(report('times', DIRTSAND), { hash: '#view=latency' });
  const json = (...words) =>
    execFileSync(PROGRAM, [...words, '--no-config', '--quiet'], { cwd: ROOT, encoding: 'utf8' });
  const tables = await page.$$eval('#view-latency table', (all) =>
    all.map((table) =>
      [...table.querySelectorAll('tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent ?? '')),
    ),
  );
  const [bySession, byRequest] = tables;
  const near = (text, value) =>
    assert.ok(Math.abs(Number(text.replaceAll(',', '')) - value) <= value / 100 + 0.001, `${text} for ${value}`);
  const sessions = json('sessions', ...DIRTSAND, '--json')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(bySession.length, sessions.length);
  for (const [i, session] of sessions.entries()) {
    const [, requests, refused, unanswered, p50, p95, max, slowest, network, server] = bySession[i];
    const asked = session.requests;
    assert.deepEqual([requests, refused, unanswered].map(Number), [asked.sent, asked.refused, asked.unanswered]);
    assert.equal(slowest, '#' + session.slowest);
    near(p50, session.latency_ms.p50);
    near(p95, session.latency_ms.p95);
    near(max, session.latency_ms.max);
    near(network, session.slowest_network_ms);
    near(server, session.latency_ms.max - session.slowest_network_ms);
  }
  const { replies } = JSON.parse(json('stats', ...DIRTSAND, '--json'));
  const counted = Object.fromEntries(byRequest.map(([name, , n]) => [name, Number(n)]));
  const answered = Object.entries(replies).filter(([, kind]) => kind.answered > 0);
  assert.deepEqual(counted, Object.fromEntries(answered.map(([name, kind]) => [name, kind.answered])));
  for (const [name, , , network, p50, , max] of byRequest) {
    near(network, replies[name].network_ms.p50);
    near(p50, replies[name].latency_ms.p50);
    near(max, replies[name].latency_ms.max);
  }
  // A message says it of itself.
  await page.click('#view-latency table button.link');
  await page.waitForSelector('#detail .shares');
  assert.match(await page.$eval('#detail-head', (head) => head.textContent ?? ''), /network 0\.00\d ms, server 35/);
  assert.deepEqual(faults, []);
  await page.close();
});

test('lanes of a session fold into its heading, and many are folded at first', async () => {
  const { page, faults } = await open(report('lanes', DIRTSAND));
  const names = () => page.$$eval('#lane-names > *', (all) => all.map((row) => row.textContent ?? ''));
  const before = await names();
  await page.focus('#lane-names button');
  await page.keyboard.press('Enter');
  const after = await names();
  assert.deepEqual(after.slice(1), before.slice(6), 'the five connections of the first session are folded');
  assert.match(after[0], /5 lanes$/);
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('aria-expanded')), 'false');
  await page.keyboard.press('Enter');
  assert.deepEqual(await names(), before);
  assert.deepEqual(faults, []);
  await page.close();

  const many = path.join(folder, 'many.pcap');
  const one = mudmode(['({"tell",5,"a mud","user","other mud","user","User","hello",})']);
  const frames = Array.from({ length: 300 }, (_, i) => {
    const frame = Buffer.from(one.subarray(24));
    frame.writeUInt16BE(1024 + i, 16 + 20);
    return frame;
  });
  writeFileSync(many, Buffer.concat([one.subarray(0, 24), ...frames]));
  const folded = await open(report('many', [many]));
  const headings = await folded.page.$$eval('#lane-names button', (all) =>
    all.map((button) => button.getAttribute('aria-expanded')),
  );
  assert.ok(headings.length > 0 && headings.every((open) => open === 'false'), String(headings));
  await folded.page.click('#lane-names button');
  const opened = await folded.page.$$eval('#lane-names > *', (all) => all.map((row) => row.textContent ?? ''));
  assert.equal(opened.length, headings.length + 101);
  assert.match(opened[101], /^200 more connections/);
  assert.deepEqual(folded.faults, []);
  await folded.page.close();
});

test('a filter finds the rows, and a fault in it is said', async () => {
  const opened = await open(report('filter', DIRTSAND));
  await filter(opened, 'VaultNodeFetch');
  assert.ok((await opened.rows()).every((row) => row.includes('VaultNodeFetch')));
  await filter(opened, 'is:refused');
  const refused = await opened.text('#count');
  assert.match(refused, /^2\d of \d+ records$/);
  await filter(opened, '#134');
  assert.equal((await opened.rows()).length, 1);
  await filter(opened, 'node_id=10001');
  assert.ok((await opened.rows()).length > 0);
  // The program's own language.
  await filter(opened, 'not refused and session == 1 and service in {auth, game}');
  assert.match(await opened.text('#count'), /^\d+ of \d+ records$/);
  await filter(opened, '(refused or event == stream_end) and record > 1');
  assert.match(await opened.text('#count'), /^\d+ of \d+ records$/);
  await filter(opened, 'src in 10.0.0.0/8');
  assert.match(await opened.text('#count'), /networks are for the program/);
  assert.equal(await opened.page.$eval('#filter', (box) => box.getAttribute('aria-invalid')), 'true');
  assert.deepEqual(opened.faults, []);
  await opened.page.close();
});

test('conclusions stand at the head, and each leads to the records that show it', async () => {
  const { page, faults, text } = await open(report('concluded', DIRTSAND));
  const shown = await page.$$eval('#conclusions .conclusion', (all) => all.map((line) => line.textContent ?? ''));
  assert.match(shown[0], /^troublethe last step of plainuser was refused/);
  await page.click('#conclusions .conclusion');
  await page.waitForSelector('#tree');
  assert.match(await page.evaluate(() => decodeURIComponent(location.hash)), /record=495&q=record in \{495, 496\}/);
  assert.match(await text('#count'), /^2 of \d+ records$/);
  assert.deepEqual(faults, []);
  await page.close();
});

test('sessions tell their stories, and a step leads to its record', async () => {
  const { page, faults, text } = await open(report('stories', DIRTSAND), { hash: '#view=sessions' });
  const blocks = await page.$$eval('#view-sessions details', (all) => all.map((block) => block.textContent ?? ''));
  assert.ok(blocks.length > 2 && blocks.every((block) => /\d\d:\d\d:\d\d to \d\d:\d\d:\d\d/.test(block)));
  assert.match(blocks.join(' '), /log in as plainuser: REFUSED, kNetErrAuthenticationFailed/);
  await page.$eval('#view-sessions details', (block) => (block.open = true));
  await page.click('#view-sessions .finding');
  await page.waitForSelector('#tree, #detail-head');
  assert.match(await text('#detail-head'), /#\d+/);
  assert.deepEqual(faults, []);
  await page.close();
});

test('dragging over a part of the timeline lists that part', async () => {
  const { page, faults, text } = await open(report('part', DIRTSAND));
  const all = await text('#count');
  const strip = await page.$eval('#strip', (canvas) => canvas.getBoundingClientRect().toJSON());
  await page.mouse.move(strip.x + strip.width * 0.1, strip.y + 10);
  await page.mouse.down();
  await page.mouse.move(strip.x + strip.width * 0.3, strip.y + 10);
  await page.mouse.up();
  await page.waitForFunction((all) => document.getElementById('count')?.textContent !== all, {}, all);
  assert.match(await text('#count'), /^\d+ of \d+ records of this part of the time$/);
  await page.keyboard.press('0');
  assert.equal(await text('#count'), all);
  assert.deepEqual(faults, []);
  await page.close();
});

test('on a phone the head takes at most a quarter of the screen', async () => {
  const { page, faults } = await open(report('head', DIRTSAND), { width: 390, height: 844 });
  assert.ok((await page.$eval('#head', (head) => head.clientHeight)) <= 844 / 4);
  assert.deepEqual(faults, []);
  await page.close();
});

test('a link leads to a record, its tree and its bytes', async () => {
  const { page, faults, text } = await open(report('link', DIRTSAND), { hash: '#record=94' });
  await page.waitForSelector('#tree');
  assert.match(await text('#detail'), /Auth2Cli_AcctLoginReply/);
  assert.match(await page.$eval('#list-rows [aria-selected=true]', (row) => row.textContent ?? ''), /^94/);
  // Pointing at a field marks its bytes, and the reverse.
  const field = await page.waitForSelector('#tree [role=treeitem]:nth-of-type(3)');
  await field.hover();
  assert.ok((await page.$$('#detail .hex .pointed')).length > 0, 'no byte is marked');
  assert.deepEqual(faults, []);
  await page.close();
});

test('the vault folds, and a node that is in several places leads to the line that shows it', async () => {
  const { page, faults, text } = await open(report('vault', DIRTSAND), { hash: '#view=vault' });
  const shown = () =>
    page.$$eval('#vault-view .vault-line', (all) => all.filter((line) => line.checkVisibility()).length);
  const all = await shown();
  const twist = await page.waitForSelector('#vault-view button.twist');
  await twist.click();
  assert.equal(await twist.evaluate((button) => button.getAttribute('aria-expanded')), 'false');
  assert.ok((await shown()) < all, 'nothing is folded away');
  // The other line's number is that of the line which is then selected, unfolded again.
  const others = await page.$$('#vault-view button.finding');
  const texts = await Promise.all(others.map((other) => other.evaluate((button) => button.textContent ?? '')));
  const place = texts.findIndex((line) => line.includes('shown above'));
  assert.ok(place >= 0, 'no node is in several places');
  await others[place].evaluate((button) => button.click());
  const number = /\d+$/.exec(texts[place])?.[0];
  assert.match(await text('#vault-view .vault-line[aria-current]'), new RegExp(`${number}$`));
  assert.ok(!(await text('#vault-view .vault-line[aria-current]')).includes('shown above'));
  assert.match(await text('#vault-view aside'), new RegExp(number ?? ''));
  assert.ok(await page.$eval('#vault-view .vault-line[aria-current]', (line) => line.checkVisibility()));
  assert.deepEqual(faults, []);
  await page.close();
});

test('on a phone a record has the whole screen, and closing it shows the list', async () => {
  const { page, faults } = await open(report('phone', DIRTSAND), { hash: '#record=94', width: 390, height: 844 });
  await page.waitForSelector('#tree');
  const box = () => page.$eval('#detail', (detail) => detail.getBoundingClientRect().toJSON());
  const { width, height } = await box();
  // A scroll bar of the page below it keeps its place.
  assert.deepEqual([width, height], [await page.evaluate(() => document.documentElement.clientWidth), 844]);
  await page.keyboard.press('Escape');
  assert.equal((await box()).height, 0);
  assert.deepEqual(faults, []);
  await page.close();
});

test('the keyboard alone reaches everything', async () => {
  const { page, faults } = await open(report('keys', DIRTSAND));
  const hash = () => page.evaluate(() => location.hash);
  await page.keyboard.press('n');
  await page.waitForFunction(() => location.hash.includes('record='));
  const first = await hash();
  await page.keyboard.press('n');
  assert.notEqual(await hash(), first);
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'filter');
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  assert.ok(await page.$eval('#help', (dialog) => dialog.open));
  await page.keyboard.press('Escape');
  await page.keyboard.press('4');
  assert.equal(await page.$eval('#tab-latency', (tab) => tab.getAttribute('aria-selected')), 'true');
  assert.deepEqual(faults, []);
  await page.close();
});

// Firefox takes its colour scheme from the system alone.
for (const dark of FIREFOX ? [false] : [false, true]) {
  for (const [view, key] of Object.entries({ messages: '1', findings: '2', sessions: '3', latency: '4', vault: '5' })) {
    test(`axe finds nothing in the view ${view}, ${dark ? 'dark' : 'light'}`, async () => {
      const { page } = await open(report('axe', DIRTSAND), { dark });
      await page.keyboard.press(key);
      if (view === 'messages') {
        await page.keyboard.press('j');
        await page.keyboard.press('Enter');
        await page.waitForSelector('#tree');
      }
      // Through the debugger: the page's policy lets no other script in.
      await page.evaluate(AXE);
      const found = await page.evaluate(() => globalThis.axe.run());
      const violations = found.violations.map(
        (v) => `${v.id}: ${v.nodes.map((node) => node.html.slice(0, 120)).slice(0, 3)}`,
      );
      assert.deepEqual(violations, []);
      await page.close();
    });
  }
}

for (const width of [360, 768, 2560]) {
  test(`${width} pixels wide: nothing hangs over the edge`, async () => {
    const { page, faults } = await open(report('wide', DIRTSAND), { width, height: 800 });
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${over} pixels too wide`);
    assert.ok(await page.$eval('#list-scroll', (list) => list.clientHeight > 150), 'the list has no room');
    assert.deepEqual(faults, []);
    await page.close();
  });
}

/** A capture of one Intermud-3 connection to a router: each packet is the text of a mudmode value. @param {string[]} packets */
function mudmode(packets) {
  const sent = Buffer.concat(
    packets.map((text) => {
      const body = Buffer.from(text + '\0', 'latin1');
      const length = Buffer.alloc(4);
      length.writeUInt32BE(body.length);
      return Buffer.concat([length, body]);
    }),
  );
  const header = Buffer.alloc(24);
  header.writeUInt32LE(0xa1b2c3d4, 0);
  header.writeUInt16LE(2, 4);
  header.writeUInt16LE(4, 6);
  header.writeUInt32LE(262144, 16);
  header.writeUInt32LE(101, 20);
  const frames = [header];
  for (let at = 0; at < sent.length; at += 60_000) {
    const payload = sent.subarray(at, at + 60_000);
    const ip = Buffer.alloc(40);
    ip[0] = 0x45;
    ip.writeUInt16BE(40 + payload.length, 2);
    ip[8] = 64;
    ip[9] = 6;
    ip.set([10, 0, 0, 1, 10, 0, 0, 2], 12);
    ip.writeUInt16BE(40000, 20);
    ip.writeUInt16BE(8080, 22);
    ip.writeUInt32BE(1 + at, 24);
    ip[32] = 0x50;
    ip[33] = 0x18;
    ip.writeUInt16BE(65535, 34);
    const record = Buffer.alloc(16);
    record.writeUInt32LE(1_800_000_000, 0);
    record.writeUInt32LE(at / 60_000, 4);
    record.writeUInt32LE(ip.length + payload.length, 8);
    record.writeUInt32LE(ip.length + payload.length, 12);
    frames.push(record, ip, payload);
  }
  return Buffer.concat(frames);
}

const HOSTILE = [
  '__proto__',
  'constructor',
  'toString',
  '<script>globalThis.ran = true</script>',
  '<img src=x onerror=globalThis.ran=true>',
  '\'\\">&lt;',
  '</script><script>globalThis.ran = true</script>',
  '\u202egnp.exe',
  '{{script}}',
];

test('captured scripts do not run, and hostile names are names', async () => {
  const packets = ['({"startup-req-3",5,"a mud",0,"*i3",0,1,0,0,1,1,1,"x","y","z","LP","m",([]),([]),})'];
  for (const text of HOSTILE) {
    const quoted = Buffer.from(text, 'utf8').toString('latin1').replaceAll('\\', '\\\\').replaceAll('"', '\\"');
    packets.push(`({"tell",5,"${quoted}","${quoted}","other mud","${quoted}","${quoted}","${quoted}",})`);
    packets.push(`({"${quoted}",5,"a mud",0,"other mud",0,(["${quoted}":"${quoted}",]),})`);
  }
  // One message of ten million bytes.
  packets.push(`({"tell",5,"a mud","user","other mud","user","User","${'<b>&'.repeat(2_500_000)}",})`);
  const capture = path.join(folder, '<b>__proto__.pcap');
  writeFileSync(capture, mudmode(packets));
  const opened = await open(report('hostile', [capture]));
  const { page, faults } = opened;
  const rows = await page.$$eval('#list-rows .row', (all) => all.length);
  assert.ok(rows >= 15, `${rows} rows`);
  for (let row = 0; row < rows; row++) {
    await page.keyboard.press('j');
    if (row === 0) await page.keyboard.press('Enter');
  }
  for (const key of ['2', '3', '4', '5', '1']) await page.keyboard.press(key);
  await filter(opened, 'onerror');
  const found = await page.evaluate(() => ({
    markup: document.querySelectorAll('#main script, #main img, #main iframe, #main a[href], #main b b').length,
    ran: 'ran' in globalThis,
    polluted: Object.keys(Object.prototype).length + Object.keys(Object).length,
    text: document.body.textContent?.includes('onerror=globalThis.ran'),
  }));
  assert.deepEqual(found, { markup: 0, ran: false, polluted: 0, text: true });
  assert.deepEqual(faults, []);
  const refused = await page.evaluate(() => {
    try {
      document.body.innerHTML = '<b>x</b>';
      return false;
    } catch {
      return true;
    }
  });
  assert.ok(refused, 'the page takes markup');
  await page.close();
});

test('100,000 records open in two seconds and scroll', async () => {
  const copies = Array(24).fill('captures/secondlife/opensim.pcapng.gz');
  const file = report('large', copies);
  const start = performance.now();
  const { page, faults, text } = await open(file);
  const opened = performance.now() - start;
  console.log(
    `  ${await text('#count')}, ${(statSync(file).size / 1e6).toFixed(1)} MB, open after ${(opened / 1000).toFixed(2)} s`,
  );
  // The frames a browser draws while the list scrolls from end to end.
  const frames = await page.evaluate(async () => {
    const list = document.querySelector('#list-scroll');
    let drawn = 0;
    const begin = performance.now();
    while (performance.now() - begin < 1000) {
      list.scrollTop = ((performance.now() - begin) / 1000) * list.scrollHeight;
      await new Promise(requestAnimationFrame);
      drawn++;
    }
    return drawn;
  });
  console.log(`  ${frames} frames in a second of scrolling`);
  assert.deepEqual(faults, []);
  await page.close();
});
