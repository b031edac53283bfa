"""TOML within limits: what would take its reader too deep or too long is refused by name."""

import pytest

from hilsim.config.profiles import find_profile
from hilsim.config.rig import load_rig
from hilsim.config.toml_file import read_toml, toml_value
from hilsim.errors import ConfigError


def read(folder, text):
    path = folder / "rig.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_toml(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 5000 + "]" * 5000, "nesting must be at most 32 levels, got more at line 1"),
        ("\n\na = " + "{a = " * 5000 + "1" + "}" * 5000, "nesting must be at most 32 levels, got more at line 3"),
        (".".join("a" * 5000) + " = 1", "parts of a dotted key must be at most 32 levels, got 4,999 levels"),
        ('"a"' + ' . "a"' * 5000 + " = 1", "parts of a dotted key must be at most 32 levels, got 5,000 levels"),
        ("[" + ".".join("a" * 5000) + "]", "parts of a dotted key must be at most 32 levels"),
        (
            "a.a.a.a.a.a.a.a.a.a.a.a.a = {b.b.b.b.b.b.b.b.b.b.b.b = {c.c.c.c.c.c.c.c.c.c.c.c = 1}}",
            r"a\.a\.a …: nesting must be at most 32 levels, got more",
        ),
        ("seed = " + "1" * 5000, "line 1: digits of a number must be at most 64, got 5,000"),
        ("x = 1\nseed = 0x" + "f" * 5000, "seed: a whole number must be -2.63 to 2.63 - 1, got one beyond"),
        ("seed = 9223372036854775808", "seed: a whole number must be -2.63 to 2.63 - 1"),
        ('[[replay]]\nfile = "a\\u0000.pcap"', r"replay\[0\]\.file: a text must not hold a zero character, got 'a\\x00\.pcap'"),
        ('name = "' + "a" * 5000 + '"', "name: length of a text must be at most 4,096 characters, got 5,000 characters"),
        ("a = [" + "1," * 10_001 + "]", "a: length of a list must be at most 10,000, got 10,001"),
        ("# " + "a" * (1 << 20), "size of the file must be at most 1,048,576 bytes, got more"),
        (b"a = '\xff'", "cannot be read: 'utf-8' codec"),
        (b"\xef\xbb\xbfname = 'a'", 'must be UTF-8 without a byte order mark, got one at line 1 .in Notepad save as "UTF-8"'),
    ],
    ids=[
        "arrays",
        "inline",
        "dotted",
        "quoted",
        "header",
        "mixed",
        "digits",
        "hexadecimal",
        "65 bit",
        "zero",
        "text",
        "list",
        "file",
        "bytes",
        "mark",
    ],
)
def test_values_beyond_a_limit_are_named(tmp_path, text, message):
    with pytest.raises(ConfigError, match=r"rig\.toml: " + message):
        read(tmp_path, text)


def test_brackets_dots_and_digits_in_texts_and_comments_count_for_nothing(tmp_path):
    many = "[" * 100 + "a." * 100 + "1" * 100
    text = f'# {many}\na = "{many} \\" {many}"\nb = \'{many}\'\nc = """\n{many}" ""\n{many}"""\nd = \'\'\'\n{many}\'\'\'\n'
    assert read(tmp_path, text)["b"] == many


@pytest.mark.parametrize("text", ['a = "' + '\\"' * 200_000, "a = '''" + "'" * 200_000, 'a = """' + '""x' * 200_000, "[" + '"' * 200_000])
def test_a_text_without_an_end_is_refused_at_once(tmp_path, text):
    with pytest.raises(ConfigError, match=r"rig\.toml: "):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("2026-11-27T15:52:52Z", "2026-11-27T15:52:52Z"),
        ("2026-11-27 15:52:52.5Z", "2026-11-27T15:52:52.500000Z"),
        ("2026-11-27T15:52:52+01:00", "2026-11-27T15:52:52+01:00"),
        ("2026-11-27T15:52:52", "2026-11-27T15:52:52"),
        ("2026-11-27", "2026-11-27"),
        ("15:52:52", "15:52:52"),
    ],
)
def test_dates_and_times_are_texts_in_a_file_and_as_a_value(tmp_path, typed, text):
    assert read(tmp_path, f"a = [{{b = {typed}}}]") == {"a": [{"b": text}]}
    assert toml_value(typed, "--set") == text


def test_windows_line_ends_are_read(tmp_path):
    assert read(tmp_path, b"a = 1\r\nb = 2\r\n") == {"a": 1, "b": 2}


@pytest.mark.parametrize("name", ["a" * 5000, "a" * 300 + ".toml", "a/" * 3000 + "b.toml", "a\0b"])
def test_a_profile_of_a_name_that_no_file_can_have_is_not_found(tmp_path, name):
    with pytest.raises(ConfigError, match=r"no such profile|profile must be a path"):
        find_profile("sensors", name, tmp_path)


def test_of_faults_without_end_the_first_hundred_are_named(tmp_path):
    (tmp_path / "rig.toml").write_text("".join(f"wrong_{number} = 1\n" for number in range(5000)))
    with pytest.raises(ConfigError) as caught:
        load_rig(tmp_path / "rig.toml")
    lines = str(caught.value).split("\n")
    assert len(lines) == 101
    assert lines[-1].endswith("more faults than 100 were found: fix these first")


def test_more_sensors_than_a_rig_may_have_are_refused_in_one_sentence(tmp_path):
    (tmp_path / "rig.toml").write_text("name = 'a'\n" + "".join(f'[[sensor]]\nname = "s{number}"\n' for number in range(65)))
    with pytest.raises(ConfigError, match="sensors and replays must be at most 64, got 65"):
        load_rig(tmp_path / "rig.toml")


def test_a_directory_is_no_rig(tmp_path):
    with pytest.raises(ConfigError, match="must be a TOML file, got a directory"):
        read_toml(tmp_path)
