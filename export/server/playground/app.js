// The page: a form made from a model's signatures, a request as any client sends it, an answer.
"use strict";

const byId = (id) => document.getElementById(id);
const state = { models: [], model: null, task: null, example: 0 };

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children); // Strings become text nodes: answers are never parsed as HTML.
  return made;
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;

function bar(name, share) {
  const fill = element("i");
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return element("div", { class: "bar" }, element("b", {}, name),
    element("div", { class: "track" }, fill), element("span", {}, percent(share)));
}

const ranked = (names, shares) => names
  .map((name, index) => [name, shares[index]]).sort((a, b) => b[1] - a[1]).slice(0, 12)
  .map(([name, share]) => bar(name, share));

// Python counts code points; slices of a JavaScript string count UTF-16 units.
const slicer = (text) => {
  const letters = Array.from(text);
  return (start, end) => letters.slice(start, end).join("");
};

const hue = (name) => [...name].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 360, 7);

const CLASSIFY = {
  signature: "classify",
  verb: "classify",
  fields: ["text", "text_b"],
  labels: { text_b: "Second text, if there is one" },
  purpose: "Puts a text, or a pair of texts, into a class.",
  examples: [["Where is my parcel? It should have come on Monday.", ""], ["A charming film with a great cast.", ""]],
  show: (row) => ranked(row.map(([name]) => name), row.map(([, share]) => share)),
};

// A task: the models that it fits, its fields with examples, its request, and how to show answers.
const TASKS = [
  {
    fits: (m) => has(m, "outputs", "top_pieces"),
    purpose: "Write [MASK] where a word is missing; the model guesses it.",
    examples: [["He studied at the [MASK] of Oxford."], ["Returns the [MASK] of the file."],
      ["She [MASK] the door and [MASK] outside."]],
    show: (row) => [...Array(row.num_masks).keys()].flatMap((mask) => [
      element("h2", {}, `Mask ${mask + 1}`),
      ...row.top_pieces[mask].map((piece, k) => bar(piece.replace(/▁/g, "") || "▁", row.top_probabilities[mask][k])),
    ]),
    none: "There is no [MASK] in the text.",
  },
  {
    fits: (m) => has(m, "outputs", "answer"),
    purpose: "Asks a question about a text; the answer is marked in it.",
    examples: [["Where was she born?", "Ada Lovelace was born in London in 1815 and wrote about Babbage's engine."]],
    show(row, values) {
      const { start, end } = row;
      const slice = slicer(values.context);
      const bars = row.answers.slice(0, row.num_answers).map((answer, k) => bar(answer, row.probabilities[k]));
      const titled = (title, shown) => (shown.length ? [element("h2", {}, title), ...shown] : []);
      if (!row.answer) {
        return [element("p", { class: "text" }, "The text does not say."),
          ...titled("If it did, the answer would be", bars)];
      }
      return [element("p", { class: "text" }, slice(0, start),
        element("mark", {}, slice(start, end)), slice(end)),
        ...titled("Answer", bars.slice(0, 1)), ...titled("Further answers", bars.slice(1))];
    },
  },
  {
    fits: (m) => "similarity" in m.signatures,
    signature: "similarity",
    purpose: "How near two texts are in meaning: the cosine of their vectors.",
    examples: [["The cat sleeps on the sofa.", "A kitten naps on the couch."]],
    show: (row) => {
      const value = typeof row === "number" ? row : row.similarity;
      return [element("p", { class: "big" }, value.toFixed(3)), bar("similarity", value)];
    },
  },
  {
    fits: (m) => has(m, "outputs", "num_words"),
    purpose: "Gives each word its tag.",
    examples: [["Angela Merkel met Macron in Paris on Monday."]],
    show(row, values) {
      const { starts, ends } = row;
      const parts = [], slice = slicer(values.text);
      let place = 0;
      row.labels.forEach((label, k) => {
        if (!label || starts[k] < place) return;
        const word = slice(starts[k], ends[k]);
        parts.push(slice(place, starts[k]));
        const tag = element("span", { class: "tag" }, word, element("small", {}, label));
        tag.style.setProperty("--hue", hue(label.replace(/^[BI]-/, "")));
        parts.push(label === "O" ? word : tag);
        place = ends[k];
      });
      const text = element("p", { class: "text" }, ...parts, slice(place));
      const found = row.labels.some((label) => label && label !== "O");
      return found ? [text] : [text, element("p", {}, "Nothing found: no word has a tag other than O.")];
    },
  },
  {
    fits: (m) => has(m, "outputs", "pieces") && has(m, "outputs", "starts"),
    purpose: "Marks the words that seem out of place.",
    examples: [["The chef opened the piano and cooked a soup."]],
    show(row, values) {
      const slice = slicer(values.text);
      const marks = row.pieces.map((piece, k) => {
        const made = element("mark", { title: percent(row.probabilities[k]) },
          slice(row.starts[k], row.ends[k]));
        made.style.background = `rgb(240 80 60 / ${row.probabilities[k]})`;
        return row.starts[k] < 0 ? "" : made;
      });
      return [element("p", { class: "text" }, ...marks.flatMap((mark, k) =>
        [slice(k ? Math.max(0, row.ends[k - 1]) : 0, Math.max(0, row.starts[k])), mark]),
        slice(row.ends.reduce((last, end) => Math.max(last, end), 0)))]; // Text beyond the model's length.
    },
  },
  {
    fits: (m) => has(m, "inputs", "options"),
    fields: ["question", "options", "context"],
    purpose: "Chooses the option that answers the question; one option a line.",
    examples: [["What is warm?", "the sun\nthe snow\nthe sea in winter", "The sun shines, and the snow melts."]],
    row: (values) => ({ ...values, options: values.options.split("\n").filter((line) => line.trim()) }),
    show: (row, values) => ranked(values.options.split("\n").filter((line) => line.trim()), row.probabilities),
  },
  {
    ...CLASSIFY,
    fits: (m) => has(m, "outputs", "num_labels") && "classify" in m.signatures,
    purpose: "Gives a text, or a pair of texts, any number of labels, each with its probability.",
  },
  { ...CLASSIFY, fits: (m) => "classify" in m.signatures },
  {
    fits: (m) => "regress" in m.signatures,
    signature: "regress",
    verb: "regress",
    fields: ["text", "text_b"],
    labels: { text_b: "Second text, if there is one" },
    purpose: "Gives a text, or a pair of texts, a number.",
    examples: [["A charming film with a great cast.", ""]],
    show: (value) => [element("p", { class: "big" }, value.toFixed(3))],
  },
  {
    fits: (m) => has(m, "inputs", "text"),
    purpose: "Shows what the model answers, as it is.",
    examples: [["The cat sleeps on the sofa."]],
    show: (row) => [element("pre", {}, JSON.stringify(row, null, 1).slice(0, 4000))],
  },
];

function has(model, side, name) {
  const signature = model.signatures.serving_default;
  return Boolean(signature) && signature[side].includes(name);
}

const LABELS = { text: "Text", text_a: "First text", text_b: "Second text",
  question: "Question", context: "Context", options: "Options" };

// Inputs come in alphabetical order; move "context" after "question".
function fieldsOf(model, task) {
  const inputs = task.fields ?? model.signatures[task.signature ?? "serving_default"].inputs;
  return [...inputs].sort((a, b) => (a === "context") - (b === "context"));
}

function choose(model) {
  state.model = model;
  state.task = TASKS.find((task) => task.fits(model)) ?? null;
  for (const button of byId("models").children) {
    const chosen = button.textContent === model.name;
    button.setAttribute("aria-checked", chosen);
    button.tabIndex = chosen ? 0 : -1;
  }
  location.hash = encodeURIComponent(model.name);
  for (const id of ["answer", "error", "pieces", "command"]) byId(id).hidden = true;
  byId("latency").textContent = "";
  byId("fields").replaceChildren();
  byId("ask").disabled = byId("example").disabled = !state.task;
  if (!state.task) {
    byId("purpose").textContent =
      "This model takes ids, not text: a preprocessor makes them. Choose another model, or ask it with curl.";
    return;
  }
  byId("purpose").textContent = state.task.purpose;
  for (const name of fieldsOf(model, state.task)) {
    const area = element("textarea", { name, id: `field-${name}`, spellcheck: "false",
      rows: name === "context" ? 7 : name === "text_b" ? 1 : 2 });
    byId("fields").append(element("label", { for: area.id }, state.task.labels?.[name] ?? LABELS[name] ?? name), area);
  }
  fill(0);
}

function fill(number) {
  state.example = number % state.task.examples.length;
  const areas = byId("fields").querySelectorAll("textarea");
  areas.forEach((area, k) => { area.value = state.task.examples[state.example][k] ?? ""; });
}

async function ask(path, body) {
  let response;
  try {
    response = await fetch(path, body && { method: "POST", body: JSON.stringify(body) });
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function requestOf(values) {
  const { model, task } = state;
  const row = task.row ? task.row(values) : Object.fromEntries(Object.entries(values).filter(([name, value]) => value || name !== "text_b"));
  const body = { [task.verb ? "examples" : "instances"]: [row] };
  if (task.signature) body.signature_name = task.signature;
  return [`/v1/models/${encodeURIComponent(model.name)}:${task.verb ?? "predict"}`, body];
}

async function submit() {
  if (byId("ask").disabled) return; // A request is already running.
  const { model, task } = state;
  const values = Object.fromEntries(new FormData(byId("form")));
  const [path, body] = requestOf(values);
  byId("ask").disabled = true;
  byId("error").hidden = true;
  try {
    const start = performance.now();
    const answer = await ask(path, body);
    if (state.model !== model) return; // Another model was chosen in the meantime.
    byId("latency").textContent = `${(performance.now() - start).toFixed(1)} ms`;
    const shown = task.show((answer.predictions ?? answer.results)[0], values);
    byId("answer").replaceChildren(...(shown.length ? shown : [task.none ?? "No answer."]));
    byId("answer").hidden = false;
    showPieces(model, Object.values(values).join("\n").trim());
  } catch (error) {
    if (state.model !== model) return;
    byId("answer").hidden = byId("pieces").hidden = true;
    byId("error").textContent = error.message;
    byId("error").hidden = false;
  } finally {
    byId("ask").disabled = !state.task;
  }
  const json = JSON.stringify(body).replace(/'/g, "'\\''");
  byId("curl").textContent = `curl -d '${json}' ${location.origin}${path}`;
  byId("command").hidden = false;
  byId("copy").textContent = "Copy";
}

// All fields together may exceed the length limit of a text; then only the answer is shown.
async function showPieces(model, text) {
  const pieces = await ask("/playground/pieces", { model: model.name, text }).catch(() => []);
  if (state.model !== model) return;
  byId("piecelist").replaceChildren(...pieces.map(({ piece, id }) =>
    element("div", { class: "piece" }, piece, element("small", {}, String(id)))));
  byId("pieces").querySelector("summary").textContent = `Pieces and ids (${pieces.length})`;
  byId("pieces").hidden = !pieces.length;
}

function listen() {
  byId("form").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  byId("form").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && state.task) submit();
  });
  byId("example").addEventListener("click", () => fill(state.example + 1));
  byId("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(byId("curl").textContent);
      byId("copy").textContent = "Copied";
    } catch { // Browsers allow remote pages to use the clipboard only over HTTPS.
      getSelection().selectAllChildren(byId("curl"));
      byId("copy").textContent = "Selected: copy it";
    }
  });
  byId("models").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const count = state.models.length;
    choose(state.models[(state.models.indexOf(state.model) + step + count) % count]);
    byId("models").querySelector("[aria-checked=true]").focus();
  });
}

async function start() {
  listen();
  try {
    state.models = await ask("/playground/models");
  } catch (error) {
    byId("error").textContent = `The models cannot be listed: ${error.message}`;
    byId("error").hidden = false;
    return;
  }
  byId("models").replaceChildren(...state.models.map((model) => {
    const button = element("button", { type: "button", role: "radio" }, model.name);
    button.addEventListener("click", () => choose(model));
    return button;
  }));
  const named = state.models.find((model) => `#${encodeURIComponent(model.name)}` === location.hash);
  choose(named ?? state.models[0]);
}

start();
