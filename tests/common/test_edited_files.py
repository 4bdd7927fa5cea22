"""Files of every model that were damaged, or edited and given a right checksum, are refused."""

import json

import members
import pytest
from members import every_member

import dpsvi
from dpsvi.errors import ModelFormatError
from dpsvi.files import io


class Saved:
    """A small model of a member in a folder: what its files hold, and how they are edited."""

    def __init__(self, member, rng, folder):
        member.estimator(max_iter=1).fit(**member.data(rng, 40)).save(folder)
        self.folder, self.path = folder, folder / "model.json"
        self.meta = json.loads(self.path.read_text())
        self.arrays, _ = io.load_model(folder)

    def refused(self, match=None, arrays=None, **entries):
        """Loading fails when arrays, or entries of the JSON file, are these."""
        if arrays:
            described = {
                k: v for k, v in self.meta.items()
                if k not in ("schema", "sha256", "arrays", "json_sha256")
            }
            io.save_model(
                self.folder, arrays={**self.arrays, **arrays}, meta=described,
                kind=self.meta["kind"],
            )  # fmt: skip
        else:
            self.path.write_text(io.meta_text({**self.meta, **entries}))
        with pytest.raises(ModelFormatError, match=match) as error:
            dpsvi.load(self.folder)
        assert str(self.folder) in str(error.value)

    def extra_refused(self, entry, values):
        """The same of an entry of ``extra``, which the error names."""
        for value in values:
            self.refused(entry, extra={**self.meta["extra"], entry: value})


@pytest.fixture
def saved(name, rng, tmp_path):
    return Saved(members.get(name), rng, tmp_path)


@every_member
def test_damaged_files(saved):
    for entries in (
        {"kind": "unknown"}, {"params": {"colour": 1}}, {"sha256": "0"}, {"step": None},
        {"n_features": "x"}, {"items": -1}, {"dtype": "text"}, {"feature_names": [1]}, {"eta": []},
        {"eta": -1.0}, {"alpha": []}, {"alpha": -1e30}, {"extra": {}},
    ):  # fmt: skip
        if not entries.keys() <= saved.meta.keys():
            continue
        if entries == {"extra": saved.meta.get("extra")}:
            continue  # a model without any
        saved.refused(**entries)
    arrays = saved.arrays
    broken = [{name: arrays[name][:0]} for name in ("lambda", "hyper") if name in arrays]
    if "hyper" not in arrays:  # of topics, which are Dirichlet distributions
        broken += [{"lambda": -1e30 * arrays["lambda"]}]
    if "doc_topic_prior" in arrays:
        broken += [{"doc_topic_prior": -arrays["doc_topic_prior"]}]
    for other in broken:
        saved.refused(arrays=other)


@every_member
def test_what_a_file_says_of_its_data_must_fit_its_parameters(saved, name):
    if "n_features" in saved.meta:
        for change in (-1, 1):
            saved.refused("n_features", n_features=saved.meta["n_features"] + change)
    if "lower_bound" in saved.meta:
        for value in (None, "x", True, [], float("nan")):
            saved.refused("lower_bound", lower_bound=value)
    extra = saved.meta.get("extra", {})
    if "_y_mean" in extra:
        saved.extra_refused("_y_mean", [None, "x", float("inf")])
    if labels := extra.get("_labels"):
        several = [labels[:-1], labels[:1] * len(labels), [[one] for one in labels]]
        saved.extra_refused("_labels", [None, [], "x", 3, *several])
    if "_classes" in extra:
        saved.extra_refused("_classes", [None, [], "x", -1, 1e300, {}, [1.0], [1.0, 1.0]])
    if "word_counts" in saved.arrays:
        saved.refused("word_counts", arrays={"word_counts": saved.arrays["word_counts"][:-1]})
    for array, place, number in members.get(name).wrong_numbers:
        other = saved.arrays[array].copy()
        other.flat[place] = number
        saved.refused(arrays={array: other})
