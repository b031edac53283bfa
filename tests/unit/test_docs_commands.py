"""Every ``hilsim …`` and ``make …`` line of a page says commands, options and targets that exist. Nothing is run."""

import re
import shlex

import click
import pytest

from hilsim.cli import SUMMARIES, cli
from tests.pages import PAGES, ROOT

_FENCE = re.compile(r"^ *```(\w*)$")
_CODE_SPAN = re.compile(r"(?<!`)`(hilsim -?[^`]+|make [a-z][^`]*)`(?!`)")
_PLACEHOLDER = re.compile(r"^(…|\.\.\.|COMMAND)$")
_TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
_ASSIGNMENT = re.compile(r"^\w+=")


def _commands(line):
    """The simple commands of a shell line, each as its words: split at pipes, semicolons, ands and command substitutions; comments are left out."""
    lexer = shlex.shlex(line.replace("$(", " ; "), posix=True, punctuation_chars="|;&()<>")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        words = list(lexer)
    except ValueError:  # an apostrophe in what a program prints
        return
    command = []
    for word in [*words, ";"]:
        if word and set(word) <= set("|;&()"):
            yield command
            command = []
        else:
            command.append(word)


def _shell_lines(text):
    """Number and text of each line of a page's shell blocks, and of each code span outside blocks that begins with a program of ours."""
    language = None  # of the block that the line is in
    for number, line in enumerate(text.split("\n"), 1):
        if fence := _FENCE.match(line):
            language = fence[1] if language is None else None
        elif language == "sh":
            yield number, line.strip()
        elif language is None:
            yield from ((number, span[1].replace("\\|", "or")) for span in _CODE_SPAN.finditer(line))


def _mentions():
    """Page, line, program and its words, of each program of ours."""
    for page in PAGES:
        for number, line in _shell_lines(page.read_text(encoding="utf-8")):
            for words in _commands(line):
                yield from ((page.name, number, *ours) for ours in _ours(words))


def _ours(words):
    """``hilsim`` or ``make`` where a command is, and ``hilsim COMMAND`` behind another program's words (``podman run …``)."""
    while words and _ASSIGNMENT.match(words[0]):
        words = words[1:]
    for place, word in enumerate(words):
        name = word.rsplit("/", 1)[-1]
        if name in {"hilsim", "make"} and (place == 0 or (name == "hilsim" and words[place + 1 : place + 2] and words[place + 1] in SUMMARIES)):
            yield name, words[place + 1 :]
            return


MENTIONS = list(_mentions())


def _fault(words):
    """What click says against the words behind ``hilsim``, or None."""
    words = [word for word in words if not _PLACEHOLDER.match(word)]
    if not words or words[0].startswith("-"):
        command = cli
    elif words[0] in SUMMARIES:
        command, words = cli.get_command(None, words[0]), words[1:]
    else:
        return f"no command {words[0]}"
    context = click.Context(command, help_option_names=["-h", "--help"])
    known = {option for parameter in command.get_params(context) for option in parameter.opts + parameter.secondary_opts}
    if words and words[-1] in known and words[-1].startswith("-"):
        words = [*words, "1"]  # prose that names an option leaves its value out
    try:
        values, left, _ = command.make_parser(context).parse_args(list(words))
        _check_choices(command, context, values)
    except click.ClickException as error:
        return error.format_message()
    return f"unexpected {left}" if left and left != ["1"] else None


def _check_choices(command, context, values):
    for parameter in command.get_params(context):
        given = values.get(parameter.name)
        if isinstance(parameter.type, click.Choice) and isinstance(given, str) and given != "1":
            parameter.type.convert(given, parameter, context)


def test_every_hilsim_line_of_a_page_names_a_command_and_options_that_exist():
    said = [(page, line, words) for page, line, name, words in MENTIONS if name == "hilsim"]
    assert len(said) > 120
    assert [(page, line, fault) for page, line, words in said if (fault := _fault(words))] == []


def test_every_make_line_of_a_page_names_a_target_that_exists():
    said = [(page, line, word) for page, line, name, words in MENTIONS if name == "make" for word in words if "=" not in word]
    assert len(said) > 15
    assert [(page, line, word) for page, line, word in said if word not in _TARGETS] == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("rnu demo", "no command rnu"),
        ("run demo --too 1.2.3.4", "--too"),
        ("warm demo -o x", "-o"),
        ("verify a b c", "unexpected"),
        ("record demo -o x --stamps ms", "'ms' is not one of"),
    ],
)
def test_a_line_that_click_would_refuse_is_a_fault(line, fault):
    assert fault in _fault(line.split())
