'use strict';
// The search of the index: lines that have all words stay, in their name, their text or their fields.

const input = /** @type {HTMLInputElement} */ (document.getElementById('search'));
const found = /** @type {HTMLElement} */ (document.getElementById('found'));
const lines = [...document.querySelectorAll('.list li')].map((element) => ({
  element: /** @type {HTMLElement} */ (element),
  text: (element.textContent + ' ' + element.getAttribute('data-fields')).toLowerCase(),
}));
const headings = [...document.querySelectorAll('section, h3')].map((element) => /** @type {HTMLElement} */ (element));

/** Whether anything below a heading, or in a section, is shown. @param {HTMLElement} element */
function isUsed(element) {
  const within = element.tagName === 'H3' ? element.nextElementSibling : element;
  return within !== null && within.querySelector('li:not([hidden])') !== null;
}

function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const line of lines) {
    const is = words.every((word) => line.text.includes(word));
    line.element.hidden = !is;
    count += Number(is);
  }
  for (const heading of headings) heading.hidden = !isUsed(heading);
  found.textContent = words.length === 0 ? '' : count === 1 ? '1 found' : `${count} found`;
}

input.addEventListener('input', search);
search();
