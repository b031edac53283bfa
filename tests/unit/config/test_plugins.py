"""What other distributions bring is found by its name, when hilsim itself has none of that name; what cannot be used is named with whose it is."""

import pickle
from importlib import metadata

import pytest

from hilsim.config.changes import Changes
from hilsim.config.places import profiles_directory
from hilsim.config.profiles import find_profile
from hilsim.config.rig import load_rig
from hilsim.daemon.precompile import kernel_needs
from hilsim.emulator.families.registry import family_of
from hilsim.errors import ConfigError
from tests.plugins import distribution, install_example
from tests.support import ROOM, write_rig
from tools.configuration_reference import configuration_reference

DEPARTURES = '[[sink]]\nkind = "departures"\nfile = "sent.csv"\n'
SPINNER = ROOM.replace('name = "lidar"', 'name = "lidar"\nprofile = "spinner16"')


@pytest.fixture
def example(plugin_site):
    """The example, installed."""
    return install_example(plugin_site)


@pytest.fixture
def stranger(plugin_site):
    """Installs a distribution of one module and one entry point."""

    def install(source, point, name="stranger", group="hilsim.sinks", kind="foreign"):
        (plugin_site / "stranger.py").write_text(source)
        distribution(plugin_site, name, entry_points={group: {kind: point}})

    return install


def faults_of(path, changes=None):
    with pytest.raises(ConfigError) as caught:
        load_rig(path, changes)
    return [line.removeprefix(f"{path}: ") for line in str(caught.value).split("\n")]


# -- sinks ---------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("example")
def test_a_sinks_table_becomes_the_settings_of_its_kind(tmp_path):
    (sink,) = load_rig(write_rig(tmp_path, ROOM + DEPARTURES)).sinks
    assert (sink.name, sink.kind, type(sink.settings).__name__, sink.settings.file, sink.settings.flow) == (
        "departures",
        "departures",
        "DeparturesSettings",
        "sent.csv",
        "",
    )


@pytest.mark.usefixtures("example")
def test_two_sinks_of_one_kind_need_names(tmp_path):
    assert faults_of(write_rig(tmp_path, ROOM + 2 * DEPARTURES)) == [
        "sink: names must differ, and record is that of [record], got departures more than once: give each sink a name"
    ]
    named = DEPARTURES + DEPARTURES.replace("[[sink]]", '[[sink]]\nname = "others"')
    assert [sink.name for sink in load_rig(write_rig(tmp_path, ROOM + named)).sinks] == ["departures", "others"]


@pytest.mark.usefixtures("example")
def test_the_name_of_the_recording_is_taken(tmp_path):
    (fault,) = faults_of(write_rig(tmp_path, ROOM + DEPARTURES + 'name = "record"\n'))
    assert fault.startswith("sink: names must differ, and record is that of [record], got record more than once")


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ('kind = "departure"', 'sink[0].kind must be one of the installed sinks (departures), got "departure"; did you mean "departures"?'),
        ('file = "sent.csv"', "sink[0].kind must be given"),
        ("kind = 7", "sink[0].kind must be a text, got 7"),
        ('kind = "departures"', "sink[0].file must be given"),
        ('kind = "departures"\nfile = "here/"', 'sink[0].file must name a file, got "here/"'),
        ('kind = "departures"\nfile = 1', "sink[0].file must be string, got 1"),
        ('kind = "departures"\nfile = "a"\nflows = ""', 'sink[0].flows: unknown key (did you mean "flow"?)'),
        ('kind = "departures"\nfile = "a"\nname = "a b"', 'sink[0].name must be letters, digits, "-" and "_", got "a b"'),
    ],
)
def test_each_fault_of_a_sinks_table_names_its_key(tmp_path, table, fault):
    assert faults_of(write_rig(tmp_path, f"{ROOM}[[sink]]\n{table}\n")) == [fault]


@pytest.mark.usefixtures("example")
def test_faults_of_sinks_are_named_with_all_others(tmp_path):
    text = ROOM.replace('name = "lidar"', 'name = "lidar"\nprofile = "vlp17"') + '[[sink]]\nkind = "departures"\n'
    first, second = faults_of(write_rig(tmp_path, text))
    assert first.startswith("sensor[0].profile must be")
    assert second == "sink[0].file must be given"


@pytest.mark.usefixtures("example")
def test_a_fault_that_an_option_made_names_the_option(tmp_path):
    changes = Changes(settings=('sink[0].file=""',))
    assert faults_of(write_rig(tmp_path, ROOM + DEPARTURES), changes) == ['sink[0].file must name a file, got "" (--set sink[0].file="")']


def test_one_table_in_place_of_a_list_is_reported_with_how_to_write_it(tmp_path):
    (fault,) = faults_of(write_rig(tmp_path, ROOM.replace("[[sensor]]", '[sink]\nkind = "departures"\n[[sensor]]')))
    assert fault.startswith("sink must be a list of tables, got one table: write [[sink]]")


def test_a_sink_where_none_is_installed_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(metadata, "entry_points", lambda **_: metadata.EntryPoints())
    assert faults_of(write_rig(tmp_path, ROOM + DEPARTURES)) == ['sink[0].kind must be an installed sink (none is), got "departures"']


@pytest.mark.parametrize(
    ("source", "point", "reason"),
    [
        ("import nothing_of_that_name", "stranger:SINK", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("", "stranger:SINK", "AttributeError: module 'stranger' has no attribute 'SINK'"),
        ("def", "stranger:SINK", "SyntaxError: invalid syntax (stranger.py, line 1)"),
        ("raise SystemExit(3)", "stranger:SINK", "SystemExit: 3"),
        ("", "stranger.inner:SINK", "ModuleNotFoundError: No module named 'stranger.inner'; 'stranger' is not a package"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_named_with_its_distribution(stranger, tmp_path, source, point, reason):
    stranger(source, point, name="company-sinks")
    assert faults_of(write_rig(tmp_path, ROOM + '[[sink]]\nkind = "foreign"\n')) == [
        f'sink[0].kind "foreign": company-sinks 1.0 (hilsim.sinks: foreign = {point}) must be importable, got {reason}'
    ]


def test_an_entry_point_that_gives_something_else_is_named_with_its_distribution(stranger, tmp_path):
    stranger("SINK = print", "stranger:SINK")
    (fault,) = faults_of(write_rig(tmp_path, ROOM + '[[sink]]\nkind = "foreign"\n'))
    whose = "stranger 1.0 (hilsim.sinks: foreign = stranger:SINK)"
    assert fault == f'sink[0].kind "foreign": {whose} must give a hilsim.plugins.SinkPlugin, got builtin_function_or_method'


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("dict", "ValueError: settings must be a dataclass, got <class 'dict'>"),
        ("Keys", "ValueError: settings must not have the keys kind and name, got name; make must be callable, got None"),
    ],
)
def test_a_kind_that_breaks_the_rules_is_named_with_its_distribution(stranger, tmp_path, settings, reason):
    source = "from dataclasses import dataclass\nfrom hilsim.plugins import SinkPlugin\n@dataclass\nclass Keys:\n    name: str = ''\n"
    make = "None" if settings == "Keys" else "print"
    stranger(f"{source}SINK = SinkPlugin(settings={settings}, make={make})", "stranger:SINK")
    (fault,) = faults_of(write_rig(tmp_path, ROOM + '[[sink]]\nkind = "foreign"\n'))
    assert fault.endswith(f"must be importable, got {reason}")


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("file: str = ''\n    def __post_init__(self): self.nothing", "AttributeError: 'Keys' object has no attribute 'nothing'"),
        ("sink: Nowhere = None", "Pydantic"),
    ],
    ids=["rules", "types"],
)
def test_settings_that_break_while_they_are_checked_are_named_with_their_distribution(stranger, tmp_path, field, reason):
    source = f"from __future__ import annotations\nfrom dataclasses import dataclass\nfrom hilsim.plugins import SinkPlugin\n@dataclass\nclass Keys:\n    {field}\n"
    stranger(f"{source}SINK = SinkPlugin(settings=Keys, make=print)", "stranger:SINK")
    (fault,) = faults_of(write_rig(tmp_path, ROOM + '[[sink]]\nkind = "foreign"\n'))
    whose = "stranger 1.0 (hilsim.sinks: foreign = stranger:SINK)"
    assert fault.startswith(f'sink[0].kind "foreign": {whose} must have settings that can be checked, got {reason}')


@pytest.mark.usefixtures("example")
def test_a_kind_that_two_distributions_bring_is_nobodys(plugin_site, tmp_path):
    distribution(plugin_site, "impostor", "2.0", {"hilsim.sinks": {"departures": "stranger:SINK"}})
    (fault,) = faults_of(write_rig(tmp_path, ROOM + DEPARTURES))
    assert fault.startswith('sink[0].kind "departures" must come from one distribution, got ')
    assert "hilsim-plugin-example 1.0 (" in fault
    assert "impostor 2.0 (hilsim.sinks: departures = stranger:SINK)" in fault
    assert fault.endswith(": uninstall all but one")


# -- families and profiles -----------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("example")
def test_a_plugins_profile_is_found_by_its_name_and_is_of_the_plugins_family(tmp_path):
    (lidar,) = load_rig(write_rig(tmp_path, SPINNER)).lidars
    assert (lidar.family.name, type(lidar.family).__name__, lidar.spec.model) == ("spinner", "SpinnerFamily", "Spinner-16")
    assert lidar.with_sub_rays(7).family.name == "spinner"
    assert [layout.destination_port for layout in lidar.family.flows(None, 7100)] == [7000, 7100]


@pytest.mark.usefixtures("example")
def test_a_plugins_sensor_is_not_taken_for_one_of_the_family_that_it_extends(tmp_path):
    (lidar,) = load_rig(write_rig(tmp_path, SPINNER)).lidars
    with pytest.raises(TypeError, match="spec must be of one of the families velodyne, cepton, ouster, livox, hesai, got SpinnerSpec"):
        family_of(lidar.spec)


@pytest.mark.usefixtures("example")
def test_a_rig_with_plugins_can_go_to_another_process(tmp_path):
    rig = load_rig(write_rig(tmp_path, SPINNER + DEPARTURES))
    again = pickle.loads(pickle.dumps(rig))  # noqa: S301 - our own
    assert (again, again.sinks, again.lidars[0].family.name) == (rig, rig.sinks, "spinner")


@pytest.mark.usefixtures("example")
def test_a_plugins_family_needs_the_kernels_of_the_one_that_it_extends(tmp_path):
    assert kernel_needs(load_rig(write_rig(tmp_path, SPINNER))) == kernel_needs(load_rig(write_rig(tmp_path)))


@pytest.mark.usefixtures("example")
def test_rules_of_a_plugins_family_and_profile_name_their_keys(tmp_path):
    text = SPINNER.replace('name = "lidar"', 'name = "lidar"\nreturn_mode = "dual"')
    assert faults_of(write_rig(tmp_path, text)) == ['sensor[0].return_mode must be "strongest" or "last" for a Spinner-16, got "dual"']
    (fault,) = faults_of(write_rig(tmp_path, SPINNER.replace('name = "lidar"', 'name = "lidar"\noverride = { points_port = 80 }')))
    assert fault.endswith("sensor[0].override: points_port must be 1024 to 65535, got 80")


def test_a_profile_beside_the_rig_may_be_of_a_plugins_family(example, tmp_path):
    (tmp_path / "own.toml").write_text((example / "hilsim_plugin_example" / "spinner16.toml").read_text().replace("7000", "7300"))
    (lidar,) = load_rig(write_rig(tmp_path, SPINNER.replace("spinner16", "own.toml"))).lidars
    assert (lidar.family.name, lidar.spec.points_port) == ("spinner", 7300)


def test_hilsims_own_profiles_go_before_a_plugins(plugin_site):
    distribution(plugin_site, "impostor", entry_points={"hilsim.profiles": {"vlp16": "nowhere:PATH"}})
    assert find_profile("sensors", "vlp16", plugin_site) == profiles_directory() / "sensors" / "vlp16.toml"


def test_an_unknown_profile_lists_those_of_plugins(example):
    with pytest.raises(ConfigError, match=r'\(.*vlp16.*\) or of plug-ins \(lantern8, spinner16\), got "spiner16"; did you mean "spinner16"\?'):
        find_profile("sensors", "spiner16", example)


def test_a_profile_that_is_no_file_is_named_with_its_distribution(stranger, plugin_site):
    stranger("PATH = 'nowhere.toml'", "stranger:PATH", group="hilsim.profiles")
    with pytest.raises(ConfigError, match=r"profile \"foreign\": stranger 1.0 \(.*\) must give the path of a file, got 'nowhere.toml'"):
        find_profile("sensors", "foreign", plugin_site)


FAMILY = "from hilsim.plugins import LidarFamily, VelodyneFamily\n"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("family = 5", r"must give a class of LidarFamily, got 5"),
        ("family = VelodyneFamily", r'must give a family of this name, got one named "velodyne"'),
        ("class family(LidarFamily):\n    name = 'foreign'", r"must give a whole family, got one without complete, .*, sequences_per_packet"),
        ("family = nothing", r"must be importable, got NameError: name 'nothing' is not defined"),
    ],
)
def test_a_family_that_cannot_be_used_is_named_with_its_distribution(stranger, tmp_path, source, reason):
    stranger(FAMILY + source, "stranger:family", group="hilsim.families")
    (tmp_path / "own.toml").write_text('family = "foreign"')
    with pytest.raises(ConfigError, match=rf'own.toml: family "foreign": stranger 1.0 \(hilsim.families: foreign = stranger:family\) {reason}'):
        load_rig(write_rig(tmp_path, SPINNER.replace("spinner16", "own.toml")))


@pytest.mark.usefixtures("example")
def test_an_unknown_family_lists_hilsims_and_those_of_plugins(tmp_path):
    (tmp_path / "own.toml").write_text('family = "spiner"')
    with pytest.raises(
        ConfigError,
        match='family must be "velodyne" or "cepton" or "ouster" or "livox" or "hesai" or "lantern" or "spinner", got \'spiner\'; did you mean "spinner"',
    ):
        load_rig(write_rig(tmp_path, SPINNER.replace("spinner16", "own.toml")))


# -- what plug-ins leave as it is ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted((profiles_directory() / "rigs").glob("*.toml")), ids=lambda path: path.stem)
def test_nothing_is_looked_up_for_a_rig_of_what_hilsim_has(monkeypatch, path):
    def looked_up(**names):
        raise AssertionError(f"looked up {names}")

    monkeypatch.setattr(metadata, "entry_points", looked_up)
    load_rig(path)


@pytest.mark.usefixtures("example")
def test_the_reference_of_the_configuration_knows_no_plugin(tmp_path):
    before = configuration_reference()
    load_rig(write_rig(tmp_path, SPINNER + DEPARTURES))
    assert configuration_reference() == before
    assert "spinner" not in before
