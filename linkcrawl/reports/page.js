"use strict";
// Sorting, the theme switch, and the command behind a number. The page can be read without any of it.

// Digits in texts count as numbers: "Lexica 2" comes before "Lexica 10".
const inWords = new Intl.Collator(undefined, {numeric: true}).compare;

function valueOf(row, index) {
  const cell = row.cells[index];
  return "value" in cell.dataset ? cell.dataset.value : cell.textContent;
}

function sort(button) {
  const head = button.closest("th");
  const body = head.closest("table").tBodies[0];
  const first = head.classList.contains("num") ? "descending" : "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  const order = head.getAttribute("aria-sort") === first ? other : first;
  const sign = order === "ascending" ? 1 : -1;
  for (const sibling of head.parentNode.cells) sibling.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const compare = head.classList.contains("num") ? (left, right) => left - right : inWords;
  const rows = Array.from(body.rows, (row) => [valueOf(row, head.cellIndex), row]);
  rows.sort((left, right) => sign * compare(left[0], right[0]));
  body.append(...rows.map((pair) => pair[1]));
}

let asked = null; // the number whose command is shown

function tell(button) {
  asked = button;
  document.getElementById("command").textContent = button.dataset.command;
  document.getElementById("copy").textContent = "Copy";
  document.getElementById("bar").hidden = false;
  document.getElementById("copy").focus();
}

function closeBar() {
  document.getElementById("bar").hidden = true;
  if (asked) asked.focus({preventScroll: true});
}

function select(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}

async function copy(button) {
  const shown = document.getElementById("command");
  select(shown);
  try {
    await navigator.clipboard.writeText(shown.textContent);
    button.textContent = "Copied";
  } catch {
    // Some browsers give pages from disk no clipboard: the older way works on the selection.
    button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
  }
}

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.classList.contains("sort")) sort(button);
  else if (button.dataset.command) tell(button);
  else if (button.id === "copy") copy(button);
  else if (button.id === "close") closeBar();
  else if (button.id === "theme") switchTheme();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.getElementById("bar").hidden) closeBar();
});
