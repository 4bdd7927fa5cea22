"""A plain, slow advantage actor-critic: one agent, NumPy in float64, one game after the other."""

import numpy as np

from dpsvi.rl import generator


def layers(network, theta):
    """Weights and biases, as the docstring of the network's module lays them out."""
    found, at = [], 0
    for (rows, columns), biases in network.parts:
        weights = theta[at : at + rows * columns].reshape(rows, columns)
        at += rows * columns
        found.append((weights, theta[at : at + biases]))
        at += biases
    assert at == len(theta)
    return found


def outputs(network, theta, x):
    """Logits and values of observations, (n, actions + 1), float64."""
    *below, (U, c) = layers(network, np.asarray(theta, np.float64))
    h = np.asarray(x, np.float64).reshape(len(x), -1)
    pictures = h.reshape(len(x), *network.shape)
    for (W, b), convolution in zip(below, network.convolutions, strict=False):
        pictures = np.maximum(convolved(convolution, W, b, pictures), 0)
        h = pictures.reshape(len(x), -1)
    for W, b in below[len(network.convolutions) :]:
        h = np.maximum(h @ W + b, 0)
    return h @ U.T + c


def convolved(convolution, W, b, pictures):
    filters, size, stride = convolution
    n, height, width, channels = pictures.shape
    kernel = W.reshape(size, size, channels, filters)
    rows, columns = range(0, height - size + 1, stride), range(0, width - size + 1, stride)
    out = np.zeros((n, len(rows), len(columns), filters))
    for i, r in enumerate(rows):
        for j, c in enumerate(columns):
            seen = pictures[:, r : r + size, c : c + size, :]
            out[:, i, j] = np.tensordot(seen, kernel, 3) + b
    return out


def loss(network, theta, x, actions, returns, advantages, entropy, value):
    """Mean over the moves, with the advantages as constants."""
    out = outputs(network, theta, x)
    logits, critic = out[:, :-1], out[:, -1]
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    disorder = -(np.exp(log_p) * log_p).sum(axis=1)
    chosen = log_p[np.arange(len(x)), actions]
    return np.mean(-chosen * advantages - entropy * disorder + value * (returns - critic) ** 2)


def loss_of_actions(network, theta, x, actions, returns, value):
    """Of Q-learning, a mean over the moves."""
    chosen = outputs(network, theta, x)[np.arange(len(x)), actions]
    return np.mean(value * (returns - chosen) ** 2)


def gradient(loss, network, theta, *args, step=1e-5):
    """Of a loss, by central differences."""
    theta, found = np.asarray(theta, np.float64), np.zeros(len(theta))
    for k in range(len(theta)):
        up, down = theta.copy(), theta.copy()
        up[k] += step
        down[k] -= step
        found[k] = (loss(network, up, *args) - loss(network, down, *args)) / (2 * step)
    return found


class Agent:
    """One agent that plays several games and steps by RMSProp."""

    def __init__(self, environment, network, settings, theta, stream_seed):
        self.environment, self.network, self.settings = environment, network, settings
        self.theta, self.square, self.n_steps = np.asarray(theta, np.float64), 0.0, 0
        self.waiting = []
        self.random = np.zeros(1, np.uint64)
        generator.seed(self.random, stream_seed)
        self.games = [np.zeros(environment.N_STATE) for _ in range(settings.n_games)]
        self.ages, self.last = [0] * settings.n_games, [0] * settings.n_games
        for state in self.games:
            environment.reset(state, self.random)

    def observation(self, state):
        out = np.zeros(self.network.n_inputs, np.float32)
        self.environment.observe(state, out)
        return out

    def value(self, state):
        return self.values(self.observation(state)[None])[0]

    def values(self, x):
        out = outputs(self.network, self.theta, x)
        return out[:, :-1].max(axis=1) if self.settings.objective == "q" else out[:, -1]

    def choose(self, logits, game):
        if self.settings.objective == "q":
            tries = [0.1, 0.01, 0.5, 0.1, 0.01, 0.5, 0.1, 0.01, 0.5, 0.1][game % 10]
            if generator.uniform(self.random) < tries:
                return generator.below(self.random, len(logits))
            return int(np.argmax(logits))
        p = np.exp(logits - logits.max())
        left = generator.uniform(self.random) * p.sum()
        for action, mass in enumerate(p):
            left -= mass
            if left < 0:
                return action
        return len(p) - 1

    def step(self, rate):
        s, environment = self.settings, self.environment
        x, actions, rewards, ends = [], [], [], []
        for _ in range(s.n_moves):
            seen = np.array([self.observation(state) for state in self.games])
            out = outputs(self.network, self.theta, seen)
            for e, state in enumerate(self.games):
                action = self.choose(out[e, :-1], e)
                actions.append(action)
                if s.sticky and generator.uniform(self.random) < s.sticky and self.ages[e]:
                    action = self.last[e]
                self.last[e] = action
                reward, ended = environment.step(state, action, self.random)
                self.ages[e] += 1
                cut = not ended and self.ages[e] >= environment.LIMIT > 0
                if cut:
                    reward += s.gamma * self.value(state)
                rewards.append(reward)
                ends.append(ended or cut)
                if ended or cut:
                    self.ages[e] = 0
                    environment.reset(state, self.random)
            x.extend(seen)
        x.extend(self.observation(state) for state in self.games)  # where they stand
        self.waiting.append((x, actions, rewards, ends))
        if len(self.waiting) > s.queue:
            self.learn(rate, *self.waiting.pop(0))

    def learn(self, rate, x, actions, rewards, ends):
        s, shape = self.settings, (self.settings.n_moves, self.settings.n_games)
        rewards, ends = np.reshape(rewards, shape), np.reshape(ends, shape)
        values = self.values(np.array(x)).reshape(-1, s.n_games)
        x = x[: rewards.size]
        advantages, carried = np.zeros(shape), np.zeros(s.n_games)
        for t in reversed(range(s.n_moves)):  # generalised advantages, in their usual form
            goes_on = 1 - ends[t]
            delta = rewards[t] + s.gamma * goes_on * values[t + 1] - values[t]
            carried = delta + s.gamma * s.trace * goes_on * carried
            advantages[t] = carried
        returns = advantages + values[:-1]
        told = self.network, self.theta, np.array(x), np.array(actions), returns.ravel()
        if s.objective == "q":
            g = gradient(loss_of_actions, *told, s.value)
        else:
            g = gradient(loss, *told, advantages.ravel(), s.entropy, s.value)
        norm = np.linalg.norm(g)
        if s.clip and norm > s.clip:
            g *= s.clip / norm
        # RMSProp whose mean square begins at 1.
        self.n_steps += 1
        self.square = s.second * self.square + (1 - s.second) * g**2
        self.theta -= rate * g / np.sqrt(self.square + s.second**self.n_steps + s.epsilon)
