// Topic cards with a bar per word, the search over them, and the start of the page.

function topicCards(list) {
  if (!DATA.topics.length) {
    list.replaceChildren(html("p", { class: "empty" }, "No topics recorded."));
    return;
  }
  const longest = largest(DATA.topics.flatMap((topic) => topic.words.map(([, p]) => p))) || 1;
  const heaviest = largest(DATA.topics.map((topic) => topic.weight)) || 1;
  const cards = DATA.topics.map((topic) => ({ topic, ...card(topic, longest, heaviest) }));
  list.replaceChildren(...cards.map(({ element }) => element));
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

function card(topic, longest, heaviest) {
  const share = html("div");
  share.style.setProperty("width", `${(100 * topic.weight) / heaviest}%`);
  const button = html("button", { type: "button" },
    topicName(topic), html("span", { title: "share of tokens" }, percent(topic.weight)));
  const words = topic.words.map(([word, p]) => wordBar(word, p, longest));
  button.addEventListener("click", () => toggleTopic(topic));
  const element = html("article", { class: "card", "aria-label": topicName(topic) },
    html("h3", {}, button), html("div", { class: "share" }, share), html("ol", {}, ...words));
  return { element, button, words };
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
  const folded = DATA.topics.map((topic) => topic.words.map(([word]) => fold(word)));
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
  search();
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
topicSearch(document.getElementById("search"), document.getElementById("found"));
new TopicMap(document.getElementById("map"));
topicCards(document.getElementById("cards"));
printSettings();
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") chosen.set(null);
});
document.documentElement.dataset.ready = "yes";
