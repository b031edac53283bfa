"""The file that scripts wait for."""

from pathlib import Path

from hilsim.daemon.ready_file import ReadyFile


def test_the_file_is_not_there_for_a_moment_before_packets_flow(tmp_path, monkeypatch):
    path, made = tmp_path / "ready.json", []
    path.write_text("of an earlier daemon")
    for name in ("replace", "touch", "write_text"):
        honest = getattr(Path, name)
        monkeypatch.setattr(Path, name, lambda self, *words, honest=honest, **keys: made.append((self, *words)) or honest(self, *words, **keys))
    with ReadyFile(path=path).kept():
        assert made
        assert not [call for call in made if path in call]
        assert list(tmp_path.iterdir()) == []
