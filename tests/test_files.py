"""Files that appear whole or not at all, and what they must not take the place of."""

import os

import pytest

from imm.files import remove_leftovers, whole_folder, write_whole


def test_what_a_link_points_to_is_replaced_and_not_the_link(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "new"


def test_a_folder_behind_a_link_is_replaced_and_not_the_link(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with whole_folder(tmp_path / "link", "mark") as new:
        (new / "mark").write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "mark").read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="pipe is a pipe or a device, which no file can take the place of"):
        write_whole(tmp_path / "pipe", "new")
    assert (tmp_path / "pipe").is_fifo()


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(tmp_path):
    (tmp_path / ".file.abc.unfinished").mkdir()
    (tmp_path / ".other.abc.unfinished").mkdir()
    remove_leftovers(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == [".other.abc.unfinished"]
