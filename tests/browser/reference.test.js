// Tests of the pages that `moulsniff tables html` writes, in a real browser, as report.test.js does it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import puppeteer from 'puppeteer-core';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const PROGRAM = path.resolve(ROOT, process.env.MOULSNIFF ?? 'target/release/moulsniff');
const FIREFOX = process.env.FIREFOX;
const AXE = readFileSync(path.join(ROOT, 'tests/browser/node_modules/axe-core/axe.min.js'), 'utf8');

let folder = '';
/** @type {import('puppeteer-core').Browser} */
let browser;

before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'reference-'));
  execFileSync(PROGRAM, ['tables', 'html', '--no-config', '--quiet', '-o', folder], { cwd: ROOT });
  browser = await puppeteer.launch(
    FIREFOX
      ? { browser: 'firefox', executablePath: FIREFOX }
      : { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] },
  );
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens a page; what goes wrong in it is in `faults`. @param {string} file */
async function open(file, { width = 1280, height = 800 } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000);
  /** @type {string[]} */
  const faults = [];
  page.on('console', (message) => ['error', 'warn'].includes(message.type()) && faults.push(message.text()));
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => /^(file|data):/.test(request.url()) || faults.push('a request: ' + request.url()));
  await page.setViewport({ width, height });
  const [name, anchor = ''] = file.split('#');
  await page.goto(pathToFileURL(path.join(folder, name)).href + (anchor && '#' + anchor));
  return { page, faults };
}

test('the index is searched by names, fields and numbers, and leads to pages', async () => {
  const { page, faults } = await open('index.html');
  const shown = () => page.$$eval('.list li:not([hidden]) a', (links) => links.map((link) => link.textContent));
  const all = (await shown()).length;
  assert.ok(all > 1000, String(all));
  await page.type('#search', 'vaultnodefetch');
  assert.deepEqual(await shown(), ['Cli2Auth_VaultNodeFetch', 'Auth2Cli_VaultNodeFetched']);
  assert.equal(await page.$eval('#found', (found) => found.textContent), '2 found');
  await page.click('.list li:not([hidden]) a');
  await page.waitForSelector('.fields');
  assert.equal(await page.$eval('h1', (heading) => heading.textContent), 'Cli2Auth_VaultNodeFetch');
  // Puppeteer's own goBack waits for an event that Firefox does not send.
  await page.evaluate(() => history.back());
  await page.waitForSelector('#search');
  await page.$eval('#search', (input) => (input.value = ''));
  await page.type('#search', 'account_name client');
  assert.ok((await shown()).includes('Cli2Auth_AcctCreateRequest'), String(await shown()));
  assert.deepEqual(faults, []);
  await page.close();
});

test('a message shows its fields, its bytes in their colours, and what answers it', async () => {
  const { page, faults } = await open('moul/messages/Cli2Auth_VaultNodeFetch.html#f.node_id');
  const colours = await page.$$eval('.example i', (parts) =>
    parts.map((part) => [part.textContent, getComputedStyle(part).color]),
  );
  const of = (/** @type {string} */ text) => colours.find(([shown]) => shown === text)?.[1];
  assert.equal(of('trans_id'), of('32 00 00 00'));
  assert.equal(of('node_id'), of('01 00  00 00') ?? of('01 00 00 00'));
  assert.notEqual(of('trans_id'), of('node_id'));
  await page.$$eval('dd a', (links) => /** @type {HTMLElement} */ (links[0]).click());
  await page.waitForFunction(() => document.title.startsWith('Auth2Cli_VaultNodeFetched'));
  assert.deepEqual(faults, []);
  await page.close();
});

test('pages fit a phone', async () => {
  for (const file of [
    'index.html',
    'moul/messages/Cli2Auth_AcctLoginRequest.html',
    'moul/types/plNotifyMsg.html',
    'moul/types/ENetError.html',
    'secondlife/messages/ObjectUpdate.html',
  ]) {
    const { page, faults } = await open(file, { width: 360, height: 740 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `${file}: ${wide}`);
    assert.deepEqual(faults, [], file);
    await page.close();
  }
});

test('nothing stands in the way of people who do not see, or see little', async () => {
  for (const file of ['index.html', 'moul/messages/Cli2Auth_AcctLoginRequest.html', 'moul/types/ENetError.html']) {
    const { page } = await open(file);
    await page.evaluate(AXE);
    // @ts-expect-error axe is in the page
    const result = await page.evaluate(() => axe.run());
    const found = result.violations.map((/** @type {any} */ one) => `${one.id}: ${one.nodes[0].html}`);
    assert.deepEqual(found, [], file);
    await page.close();
  }
});
