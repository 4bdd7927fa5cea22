// Topic cards with a bar per word and examples of documents, the relevance that ranks the words,
// the search over them, and the start of the page.

// Words of a topic, those of the largest r log p + (1 - r) log(p / overall) first.
function ranked(topic, r) {
  if (r === 1 || !topic.ranked.length) return topic.words;
  const score = ([, p, overall]) => Math.log(p) - (1 - r) * Math.log(overall);
  const order = topic.ranked.map((entry) => [score(entry), entry]).sort(([a], [b]) => b - a);
  return order.slice(0, topic.words.length).map(([, [word, p]]) => [word, p]);
}

// Set by the slider, where the run has what it needs; all others watch it.
const relevance = signal(1);
const shownWords = (topic) => ranked(topic, relevance.get());

function relevanceSlider(control, note) {
  if (!DATA.topics.some((topic) => topic.ranked.length)) return;
  control.hidden = note.hidden = false;
  const [slider, output] = control.querySelectorAll("input, output");
  slider.addEventListener("input", () => {
    output.textContent = Number(slider.value).toFixed(1);
    relevance.set(Number(slider.value));
  });
}

function topicCards(list) {
  if (!DATA.topics.length) {
    list.replaceChildren(html("p", { class: "empty" }, "No topics recorded."));
    return;
  }
  const longest = largest(DATA.topics.flatMap((topic) => topic.words.map(([, p]) => p))) || 1;
  const heaviest = largest(DATA.topics.map((topic) => topic.weight)) || 1;
  const cards = DATA.topics.map((topic) => ({ topic, ...card(topic, heaviest) }));
  list.replaceChildren(...cards.map(({ element }) => element));
  relevance.watch(() => cards.forEach((one) => {
    const words = shownWords(one.topic).map(([word, p]) => wordBar(word, p, longest));
    one.words = words;
    one.list.replaceChildren(...words);
  }));
  // On a narrow page the map does not stay in view, so a choice on it must not scroll away.
  const wide = window.matchMedia("(min-width: 901px)");
  chosen.watch((number) => {
    cards.forEach(({ topic, element, button }) => {
      element.classList.toggle("chosen", topic.topic === number);
      button.setAttribute("aria-pressed", topic.topic === number);
      if (wide.matches && topic.topic === number) element.scrollIntoView({ block: "nearest" });
    });
  });
  matches.watch((found) => {
    cards.forEach(({ topic, element, words }) => {
      element.hidden = !found.has(topic.topic);
      words.forEach((word, i) => {
        word.classList.toggle("hit", Boolean(found.get(topic.topic)?.has(i)));
      });
    });
  });
}

function card(topic, heaviest) {
  const share = html("div");
  share.style.setProperty("width", `${(100 * topic.weight) / heaviest}%`);
  const button = html("button", { type: "button" },
    topicName(topic), html("span", { title: "share of tokens" }, percent(topic.weight)));
  button.addEventListener("click", () => toggleTopic(topic));
  const list = html("ol");
  const element = html("article", { class: "card", "aria-label": topicName(topic) },
    html("h3", {}, button), html("div", { class: "share" }, share), list, ...examples(topic));
  return { element, button, list };
}

function examples(topic) {
  if (!topic.documents.length) return [];
  const items = topic.documents.map(([number, share, text]) => html("li", {},
    html("b", {}, `${number}: ${percent(share)}`), " ", html("bdi", {}, text)));
  return [html("details", { class: "examples" },
    html("summary", {}, "Documents"), html("ul", {}, ...items))];
}

function wordBar(word, p, longest) {
  const fill = html("div", { class: "fill" });
  fill.style.setProperty("width", `${(100 * p) / longest}%`);
  return html("li", { class: "word" },
    html("bdi", { title: word, translate: "no" }, word),
    html("div", { class: "track" }, fill),
    html("span", { class: "p" }, p.toFixed(4)));
}

// A topic matches by its number or by any of its words; an empty search matches all.
function topicSearch(input, output) {
  const fold = (text) => text.normalize("NFKC").toLocaleLowerCase();
  let folded;
  const search = () => {
    const wanted = fold(input.value.trim());
    const found = new Map();
    DATA.topics.forEach((topic, t) => {
      const hits = folded[t].flatMap((word, i) => (wanted && word.includes(wanted) ? [i] : []));
      const named = [String(topic.topic), fold(topicName(topic))].includes(wanted);
      if (!wanted || named || hits.length) found.set(topic.topic, new Set(hits));
    });
    output.textContent = wanted ? `${found.size} of ${DATA.topics.length} topics` : "";
    matches.set(found);
  };
  input.addEventListener("input", search);
  relevance.watch(() => {
    folded = DATA.topics.map((topic) => shownWords(topic).map(([word]) => fold(word)));
    search();
  });
  chosen.watch((number) => {
    if (number === null || matches.get().has(number)) return;
    input.value = ""; // a topic chosen on the map must not stay hidden
    search();
  });
}

// Closed details do not print, so those worth printing open for the time of it.
function printSettings() {
  const details = [...document.querySelectorAll("details.printed")];
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = details.filter((one) => !one.open);
    closed.forEach((one) => one.setAttribute("open", ""));
  });
  window.addEventListener("afterprint", () => {
    closed.forEach((one) => one.removeAttribute("open"));
  });
}

const curve = new TrainingCurve(
  document.getElementById("curve"), document.getElementById("curve-controls"),
);
relevanceSlider(
  document.getElementById("relevance-control"), document.getElementById("relevance-note"),
);
new TopicMap(document.getElementById("map"));
topicCards(document.getElementById("cards"));
topicSearch(document.getElementById("search"), document.getElementById("found"));
printSettings();
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") chosen.set(null);
});
document.documentElement.dataset.ready = "yes";
