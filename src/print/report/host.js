// @ts-check
'use strict';
// What the report does where the page of the program (web/) shows it in a frame: the program filters it, and files that are
// dropped on it go to the page. Anywhere else nothing of this happens.

/** @type {MessagePort | undefined} */
let program;
window.addEventListener('message', (event) => {
  if (event.source !== window.parent || event.data !== 'moulsniff') return;
  const port = (program = event.ports[0]);
  // What is dropped on the report is for the page.
  document.addEventListener('dragover', (drag) => drag.preventDefault());
  document.addEventListener('drop', (drop) => {
    drop.preventDefault();
    port.postMessage({ files: Array.from(drop.dataTransfer?.files ?? []) });
  });
});

/** The rows that the program keeps, where its page shows this report and a filter is in its language alone.
 * @param {Capture} report @param {string} text @returns {Promise<Uint32Array | undefined>} */
async function askProgram(report, text) {
  const port = program;
  if (!port) return undefined;
  const reader = new FilterReader(text, report);
  let taken = true;
  try {
    reader.all();
  } catch {
    taken = false;
  }
  if (reader.ownWords || (taken && !reader.conditions)) {
    port.postMessage({ text: '' });
    return undefined;
  }
  const { fault, records } = await new Promise((resolve) => {
    port.onmessage = ({ data }) => resolve(data);
    port.postMessage({ text });
  });
  if (fault) throw new Error(fault);
  return Uint32Array.from(
    Array.from(/** @type {number[]} */ (records), (record) => report.rowOf.get(record)).filter(
      (row) => row !== undefined,
    ),
  );
}
