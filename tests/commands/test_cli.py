"""The command line as a user meets it: commands, exit codes, run folder, signals."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dpsvi import DPSVIHDP, DPSVILDA, DPSVIGaussianMixture, load
from dpsvi.__main__ import main, make_parser
from dpsvi.commands.wording import CALLED, NOT_JSON

FIT = ["--topics", "4", "--passes", "3", "--batch-size", "16", "--quiet", "--no-cache"]


def write_docword(path, counts):
    doc, word = np.nonzero(counts)
    lines = [f"{d + 1} {w + 1} {counts[d, w]}" for d, w in zip(doc, word, strict=True)]
    header = [*map(str, counts.shape), str(len(lines))]
    path.write_text("\n".join(header + lines) + "\n")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.1), 4)
    theta = rng.dirichlet(np.full(4, 0.3), 120)
    counts = rng.poisson(40 * theta @ topics)
    counts[:, 0] += 1
    write_docword(folder / "docword.small.txt", counts)
    (folder / "vocab.small.txt").write_text("".join(f"word{w}\n" for w in range(60)))
    return folder / "docword.small.txt"


@pytest.fixture(scope="module")
def run_folder(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["fit", "lda", "--corpus", str(corpus), "--out", str(out), *FIT]) == 0
    return out


def test_run_folder_is_complete(run_folder):
    expected = {
        "config.json", "env.json", "metrics.jsonl", "run.log", "topics.csv", "topic_map.json",
        "topic_words.json",
        "model.safetensors", "model.json", "vocab.txt", "report.html",
    }  # fmt: skip
    assert {p.name for p in run_folder.iterdir()} == expected
    lines = [json.loads(line) for line in (run_folder / "metrics.jsonl").open()]
    keys = {"step", "items", "seconds", "metric", "value", "split", "rank"}
    assert all(set(line) == keys for line in lines)
    assert {line["metric"] for line in lines} >= {"perplexity", "unigram_perplexity"}
    assert max(line["items"] for line in lines) == 3 * 114  # 5 % of 120 documents held out
    assert json.loads((run_folder / "config.json").read_text())["topics"] == 4
    assert len((run_folder / "vocab.txt").read_text().split()) == 60


def test_hdp_is_fitted_like_lda(corpus, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["fit", "hdp", "--corpus", str(corpus), "--out", str(out), *FIT, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["perplexity"] < facts["unigram_perplexity"] and facts["topics"] == 4
    assert (out / "report.html").exists()
    assert type(load(out)) is DPSVIHDP
    assert main(["evaluate", str(out), "--corpus", str(corpus)]) == 0


def test_estimator_opens_the_run_folder(run_folder, corpus):
    model = DPSVILDA.load(run_folder)
    assert model.components_.shape == (4, 60) and model.vocabulary_[3] == "word3"
    assert model.transform(corpus).shape == (120, 4)


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        (["topics", "RUN", "--words", "3"], {"topics"}),
        (["evaluate", "RUN", "--corpus", "CORPUS"], {"perplexity", "unigram_perplexity"}),
        (["info", "RUN"], {"kind", "arrays", "step", "params"}),
        (["info", "CORPUS"], {"documents", "words", "entries"}),
        (["transform", "RUN", "--corpus", "CORPUS", "--out", "OUT/theta.npy"], {"shape"}),
        (["transform", "RUN", "--corpus", "CORPUS", "--out", "OUT/theta.csv"], {"shape"}),
        (["export", "RUN", "--format", "csv", "--out", "OUT/topics.csv"], {"out"}),
        (["export", "RUN", "--format", "npz", "--out", "OUT/topics.npz"], {"out"}),
    ],
)
def test_commands_give_json(command, keys, run_folder, corpus, tmp_path, capsys):
    places = {"RUN": str(run_folder), "CORPUS": str(corpus)}
    argv = [places.get(word, word).replace("OUT", str(tmp_path)) for word in command]
    assert main([*argv, "--json"]) == 0
    assert keys <= set(json.loads(capsys.readouterr().out))


def test_info_in_lines(run_folder, capsys):
    assert main(["info", str(run_folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "kind: lda" in lines and "params:" in lines and "  lambda: [60, 4]" in lines


def test_transform_and_export_write_what_the_model_says(run_folder, corpus, tmp_path, capsys):
    model = DPSVILDA.load(run_folder)
    theta, topics = tmp_path / "theta.csv", tmp_path / "topics.npz"
    main(["transform", str(run_folder), "--corpus", str(corpus), "--out", str(theta)])
    main(["export", str(run_folder), "--format", "npz", "--out", str(topics)])
    read = np.loadtxt(theta, delimiter=",", skiprows=1)
    np.testing.assert_allclose(read, model.transform(corpus), atol=1e-5)
    with np.load(topics, allow_pickle=False) as file:
        np.testing.assert_allclose(file["topic_word"].sum(axis=1), 1, rtol=1e-5)
        assert file["vocabulary"][3] == "word3"


def test_flags_win_over_the_config_file(corpus, tmp_path, capsys):
    config = tmp_path / "run.toml"
    config.write_text(f'topics = 7\npasses = 1\ncorpus = "{corpus}"\nno_cache = true\nquiet = true')
    argv = ["fit", "lda", "--config", str(config), "--out", str(tmp_path / "a"), "--topics", "3"]
    assert main(argv) == 0
    settings = json.loads((tmp_path / "a" / "config.json").read_text())
    assert (settings["topics"], settings["passes"]) == (3, 1)


def test_a_fit_finds_its_end(corpus, tmp_path, capsys):
    argv = ["fit", "lda", "--corpus", str(corpus), "--out", str(tmp_path / "a"), *FIT]
    assert main([*argv, "--passes", "auto", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passes"] in [10, 20, 40, 80, 160]


def cut(corpus, tmp_path):
    path = tmp_path / "docword.cut.txt"
    path.write_text(corpus.read_text()[:-40])
    return path


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["fit", "lda", "--corpus", "NOWHERE"], 3, "NOWHERE"),
        (["fit", "lda", "--corpus", "CUT"], 3, "docword.cut.txt:"),
        (["fit", "lda", "--corpus", "CORPUS", "--topics", "0"], 2, "--topics must be"),
        (["fit", "lda", "--corpus", "CORPUS", "--learning-decay", "2"], 2, "--learning-decay"),
        (["fit", "lda", "--corpus", "CORPUS", "--held-out", "500"], 2, "--held-out must be"),
        (["fit", "lda", "--corpus", "dataset:unknown"], 2, "lee"),
        (["fit", "lda", "--corpus", "CORPUS", "--out", "RUN"], 2, "--overwrite"),
        (["topics", "EMPTY"], 3, "model.json"),
        (["topics", "RUN", "--words", "0"], 2, "must be an integer >= 1"),
        (["transform", "RUN", "--corpus", "CORPUS", "--out", "x.txt"], 2, ".csv"),
        (["transform", "RUN", "--corpus", "CORPUS", "--out", "EMPTY/a/b.npy"], 2, "--out must be"),
        (["export", "RUN", "--format", "csv", "--out", "EMPTY"], 2, "--out must be"),
        (["export", "RUN", "--format", "gensim", "--out", "."], 2, "--out must be"),
        (["fit", "MIXTURE", "--data", "POINTS", "--threads", "0"], 2, "--threads must be"),
        (["fit", "MIXTURE", "--data", "POINTS", "--passes", "-1"], 2, "--passes must be"),
        (["fit", "MIXTURE", "--data", "POINTS", "--set", "foo=1"], 2, "has the parameters"),
        (["fit", "MIXTURE", "--data", "POINTS", "--set", "mean_prior=[1]"], 2, "mean_prior must"),
        (["fit", "MIXTURE", "--data", "points.xlsx"], 2, "must end in one of .npy"),
        (["fit", "MIXTURE", "--data", "NAN"], 3, "nan.npy: feature 0 of X has no value"),
        (["fit", "MIXTURE", "--data", "SCALAR"], 3, "scalar.npy: X must be real numbers"),
        (["fit", "hmm", "--data", "TABLE", "--y", "b"], 2, "the model hmm takes no y"),
        (["fit", "hierarchical_probit", "--data", "POINTS"], 2, "needs y: a column"),
        (["fit", "MIXTURE", "--data", "POINTS", "--workers", "4"], 2, "--workers is for --engine"),
        (
            ["fit", "MIXTURE", "--data", "POINTS", "--master-batch", "2", "--engine", "serial"],
            2,
            "--master-batch is for --engine mpi or simulated, got serial",
        ),
        (["fit", "MIXTURE", "--data", "POINTS", "--set", "batch_size=0"], 2, "batch_size must"),
        (
            ["fit", "MIXTURE", "--data", "POINTS", "--engine", "simulated", "--strategy",
             "local_sgd", "--strategy-options", "tau=1"],
            2,
            "--strategy-options of 'local_sgd' may name ['post_local'], got 'tau'",
        ),
    ],
)
def test_exit_codes(argv, code, message, corpus, run_folder, tmp_path, capsys):
    places = {
        "CORPUS": corpus, "RUN": run_folder, "CUT": cut(corpus, tmp_path), "EMPTY": tmp_path,
        "EMPTY/a/b.npy": tmp_path / "a" / "b.npy", "MIXTURE": "gaussian_mixture",
        "TABLE": tmp_path / "table.csv",
    }  # fmt: skip
    places["TABLE"].write_text("a,b\n1,text\n")
    for name, array in (("points", np.eye(3)), ("nan", [[np.nan]]), ("scalar", 1.0)):
        places[name.upper()] = tmp_path / f"{name}.npy"
        np.save(places[name.upper()], array)
    argv = [str(places.get(word, word)) for word in argv]
    if argv[0] == "fit" and "--out" not in argv:
        argv += ["--out", str(tmp_path / "out")]
    assert main(argv) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "command", "message"),
    [
        (["fit", "svm"], "dpsvi fit", "invalid choice"),
        (["nothing"], "dpsvi", "invalid choice"),
        (["fit", "lda"], "dpsvi fit lda", "--corpus"),
        ([], "dpsvi", "COMMAND"),
        (["fit", "hmm", "--data", "x", "--set", "foo"], "dpsvi fit hmm", "must be NAME=VALUE"),
        (["fit", "hmm", "--data", "x", "--seed", "-1"], "dpsvi fit hmm", "4294967295, got '-1'"),
        (["fit", "hmm", "--data", "x", "--pases", "3"], "dpsvi fit hmm", "did you mean --passes?"),
        (["fit", "lda", "--corpsu=x"], "dpsvi fit lda", "required: --corpus; unrecognized"),
        (["fit", "lda", "--corpsu", "x"], "dpsvi fit lda", "--corpsu; did you mean --corpus?\n"),
        (["fit", "lda", "--topics", "3"], "dpsvi fit lda", "required: --corpus\n"),
        (["info", "run", "more"], "dpsvi info", "unrecognized arguments: more\n"),
        (["info", "run", "--nosuch"], "dpsvi info", "unrecognized arguments: --nosuch\n"),
    ],
)
def test_wrong_usage_is_2(argv, command, message, capsys):
    """It is said in two lines, not below a page of options."""
    with pytest.raises(SystemExit) as error:
        main(argv)
    assert error.value.code == 2
    said = capsys.readouterr().err
    assert message in said and said.startswith(f"{command}: ") and said.count("\n") == 2
    assert said.endswith(f"\n{command} --help lists what there is\n")


def test_a_group_is_asked_for_by_the_label_of_the_file(tmp_path, rng):
    """Labels that are numbers in the file are numbers in Python; text does not pass as one."""
    x, school = rng.normal(size=200), np.arange(200) % 4
    rows = zip(x, 3.0 * school + x, school, strict=True)
    table = "x,score,school\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows)
    (tmp_path / "pupils.csv").write_text(table)
    argv = ["fit", "hierarchical_regression", "--data", str(tmp_path / "pupils.csv"), "--quiet"]
    out = tmp_path / "run"
    assert main([*argv, "--y", "score", "--groups", "school", "--out", str(out)]) == 0
    model = load(out)
    assert model.groups_.tolist() == [0, 1, 2, 3]
    predicted = model.predict(np.zeros((4, 1)), groups=[0, 1, 2, 3])
    np.testing.assert_allclose(predicted, [0, 3, 6, 9], atol=0.2)
    with pytest.raises(ValueError, match="of the kind that fit got, as 0; got '0'"):
        model.predict(np.zeros((4, 1)), groups=["0", "1", "2", "3"])


@pytest.mark.fault
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 128 + signal.SIGUSR1)],
)
def test_a_signal_ends_the_fit_and_keeps_the_model(number, code, corpus, tmp_path):
    """With the exit code of that signal: a shell and Slurm see what happened."""
    out = tmp_path / "run"
    argv = ["fit", "lda", "--corpus", str(corpus), "--out", str(out), *FIT]
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsvi", *argv, "--passes", "100000000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until_training(out / "metrics.jsonl")
    os.kill(process.pid, number)
    _, stderr = process.communicate(timeout=240)
    assert process.returncode == code, stderr
    assert "interrupted" in stderr
    assert DPSVILDA.load(out).n_batch_iter_ > 0


def wait_until_training(metrics, seconds=240):
    """Training has begun when the first line of metrics is there."""
    end = time.monotonic() + seconds
    while not (metrics.exists() and metrics.stat().st_size):
        assert time.monotonic() < end, "the run did not start"
        time.sleep(0.05)


def test_help_is_quick():
    """It loads nothing that is slow to load."""
    script = (
        "import sys\nfrom dpsvi.__main__ import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "dpsvi.commands.fit" in loaded
    assert not {"numpy", "scipy", "numba", "sklearn"} & set(loaded)


def test_the_help_of_every_option_has_words():
    """A default in brackets says nothing of what it is the default of."""

    def without(parser):
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for below in action.choices.values():
                    yield from without(below)
            elif action.help != argparse.SUPPRESS:
                words = re.sub(r"\[.*\]", "", action.help or "")
                if len(re.findall("[A-Za-z]{2,}", words)) < 2:
                    yield parser.prog, action.dest, action.help

    assert not list(without(make_parser()))


def test_the_help_of_a_model_lists_its_parameters(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "gaussian_mixture", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "The model is DPSVIGaussianMixture of Python" in said
    for name, value in DPSVIGaussianMixture().get_params().items():
        option = "--" + CALLED.get(name, name).replace("_", "-")
        if name in NOT_JSON:
            assert f"{name}=" not in said
        elif f" {option} " not in said:
            assert f"{name}={value!r}" in said  # for --set
        elif name in CALLED:
            assert f"{option} is {name}" in said and f"{name}=" not in said


def test_others_log_warnings_alone():
    script = (
        "import argparse, logging\nfrom dpsvi.__main__ import _show_on_stderr\n"
        "_show_on_stderr('> ', argparse.Namespace())\n"
        "for name in ('numexpr.utils', 'dpsvi.commands'):\n"
        "    logging.getLogger(name).info('info')\n"
        "    logging.getLogger(name).warning('warning')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr == "> warning\n> info\n> warning\n"


# --- texts ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """One text a line, of two kinds that share no word but the first."""
    rng = np.random.default_rng(0)
    kinds = [["cat", "dog", "mouse", "bird"], ["engine", "wheel", "brake", "café"]]
    lines = [" ".join(["both", *rng.choice(kinds[i % 2], 12)]) for i in range(60)]
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_texts_in_words_out(texts, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["fit", "lda", "--corpus", str(texts), "--texts", "--topics", "2", "--passes", "30",
                 "--held-out", "0", "--quiet", "--out", str(out)]) == 0  # fmt: skip
    assert {"both", "café"} < set((out / "vocab.txt").read_text("utf-8").split())
    new = tmp_path / "new.txt"
    new.write_text("a dog and a bird\nwheel wheel unknown\n", encoding="utf-8")
    assert main(["transform", str(out), "--corpus", str(new), "--texts", "--out",
                 str(tmp_path / "theta.npy")]) == 0  # fmt: skip
    theta = np.load(tmp_path / "theta.npy")
    assert theta.shape == (2, 2) and theta[0].argmax() != theta[1].argmax()
    capsys.readouterr()
    assert main(["evaluate", str(out), "--corpus", str(texts), "--texts", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["perplexity"] < 9


def test_stop_words_are_left_out(texts, tmp_path, capsys):
    run, lines = tmp_path / "run", tmp_path / "lines.txt"
    lines.write_text("which cat\nwhose dog\n" * 20 + "which engine\n" * 2)
    stops = ["--stop-words", "english"]
    fit = ["fit", "lda", "--corpus", str(lines), "--texts", *FIT, "--out", str(run)]
    for more, words in (([], "cat dog engine which whose"), (stops, "cat dog engine")):
        assert main([*fit, *more, "--overwrite"]) == 0
        assert (run / "vocab.txt").read_text("utf-8").split() == words.split()
    fit += stops
    fit[fit.index("--texts") : fit.index("--texts") + 1] = []
    assert main([*fit, "--overwrite"]) == 2
    assert "--stop-words needs --texts" in capsys.readouterr().err


def test_restarts_without_checkpoints(tmp_path, caplog, capsys):
    """A checkpoint holds one fit, so there is none of several starts."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(50, 2)))
    fit = ["fit", "gaussian_mixture", "--data", str(tmp_path / "x.npy"), "--passes", "3",
           "--out", str(tmp_path / "run"), "--set", "n_components=2",
           "--set", "n_init=2"]  # fmt: skip
    assert main(fit) == 0
    assert "no checkpoints, as a checkpoint holds one fit" in caplog.text
    assert main([*fit, "--overwrite", "--checkpoint-seconds", "5"]) == 2
    assert "a checkpoint holds one fit" in capsys.readouterr().err


def test_a_table_of_texts(texts, tmp_path, capsys):
    """It gives what the same texts give as lines, a row for each, whatever is in the quotes."""
    fit = ["fit", "lda", "--corpus", str(texts), "--texts", *FIT, "--out", str(tmp_path / "run")]
    assert main(fit) == 0
    (tmp_path / "new.txt").write_text("cat dog bird\n\nwheel, brake café\n", encoding="utf-8")
    table = 'id,text\n1,"cat dog\nbird"\n2,""\n3,"wheel, brake ""café"""\n'
    (tmp_path / "new.csv").write_text(table, encoding="utf-8")
    found = []
    for name in ("new.txt", "new.csv"):
        out, given = tmp_path / f"{name}.npy", ["--corpus", str(tmp_path / name), "--texts"]
        assert main(["transform", str(tmp_path / "run"), *given, "--out", str(out)]) == 0
        capsys.readouterr()
        assert main(["evaluate", str(tmp_path / "run"), *given, "--json"]) == 0
        found.append((np.load(out), json.loads(capsys.readouterr().out)))
    assert found[0][0].shape == (3, 4) and np.array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_a_column_of_a_table(tmp_path, capsys):
    """A table that is given like a corpus, or without its column, says what is to be typed."""
    table, run = tmp_path / "reviews.csv", str(tmp_path / "run")
    table.write_text("stars,review\n" + "5,good dog\n1,bad cat\n" * 9)
    given = ["fit", "lda", "--corpus", str(table), *FIT, "--out", run]
    assert main(given) == 3
    assert "(--text-column NAME reads the texts of a table)" in capsys.readouterr().err
    assert main([*given, "--texts"]) == 3
    said = capsys.readouterr().err
    assert "reviews.csv:1: --text-column must be one of ['stars', 'review']" in said
    assert main([*given, "--text-column", "review"]) == 0
    assert "good" in (tmp_path / "run" / "vocab.txt").read_text().split()
    given = ["transform", run, "--corpus", str(table), "--text-column", "review"]
    assert main([*given, "--out", str(tmp_path / "theta.npy")]) == 0
    assert np.load(tmp_path / "theta.npy").shape == (18, 4)


def test_texts_that_are_not_said_to_be_some(texts, tmp_path, capsys):
    given = ["fit", "lda", "--corpus", str(texts), *FIT, "--out", str(tmp_path / "run")]
    assert main(given) == 3
    assert "texts.txt:1: expected the header" in (said := capsys.readouterr().err)
    assert "(--texts reads a file of texts)" in said
    for encoding in ("klingon", "hex"):
        with pytest.raises(SystemExit) as error:
            main([*given, "--texts", "--encoding", encoding])
        assert error.value.code == 2 and f"got '{encoding}'" in capsys.readouterr().err


def test_texts_in_another_encoding(texts, tmp_path, capsys):
    latin = tmp_path / "latin.txt"
    latin.write_bytes(texts.read_text("utf-8").encode("latin-1"))
    given = ["fit", "lda", "--corpus", str(latin), "--texts", *FIT, "--out", str(tmp_path / "run")]
    assert main(given) == 3
    assert "latin.txt:" in capsys.readouterr().err
    assert main([*given, "--encoding", "latin-1"]) == 0


def test_texts_for_a_model_that_was_fitted_without_words(corpus, tmp_path, capsys):
    plain = tmp_path / "docword.plain.txt"
    plain.write_text(corpus.read_text())
    run = str(tmp_path / "run")
    assert main(["fit", "lda", "--corpus", str(plain), *FIT, "--out", run]) == 0
    new = tmp_path / "new.txt"
    new.write_text("word1 word2\nword3 word4\n")
    given = ["transform", run, "--corpus", str(new), "--texts", "--out", str(tmp_path / "p.npy")]
    assert main(given) == 2
    assert "--vocab names them" in capsys.readouterr().err
    assert main([*given, "--vocab", str(corpus.with_name("vocab.small.txt"))]) == 0
    assert np.load(tmp_path / "p.npy").shape == (2, 4)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError("Unable to allocate 9 TiB"), "not enough memory: Unable to allocate 9 TiB"),
        (MemoryError(), "there is not enough memory\n"),
        (PermissionError(13, "Permission denied", "run"), "dpsvi fit: run: Permission denied\n"),
        (OSError("no name"), "dpsvi fit: no name\n"),
    ],
)
def test_failures_are_said_in_a_line(error, said, tmp_path, monkeypatch, capsys):
    from dpsvi.commands import fit

    def fail(args):
        raise error

    monkeypatch.setattr(fit, "run", fail)
    assert main(["fit", "lda", "--corpus", "any", "--out", str(tmp_path / "run")]) == 1
    assert said in capsys.readouterr().err


def test_a_corpus_that_is_not_there_is_bad_data(tmp_path, capsys):
    for texts in ([], ["--texts"]):
        path = str(tmp_path / "absent.txt")
        assert main(["fit", "lda", "--corpus", path, *texts, "--out", str(tmp_path / "run")]) == 3
        assert "absent.txt" in capsys.readouterr().err


# --- models that are fitted to arrays ------------------------------------------------------------


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    """A run folder of a regression, and its table: y is 3 x in one group, -3 x in the other."""
    folder = tmp_path_factory.mktemp("regression")
    rng = np.random.default_rng(0)
    x, group = rng.normal(size=400), rng.integers(2, size=400)
    y = np.where(group, -3, 3) * x + 0.1 * rng.normal(size=400)
    rows = [f"{a},{b},{'left' if g else 'right'}" for a, b, g in zip(x, y, group, strict=True)]
    (folder / "table.csv").write_text("\n".join(["x,target,place", *rows]) + "\n")
    out = folder / "run"
    assert main(["fit", "hierarchical_regression", "--data", str(folder / "table.csv"), "--y",
                 "target", "--groups", "place", "--passes", "30", "--quiet", "--out",
                 str(out)]) == 0  # fmt: skip
    return out, folder / "table.csv", (x[:, None], y, np.where(group, "left", "right"))


def test_predict_and_evaluate_a_regression(regression, tmp_path, capsys):
    run, table, (X, y, groups) = regression
    given = [str(run), "--data", str(table), "--y", "target", "--groups", "place"]
    assert main(["predict", *given, "--out", str(tmp_path / "found.csv")]) == 0
    text = (tmp_path / "found.csv").read_text().splitlines()
    assert text[0] == "predict" and len(text) == 401
    found = np.array([float(line) for line in text[1:]])
    assert np.mean((found - y) ** 2) < 0.05 * np.var(y)
    capsys.readouterr()
    assert main(["evaluate", *given, "--json"]) == 0
    score = json.loads(capsys.readouterr().out)["score"]
    assert score == pytest.approx(load(run).score(X, y, groups=groups), rel=1e-5)


def test_columns_are_those_of_the_fit_wherever_they_stand(regression, tmp_path, capsys):
    run, table, (X, y, groups) = regression
    rows = [f"{group},{target},7,{x[0]}" for x, target, group in zip(X, y, groups, strict=True)]
    moved, other = tmp_path / "moved.csv", tmp_path / "other.csv"
    moved.write_text("\n".join(["place,target,id,x", *rows]) + "\n")
    other.write_text("\n".join(["place,target,id,z", *rows]) + "\n")
    scores = []
    for path in (table, moved):
        given = [str(run), "--data", str(path), "--groups", "place"]
        assert main(["evaluate", *given, "--y", "target", "--json"]) == 0
        scores.append(json.loads(capsys.readouterr().out)["score"])
        assert main(["predict", *given, "--out", str(tmp_path / f"{path.stem}.npy")]) == 0
        capsys.readouterr()
    assert scores[0] == scores[1] > 0.9
    assert np.array_equal(np.load(tmp_path / "table.npy"), np.load(tmp_path / "moved.npy"))
    given = [str(run), "--data", str(other), "--groups", "place"]
    assert main(["predict", *given, "--out", str(tmp_path / "no.npy")]) == 3
    assert "other.csv:1: has no column 'x', which the model knows" in capsys.readouterr().err


def test_a_row_may_lack_a_number(tmp_path, capsys):
    """The only one that is asked about, too; a column without any is refused where it is fitted."""
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 30, axis=0)
    X += np.random.default_rng(0).normal(size=X.shape)
    rows = [f"{a},{b}" for a, b in X]
    for name, some in (("all", rows), ("one", ["8.5,"]), ("none", ["1,", "2,"])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b", *some]) + "\n")
    given = ["fit", "gaussian_mixture", "--set", "n_components=2", "--quiet", "--out"]
    run, out = str(tmp_path / "run"), str(tmp_path / "found.csv")
    assert main([*given, run, "--data", str(tmp_path / "all.csv")]) == 0
    assert main(["predict", run, "--data", str(tmp_path / "one.csv"), "--out", out]) == 0
    asked = load(run).predict(np.array([[8.5, 9.0]]))
    assert (tmp_path / "found.csv").read_text().split() == ["predict", str(asked[0])]
    capsys.readouterr()
    assert main([*given, str(tmp_path / "no"), "--data", str(tmp_path / "none.csv")]) == 3
    assert "none.csv: feature 1 of X has no value" in capsys.readouterr().err


def test_groups_are_text_where_those_of_the_fit_were(tmp_path, capsys):
    rng = np.random.default_rng(0)
    places, x = np.repeat(["02139", "10001", "90210"], 100), rng.normal(size=300)
    y = np.repeat([5, -5, 0], 100) * x + 0.1 * rng.normal(size=300)
    rows = [f"{a},{b},{place}" for a, b, place in zip(x, y, places, strict=True)]
    for name, some in (("all", rows), ("some", rows[100:])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["x,y,zip", *some]) + "\n")
    roles, run = ["--y", "y", "--groups", "zip"], str(tmp_path / "run")
    given = ["--data", str(tmp_path / "all.csv"), *roles]
    assert main(["fit", "hierarchical_regression", *given, "--quiet", "--out", run]) == 0
    for name in ("all", "some"):
        out = ["--out", str(tmp_path / f"{name}.npy")]
        assert main(["predict", run, "--data", str(tmp_path / f"{name}.csv"), *roles, *out]) == 0
    found = [np.load(tmp_path / f"{name}.npy") for name in ("all", "some")]
    assert np.array_equal(found[0][100:], found[1])


def test_probabilities_of_a_mixture(tmp_path, capsys):
    X = np.concatenate([np.full((60, 2), -5.0), np.full((60, 2), 5.0)])
    X += np.random.default_rng(0).normal(size=X.shape)
    np.save(tmp_path / "X.npy", X)
    given = ["--data", str(tmp_path / "X.npy"), "--out"]
    assert main(["fit", "gaussian_mixture", *given, str(tmp_path / "run"), "--set",
                 "n_components=2", "--quiet"]) == 0  # fmt: skip
    out = tmp_path / "p.npy"
    run = str(tmp_path / "run")
    assert main(["predict", run, *given, str(out), "--method", "predict_proba"]) == 0
    found = np.load(out)
    assert found.shape == (120, 2) and len(set(found[:60].argmax(axis=1))) == 1
    capsys.readouterr()
    with pytest.raises(SystemExit, match="2"):  # `dpsvi transform` is the one way to that
        main(["predict", run, *given, str(out), "--method", "transform"])
    assert main(["transform", run, *given, str(out)]) == 2
    reason = "no transform; it has `dpsvi predict` with predict, predict_proba, score_samples"
    assert reason in capsys.readouterr().err
    assert main(["topics", run]) == 2
    assert "'gaussian_mixture' model, for which there are predict" in capsys.readouterr().err
    assert main(["predict", run, "--data", str(tmp_path / "no.npy"), "--out", str(out)]) == 3
    assert main(["predict", run, *given, str(tmp_path / "p.txt")]) == 2
    assert main(["evaluate", run, "--corpus", str(tmp_path / "X.npy")]) == 2
    assert "'gaussian_mixture' model, whose data are given by --data" in capsys.readouterr().err
    assert main(["transform", run, "--corpus", str(tmp_path / "X.npy"), "--out", str(out)]) == 2
    assert "whose data are given by --data" in capsys.readouterr().err


def test_transform_of_a_factorisation(tmp_path):
    X = np.random.default_rng(0).poisson(1.0, size=(20, 8)).astype(float)
    np.save(tmp_path / "X.npy", X)
    run, out = str(tmp_path / "run"), tmp_path / "u.npy"
    given = ["--data", str(tmp_path / "X.npy"), "--out"]
    assert main(["fit", "poisson_factorization", *given, run, "--passes", "2", "--quiet"]) == 0
    assert main(["transform", run, *given, str(out)]) == 0
    np.testing.assert_allclose(np.load(out), load(run).transform(X), rtol=1e-5)


def test_a_topic_model_predicts_nothing(run_folder, tmp_path, capsys):
    np.save(tmp_path / "X.npy", np.eye(3))
    given = [str(run_folder), "--data", str(tmp_path / "X.npy")]
    assert main(["predict", *given, "--out", str(tmp_path / "p.npy")]) == 2
    assert "this command is for dp_mixture, gaussian_mixture" in capsys.readouterr().err
    assert main(["evaluate", *given]) == 2
