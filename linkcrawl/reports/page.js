"use strict";
// Sorting, the theme switch, and the command behind a number. The page can be read without any of it.

function valueOf(row, index) {
  const cell = row.cells[index];
  const value = "value" in cell.dataset ? cell.dataset.value : cell.textContent;
  const number = Number(value);
  return value !== "" && !Number.isNaN(number) ? number : value.toLowerCase();
}

function compare(left, right) {
  if (typeof left === "number" && typeof right === "number") return left - right;
  return String(left).localeCompare(String(right));
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
  const rows = Array.from(body.rows, (row) => [valueOf(row, head.cellIndex), row]);
  rows.sort((left, right) => sign * compare(left[0], right[0]));
  body.append(...rows.map((pair) => pair[1]));
}

function tell(command) {
  document.getElementById("command").textContent = command;
  document.getElementById("copy").textContent = "Copy";
  document.getElementById("bar").hidden = false;
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
  else if (button.dataset.command) tell(button.dataset.command);
  else if (button.id === "copy") copy(button);
  else if (button.id === "close") document.getElementById("bar").hidden = true;
  else if (button.id === "theme") switchTheme();
});
