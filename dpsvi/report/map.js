// Topic map: one bubble a topic, its area the share of tokens, its place from topic_map.json.

const SIDE = 360;
const COVER = 0.12; // part of the square that all bubbles together may cover
const LARGEST = 40; // radius

const topicName = (topic) => `Topic ${topic.topic}`;

function topicSummary(topic) {
  const words = topic.words.slice(0, 8).map(([word]) => word);
  return `${topicName(topic)}, ${percent(topic.weight)} of tokens: ${words.join(", ")}`;
}

function toggleTopic(topic) {
  chosen.set(chosen.get() === topic.topic ? null : topic.topic);
}

class TopicMap {
  constructor(figure) {
    this.topics = DATA.topics.filter((topic) => topic.at);
    figure.classList.toggle("absent", !this.topics.length);
    if (!this.topics.length) return;
    this.text = html("p", { class: "reading", "aria-live": "polite" });
    this.layOut();
    this.bubbles = this.topics.map((topic) => this.bubble(topic)); // small ones on top
    const [x, y] = this.place([0, 0]);
    const picture = svg(
      "svg",
      { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "group", "aria-label": "Topic map" },
      svg("line", { class: "axis", x1: 0, x2: SIDE, y1: y, y2: y }),
      svg("line", { class: "axis", x1: x, x2: x, y1: 0, y2: SIDE }),
      ...this.bubbles,
    );
    const caption = "Topics in the plane by Jensen–Shannon distance; area is the share of tokens.";
    figure.replaceChildren(picture, html("p", { class: "caption" }, caption), this.text);
    this.topics.forEach((topic, i) => this.listen(topic, i));
    chosen.watch((number) => this.mark(number));
    matches.watch((found) => this.topics.forEach((topic, i) => {
      this.bubbles[i].classList.toggle("dim", !found.has(topic.topic));
    }));
  }

  // Both axes share one scale, so distances on the page are distances between topics.
  layOut() {
    const heaviest = largest(this.topics.map((topic) => topic.weight)) || 1;
    const unit = Math.min((COVER * SIDE ** 2) / Math.PI, LARGEST ** 2 / heaviest);
    this.radius = (topic) => Math.max(3, Math.sqrt(unit * topic.weight));
    const ranges = [0, 1].map((k) => {
      const values = this.topics.map((topic) => topic.at[k]);
      return [smallest(values), largest(values)];
    });
    const [midX, midY] = ranges.map(([low, high]) => (low + high) / 2);
    const span = largest(ranges.map(([low, high]) => high - low)) || 1;
    const scale = (SIDE - 2 * Math.sqrt(unit * heaviest) - 20) / span;
    this.place = ([x, y]) => [SIDE / 2 + (x - midX) * scale, SIDE / 2 - (y - midY) * scale];
  }

  bubble(topic) {
    const [cx, cy] = this.place(topic.at);
    const r = this.radius(topic);
    const small = r < 8; // too small to hold its number
    const crowded = small && this.topics.length > 60;
    return svg(
      "g",
      { class: crowded ? "bubble crowded" : "bubble", role: "button",
        "aria-label": topicSummary(topic) },
      svg("circle", { cx, cy, r }),
      svg("text", { x: cx, y: small ? cy - r - 3 : cy + 4 }, String(topic.topic)),
    );
  }

  mark(number) {
    this.topics.forEach((topic, i) => {
      this.bubbles[i].classList.toggle("chosen", topic.topic === number);
      this.bubbles[i].setAttribute("aria-pressed", topic.topic === number);
    });
    this.read();
  }

  read(topic = this.topics.find((one) => one.topic === chosen.get())) {
    this.text.textContent = topic ? topicSummary(topic) : "Select a topic to read it here.";
  }

  // One stop for the tab key; the arrow keys go from bubble to bubble, heaviest first.
  listen(topic, i) {
    const bubble = this.bubbles[i];
    bubble.setAttribute("tabindex", i === 0 ? 0 : -1);
    bubble.addEventListener("click", () => toggleTopic(topic));
    bubble.addEventListener("pointerenter", () => this.read(topic));
    bubble.addEventListener("pointerleave", () => this.read());
    bubble.addEventListener("focus", () => {
      this.bubbles.forEach((other) => other.setAttribute("tabindex", -1));
      bubble.setAttribute("tabindex", 0);
      this.read(topic);
    });
    bubble.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      const count = this.bubbles.length;
      if (step) this.bubbles[(i + step + count) % count].focus();
      else if (event.key === "Enter" || event.key === " ") toggleTopic(topic);
      else return;
      event.preventDefault();
    });
  }
}
