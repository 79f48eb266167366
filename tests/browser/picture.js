// Makes the picture of a report that the README shows.
//
//     MOULSNIFF=target/release/moulsniff CHROMIUM=/usr/bin/chromium node tests/browser/picture.js

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import puppeteer from 'puppeteer-core';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const folder = mkdtempSync(path.join(tmpdir(), 'picture-'));
const file = path.join(folder, 'report.html');
const words = [
  'report',
  'captures/moul/evening.pcapng',
  '--keys',
  'keys/evening.keys',
  '--no-config',
  '--quiet',
  '-o',
  file,
];
execFileSync(path.resolve(ROOT, process.env.MOULSNIFF ?? 'target/release/moulsniff'), words, { cwd: ROOT });
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb'],
});
const page = await browser.newPage();
await page.setViewport({ width: 1280, height: 760 });
await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }]);
await page.goto(pathToFileURL(file) + '#record=198');
await page.waitForSelector('#tree');
await page.screenshot({ path: path.join(ROOT, 'docs/report.png') });
await browser.close();
rmSync(folder, { recursive: true });
