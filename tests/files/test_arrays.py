"""Files of arrays: what they hold comes back, what they must not hold is refused."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from dpsvi.errors import DataFormatError
from dpsvi.files.arrays import read_data


@pytest.fixture
def X(rng):
    return rng.normal(size=(7, 3))


def test_npy_is_mapped(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    found = read_data(tmp_path / "x.npy")
    assert list(found) == ["X"] and isinstance(found["X"], np.memmap)
    assert np.array_equal(found["X"], X)


def test_npz_of_arrays(X, tmp_path):
    y, groups = X[:, 0], np.array(list("aabbccc"))
    np.savez(tmp_path / "x.npz", X=X, y=y, groups=groups, lengths=[3, 4])
    found = read_data(tmp_path / "x.npz")
    assert set(found) == {"X", "y", "groups", "lengths"}
    assert np.array_equal(found["groups"], groups) and found["lengths"].tolist() == [3, 4]


@pytest.mark.parametrize("name", ["x.npz", "x.mtx", "x.mtx.gz"])
def test_sparse(name, tmp_path):
    matrix = scipy.sparse.random(9, 5, 0.3, "csr", random_state=0)
    if name == "x.npz":
        scipy.sparse.save_npz(tmp_path / name, matrix)
    else:
        opened = gzip.open if name.endswith(".gz") else open
        with opened(tmp_path / name, "wb") as file:
            scipy.io.mmwrite(file, matrix)
    found = read_data(tmp_path / name)["X"]
    assert found.format == "csr" and np.allclose(found.toarray(), matrix.toarray())


def test_dense_matrix_market(X, tmp_path):
    scipy.io.mmwrite(tmp_path / "x.mtx", X)
    assert np.allclose(read_data(tmp_path / "x.mtx")["X"], X)


def test_columns_that_are_features_are_named(tmp_path, caplog):
    """So that whoever forgot that a file has ids sees it."""
    (tmp_path / "x.csv").write_text("id,a,t,b\n1,2,3,4\n")
    with caplog.at_level("INFO", "dpsvi"):
        read_data(tmp_path / "x.csv", y="t")
    assert caplog.messages == ["x.csv: features are the columns 'id', 'a', 'b'"]


def test_cells_without_a_number_are_missing_values(tmp_path, caplog):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n,3\nNA,nan\n4,5\n")
    with caplog.at_level("INFO", "dpsvi"):
        X = read_data(tmp_path / "x.csv")["X"]
    assert np.array_equal(X, [[1, 2], [np.nan, 3], [np.nan] * 2, [4, 5]], equal_nan=True)
    assert caplog.messages[-1] == "x.csv:3: a number is missing, the first of 3"


def test_columns_are_found_by_name(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    found = read_data(tmp_path / "x.csv", features=["c", "a"])
    assert found["X"].tolist() == [[3, 1], [6, 4]] and found["features"] == ["c", "a"]


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_csv_columns_have_roles(name, tmp_path):
    text = 'a,who,"b, c",t\n1,u,2,0.5\n3,u,4,1\n5,"v w",6,0\n'
    opened = gzip.open if name.endswith(".gz") else open
    with opened(tmp_path / name, "wt") as file:
        file.write(text)
    found = read_data(tmp_path / name, y="t", groups="who")
    assert found["X"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert found["y"].tolist() == [0.5, 1, 0] and found["groups"].tolist() == ["u", "u", "v w"]
    found = read_data(tmp_path / name, sequence="who", y="t")
    assert found["lengths"].tolist() == [2, 1] and "groups" not in found


def test_targets_may_be_labels(tmp_path):
    (tmp_path / "x.csv").write_text("a,t\n1,yes\n2,no\n")
    assert read_data(tmp_path / "x.csv", y="t")["y"].tolist() == ["yes", "no"]


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["3", "-1"], [3, -1]),
        (["1.5", "2.0"], [1.5, 2.0]),
        (["07", "7"], ["07", "7"]),
        (["1", "b"], ["1", "b"]),
        (["1" * 30, "2"], ["1" * 30, "2"]),
    ],
)
def test_groups_are_numbers_where_these_say_the_same(texts, labels, tmp_path):
    (tmp_path / "x.csv").write_text("a,g\n" + "".join(f"0,{text}\n" for text in texts))
    assert read_data(tmp_path / "x.csv", groups="g")["groups"].tolist() == labels


def test_csv_of_a_spreadsheet(tmp_path):
    """A byte order mark, lines that end as in Windows, an empty line, a line within quotes."""
    text = 'a,t\r\n1,2\r\n\r\n3,"4"\r\n'
    (tmp_path / "x.csv").write_bytes(text.encode("utf-8-sig"))
    found = read_data(tmp_path / "x.csv", y="a")
    assert found["X"].tolist() == [[2], [4]] and found["y"].tolist() == [1, 3]


def test_one_row_and_one_column(tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    assert read_data(tmp_path / "x.csv")["X"].tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("x.csv", b"a,b\n1,2\n\n3,x\n", {}, "x.csv:4: column 'b' must be a number, got 'x'"),
        ("x.csv", b"a,b\n1," + b"long " * 50, {}, r"must be a number, got '[a-z ]{37}\.\.\.'$"),
        ("x.csv", b"a,g\n1,2\n3, \n", {"groups": "g"}, "x.csv:3: column 'g', of groups, is empty"),
        ("x.csv", b"a,b\n1,2\n", {"features": ["b", "c"]}, "x.csv:1: has no column 'c', which the"),
        ("x.csv", b"a,b\n1,2\n3\n", {}, "x.csv:3: 1 fields, line 1 has 2 names"),
        ("x.csv", b"a,b\n1,5,2,5\n", {}, "x.csv:2: 4 fields, line 1 has 2 names"),
        ("x.csv", b"1.5,-2\n1,2\n", {}, "x.csv:1: the first line must name the columns"),
        ("x.csv", b"a,b\n", {}, "x.csv:1: there is no row"),
        ("x.csv", b"", {}, "x.csv:1: no column is left"),
        ("x.csv", b"a,b\n1,\xff\n", {}, "x.csv: 'utf-8' codec"),
        ("x.csv.gz", b"\x1f\x8b\x08 cut", {}, "x.csv.gz: "),
        ("x.csv", b"a,b\n1,2\n", {"y": "c"}, "has no column 'c' for y"),
        ("x.csv", b"a,a\n1,2\n", {"y": "a"}, "has 2 columns 'a' for y"),
        ("x.csv", b"a,b,a\n1,2,3\n", {}, "x.csv:1: has 2 columns 'a': each must have a name of"),
        ("x.csv", b"a,b,a\n1,2,3\n", {"features": ["b", "a"]}, "x.csv:1: has 2 columns 'a', which"),
        ("x.csv", b"a\n1\n", {"y": "a"}, "no column is left for X"),
        ("x.npy", b"\x93NUMPY\x01\x00", {}, "x.npy: "),
        ("x.npy", b"no array", {}, "x.npy: the magic string is not correct"),
        ("x.npz", b"no archive", {}, "x.npz: is no .npz archive"),
        ("x.mtx", b"%%MatrixMarket matrix array complex general\n1 1\n1 1\n", {}, "real numbers"),
        ("x.npz", b"PK\x03\x04 cut", {}, "x.npz: "),
        ("x.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 9\n1 1 1\n", {}, "x.mtx: "),
    ],
)
def test_damage_is_named(name, content, options, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataFormatError, match=message):
        read_data(tmp_path / name, **options)


def test_nothing_is_unpickled(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "x.npz", X=np.array([{}], dtype=object))
    np.savez(tmp_path / "y.npz", X=np.ones(3), colour=np.ones(3))
    for name in ("x.npy", "x.npz", "y.npz"):
        with pytest.raises(DataFormatError, match=name) as error:
            read_data(tmp_path / name)
        assert "allow_pickle" not in str(error.value)


@pytest.mark.parametrize("X", [np.float64(1), np.ones(3), np.ones((2, 2, 2)), np.array([["a"]])])
def test_X_is_a_table_of_numbers(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", X=X)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(DataFormatError, match=f"{name}: X must be real numbers in two dim"):
            read_data(tmp_path / name)


def test_wrong_use(tmp_path, X):
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match=r"must end in one of \.npy"):
        read_data(tmp_path / "x.xlsx")
    with pytest.raises(FileNotFoundError, match="absent.npy"):
        read_data(tmp_path / "absent.npy")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="folder.csv"):
        read_data(tmp_path / "folder.csv")
    with pytest.raises(ValueError, match=r"columns are named of \.csv files only"):
        read_data(tmp_path / "x.npy", y="t")
