"""A rig as timed changes have made it: each change gives another state, and each state says what the rig's lidars are and see."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from hilsim.assembly.build import Scenery
from hilsim.assembly.editing import EditableWorld, moving_world
from hilsim.assembly.moved import ObjectSlots
from hilsim.assembly.network import network_faults
from hilsim.config.part_kind import carrier, has_overlay
from hilsim.config.part_tables import known_kinds, part_kind
from hilsim.config.rig import Rig, check_part_faults
from hilsim.config.script import (
    AddChange,
    ChangeSpec,
    ClearChange,
    ClockChange,
    FaultChange,
    MoveChange,
    RemoveChange,
    Script,
    SensorChange,
    TravelChange,
    WeatherChange,
)
from hilsim.emulator.changing.continuation import AT_START
from hilsim.emulator.lidar import LaterLidar, LidarEmulator
from hilsim.emulator.setting import LidarSetting
from hilsim.errors import ConfigError, HilsimError, require
from hilsim.faults.catalogue import Place
from hilsim.faults.specs import FaultSpec, fault_rules, faults_on
from hilsim.limits import INJECTED_FAULTS, INSERTED_OBJECTS
from hilsim.registry import OWN_PARTS
from hilsim.sensor.optics.false_alarms import FalseAlarmSpec, SpuriousSpec
from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.sensor.setup import ChangeableSettings
from hilsim.sensor.specs import PulseState
from hilsim.world.assets.scenes import Assets, placed_object
from hilsim.world.assets.standing import stood
from hilsim.world.assets.tracks import motion_track
from hilsim.world.geometry.live_keys import LivePlacement
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.scene.materials import Material
from hilsim.world.scene.object_specs import ObjectSpec
from hilsim.world.scene.specs import material_hint
from hilsim.world.scene.world import SceneObject, World, build_world

_SHARED = -1
"""Key of the world that all sensors see but those that have one of their own."""
_INSERTED = -2
"""Key of the world that is put into recorded points, if there is one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RigState:
    """A rig after timed changes.

    Attributes:
        rig: The rig as its file has it.
        worlds: World by the number of the sensor that sees it; the key -1: the world of all other sensors; -2: the world that is put into recorded points.
        settings: Each sensor's, by its place in the rig.
        dark: Places of sensors whose lasers do not fire.
        slots: Slots of objects that another simulator moves; None without one.
        faults: Faults that have not been cleared.
    """

    rig: Rig
    worlds: Mapping[int, EditableWorld]
    settings: tuple[LidarSetting, ...]
    dark: frozenset[int] = frozenset()
    slots: ObjectSlots | None = None
    faults: tuple[FaultSpec, ...] = ()

    @classmethod
    def at_start(cls, rig: Rig, scenery: Scenery) -> Self:
        """The rig as its file has it."""
        worlds = {_SHARED: EditableWorld.of(scenery.objects, scenery.world)}
        for number, world in scenery.worlds.items():
            worlds[number] = EditableWorld.of(scenery.objects, world, scenery.unseen[number])
        if has_overlay(rig.spec):
            worlds[_INSERTED] = moving_world(scenery.objects, scenery.world.live)
        return cls(rig=rig, worlds=worlds, settings=rig.lidars, slots=scenery.slots, faults=rig.spec.fault)

    @classmethod
    def of_movers(cls, rig: Rig, scenery: Scenery) -> Self:
        """The rig as its file has it, for changes that are checked and not rendered: no change builds the scene again."""
        worlds = dict.fromkeys(
            (_SHARED, _INSERTED) if has_overlay(rig.spec) else (_SHARED,), EditableWorld.of_movers(scenery.objects, scenery.world.live)
        )
        return cls(rig=rig, worlds=worlds, settings=rig.lidars, slots=scenery.slots, faults=rig.spec.fault)

    def seen_without(self, numbers: AbstractSet[int]) -> World:
        """World of all sensors, without the movers of some ids."""
        return self.worlds[_SHARED].seen_without(numbers)

    @property
    def world(self) -> World:
        """World of all sensors but those that have one of their own."""
        return self.worlds[_SHARED].world

    @property
    def inserted(self) -> World | None:
        """The world that is put into recorded points; None: there are none that ask for it."""
        editable = self.worlds.get(_INSERTED)
        return editable.world if editable else None

    @property
    def objects(self) -> tuple[SceneObject, ...]:
        """Every object that there is or has been, by its id."""
        return self.worlds[_SHARED].objects

    @property
    def removed(self) -> frozenset[int]:
        """Ids of the objects that have been removed."""
        return self.worlds[_SHARED].removed

    @property
    def object_names(self) -> list[str]:
        """Names of the objects that there are."""
        shared = self.worlds[_SHARED]
        return [thing.name for number, thing in enumerate(shared.objects) if number not in shared.removed]

    @property
    def materials(self) -> tuple[Material, ...]:
        """Material of each row of the worlds' tables."""
        return self.worlds[_SHARED].materials

    def after(self, change: ChangeSpec) -> Self:
        """The state after a change.

        Raises:
            ConfigError: the change cannot be made of this rig as it is.
            AssetError: a file cannot be used.
        """
        match change:
            case WeatherChange():
                return replace(self, settings=tuple(replace(setting, weather=change.weather) for setting in self.settings))
            case SensorChange():
                return self._with_sensor(change)
            case ClockChange():
                return self._with_clock(change)
            case FaultChange() | ClearChange():
                return self._with_faults(change)
        if change.kind in OWN_PARTS:
            check_unseen(self.rig, change, self.world)
            return self
        return self._after_edit(change)

    def _after_edit(self, change: ChangeSpec) -> Self:
        match change:
            case AddChange():
                return self._with_added(change)
            case MoveChange():
                pose = Pose(position_m=self.rig.spec.scene.origin_m) @ mounting(change.position_m, change.rotation_deg)
                return self._in_worlds(lambda world: world.placed(world.find(change.name), pose))
            case TravelChange():
                track = motion_track(change.motion, self.rig.spec.scene.origin_m)
                return self._in_worlds(lambda world: world.placed(world.find(change.name), track))
            case RemoveChange():
                return self._in_worlds(lambda world: world.without(world.find(change.name)))
        raise AssertionError(f"a change must be of a known kind, got {change}")

    def _in_worlds(self, edit: Any) -> Self:
        return replace(self, worlds={number: edit(world) for number, world in self.worlds.items()})

    def has(self, name: str) -> bool:
        """Whether an object has a name."""
        return self.worlds[_SHARED].has(name)

    def placed(self, name: str, placement: LivePlacement) -> Self:
        """The state in which an object is moved by keys.

        Raises:
            ConfigError: no object has the name, or several.
        """
        return self._in_worlds(lambda world: world.placed(world.find(name), placement))

    def with_object(self, thing: SceneObject) -> Self:
        """The state with another object.

        Raises:
            ConfigError: the scene has too many triangles then.
        """
        return self._in_worlds(lambda world: world.added(thing))

    def _with_added(self, change: AddChange) -> Self:
        spec, scene = change.shape, self.rig.spec.scene
        if self.worlds[_SHARED].has(change.object_name):
            raise ConfigError(f'name must be new, got "{change.object_name}", which an object has')
        if change.external_id:
            return self._with_moved(change)
        if spec is None:
            raise AssertionError("an object that is like another has an external_id")
        thing = self._placed(spec)
        self._enforce_inserted()
        if thing.stands_on_ground:
            thing = stood(thing, self.worlds[_SHARED].world, self.objects, scene)
        return self._in_worlds(lambda world: world.added(thing))

    def _enforce_inserted(self) -> None:
        if _INSERTED in self.worlds:
            INSERTED_OBJECTS.enforce(len(self.worlds[_INSERTED].movers) + 1, "scene", ConfigError)

    def _with_moved(self, change: AddChange) -> Self:
        """The state with another object that is moved by keys."""
        if self.slots is None:
            raise ConfigError("external_id must be 0 for a rig without [external]")
        if change.shape is None:
            shared = self.worlds[_SHARED]
            model = shared.objects[shared.find(change.like)]
        else:
            placed = self._placed(change.shape)
            model = replace(placed, mesh=placed.mesh.placed(mounting(change.shape.position_m, change.shape.rotation_deg)))
        self._enforce_inserted()
        placement = LivePlacement(self.slots.slot_of(change.external_id))
        thing = replace(model, placement=placement, name=change.object_name, stands_on_ground=False)
        return self._in_worlds(lambda world: world.added(thing))

    def _placed(self, spec: ObjectSpec) -> SceneObject:
        scene = self.rig.spec.scene
        materials = scene.material_table()
        for name in spec.material_names():
            if name not in materials:
                raise ConfigError(f"material must be built in or in the rig's materials, got {name!r}{material_hint(name, materials)}")
        assets = Assets(directory=self.rig.directory, materials=materials)
        return placed_object(spec, assets.shape(spec), scene.origin_m, spec.name)

    def _number(self, name: str) -> int:
        """Place of a sensor in the rig."""
        names = [setting.name for setting in self.settings]
        if name not in names:
            raise ConfigError(f'sensor must be a sensor of the rig ({", ".join(names) or "it has none"}), got "{name}"')
        return names.index(name)

    def _with_setting(self, number: int, setting: LidarSetting) -> Self:
        return replace(self, settings=(*self.settings[:number], setting, *self.settings[number + 1 :]))

    def _enforce_unheard(self, number: int, what: str) -> None:
        """Raise an error where another sensor computes this one's pulses, which it does from the rig's file."""
        listeners = [setting.name for place, setting in enumerate(self.settings) if place != number and setting.setup.interference]
        if listeners:
            raise ConfigError(f"{what} must not be changed while its pulses reach a sensor with interference = true ({', '.join(listeners)})")

    def _with_clock(self, change: ClockChange) -> Self:
        number = self._number(change.sensor)
        self._enforce_unheard(number, "its clock")
        former = self.settings[number]
        if not former.family.has_pulse_input:
            raise ConfigError(f"sensor must have an input for a pulse, as a Velodyne has, got a {former.spec.model}")
        return self._with_setting(number, replace(former, pulse=PulseState(pps=change.pps, utc_epoch_ns=change.utc_epoch_ns)))

    def _with_faults(self, change: FaultChange | ClearChange) -> Self:
        if isinstance(change, ClearChange):
            faults = tuple(fault for fault in self.faults if not fault.is_called(change.name))
        else:
            added = change.dated
            faults = (*(fault for fault in self.faults if fault.end_ns > added.begin_ns), added)
            INJECTED_FAULTS.enforce(len(faults), "the rig", ConfigError)
        try:
            require(*fault_rules(faults[-1:], self.rig.sensors, self.rig.spec.senders, self.rig.spec.befallen))
            check_part_faults(self.rig, faults[-1:])
            settings = tuple(replace(setting, faults=faults_on(faults, setting.name, Place.SENSOR)) for setting in self.settings)
        except ValueError as error:
            raise ConfigError("\n".join(str(error).split("; "))) from error
        return replace(self, faults=faults, settings=settings)

    def _with_sensor(self, change: SensorChange) -> Self:
        number = self._number(change.sensor)
        given = {name: value for name in _SENSOR_KEYS if (value := getattr(change, name)) is not None}
        if change.phase_lock is False:
            given["phase_lock_deg"] = None
        heard = [name for name in _HEARD_KEYS if getattr(change, name) is not None]
        if heard:
            self._enforce_unheard(number, " and ".join(heard))
        former = self.settings[number]
        try:
            setting = replace(former, setup=replace(former.setup, **given)) if given else former
        except ValueError as error:
            raise ConfigError("\n".join(str(error).split("; "))) from error
        dark = self.dark
        if change.laser is not None:
            dark = dark - {number} if change.laser else dark | {number}
        return replace(self._with_setting(number, setting), dark=dark)

    def lidar(self, number: int, former: LidarEmulator) -> LidarEmulator:
        """A lidar as it is in this state.

        Args:
            number: Its place in the rig.
            former: The lidar in a state before; what has not changed is taken from there.
        """
        setting = self.settings[number].with_sub_rays(former.setting.sub_rays)
        editable = self.worlds.get(number, self.worlds[_SHARED])
        if number in self.dark:
            blind = replace(setting, weather=WeatherSpec(), setup=replace(setting.setup, false_alarms=FalseAlarmSpec(), spurious=SpuriousSpec()))
            return replace(former, setting=blind, world=_NOTHING, overlay=None, continues=AT_START, later=())
        return replace(former, setting=setting, world=editable.world, continues=AT_START, later=())


_NOTHING = build_world([])
_OWN_KEYS = tuple(each.name for each in fields(ChangeableSettings))
_HEARD_KEYS = ("rotation_rate_rpm", "phase_lock_deg", "phase_lock", "laser", *_OWN_KEYS)
"""Keys of a change of a sensor that change when or where its pulses go."""
_SENSOR_KEYS = ("window", "rotation_rate_rpm", "return_mode", "field_of_view_deg", "phase_lock_deg", *_OWN_KEYS)


def changing_lidars(rig: Rig, scenery: Scenery, lidars: Sequence[LidarEmulator], script: Script) -> tuple[tuple[LidarEmulator, ...], RigState]:
    """A rig's lidars with all changes of a script.

    Args:
        rig: The rig.
        scenery: Its scenery.
        lidars: Its lidars without changes.
        script: Timed changes.

    Returns:
        The lidars, and the state after the last change.

    Raises:
        ConfigError: a change cannot be made.
        AssetError: a file cannot be used.
    """
    lidars = [replace(lidar, may_change=True) for lidar in lidars]  # a rig whose file has no changes may be given a script
    later: list[list[LaterLidar]] = [[] for _ in lidars]
    state = RigState.at_start(rig, scenery)
    for change, former, state in _played(rig, scenery, script):
        for sensor, lidar in enumerate(lidars):
            follow(later[sensor], lidar, former, state, sensor, change.sensor_ns(lidar.setting.name))
    return tuple(replace(lidar, later=tuple(changes)) for lidar, changes in zip(lidars, later, strict=True)), state


def inserted_worlds(rig: Rig, scenery: Scenery, script: Script) -> list[tuple[ChangeSpec, World]]:
    """Each change of a script that changes what is put into recorded points, with the world after it.

    Raises:
        ConfigError: a change cannot be made.
        AssetError: a file cannot be used.
    """
    found = []
    for change, former, state in _played(rig, scenery, script):
        if state.inserted is not None and state.inserted is not former.inserted:
            found.append((change, state.inserted))
    return found


def seen_worlds(rig: Rig, scenery: Scenery, script: Script) -> list[tuple[ChangeSpec, World]]:
    """Each change of a script that changes the world of all sensors, with the world after it.

    Raises:
        ConfigError: a change cannot be made.
        AssetError: a file cannot be used.
    """
    return [(change, state.world) for change, former, state in _played(rig, scenery, script) if state.world is not former.world]


def carrier_changes(rig: Rig, scenery: Scenery, script: Script) -> list[tuple[ChangeSpec, Any]]:
    """Changes of what moves a rig's platform, of its faults, and of the world of all sensors, that a script lists, each with the world, or the faults, after it.

    Raises:
        ConfigError: a change cannot be made.
        AssetError: a file cannot be used.
    """
    carrying = carrier(rig.spec)
    places = {place for place, _ in carrying.befallen(rig.spec.part(carrying.table))} if carrying is not None else set()
    found = list[tuple[ChangeSpec, Any]]()
    for change, former, state in _played(rig, scenery, script):
        if state.world is not former.world or (carrying is not None and change.kind == carrying.table):
            found.append((change, state.world))
        elif any((fault in former.faults) != (fault in state.faults) for fault in {*former.faults, *state.faults} if fault.row.place in places):
            found.append((change, state.faults))
    return found


def check_unseen(rig: Rig, change: ChangeSpec, world: World | None = None) -> None:
    """Raise an error for a change that a rig cannot take if nothing in it sees a scene; with a ``world``, for one of a part that cannot be made there.

    Raises:
        ConfigError: the rig does not have what it changes.
    """
    if isinstance(change, ClearChange) or (isinstance(change, FaultChange) and change.fault.row.place == Place.NETWORK):
        network_faults(rig, (change,))
        return
    kind = part_kind(change.kind) if change.kind in OWN_PARTS else None
    if kind is None:
        raise ConfigError(unseen())
    kind.check_change(rig.spec.part(change.kind), world, change)


def unseen() -> str:
    """Message for a rig without anything that sees its scene."""
    *viewers, last = "[[sensor]]", *(kind.viewer for kind in known_kinds() if kind.viewer)
    return f"a rig must have a {' or '.join(filter(None, (', '.join(viewers), last)))} for its scene to be changed, got none"


def check_script(rig: Rig, scenery: Scenery | None, script: Script | None = None) -> None:
    """Find out before a rig starts whether all changes of a script can be made.

    Args:
        rig: The rig.
        scenery: Its scenery; None: nothing in the rig sees one.
        script: Timed changes; None: those of the rig.

    Raises:
        ConfigError: a change cannot be made.
        AssetError: a file cannot be used.
    """
    script = rig.script if script is None else script
    if script is not None:
        for _ in _played(rig, scenery, script) if scenery is not None else _played_unseen(rig, script):
            pass


def _played_unseen(rig: Rig, script: Script) -> Iterator[ChangeSpec]:
    """Each change of a script of a rig in which nothing sees a scene."""
    for number, change in enumerate(script.changes):
        try:
            check_unseen(rig, change)
        except HilsimError as error:
            raise _placed_error(error, script, number, change) from error
        yield change


def _placed_error(error: HilsimError, script: Script, number: int, change: ChangeSpec) -> HilsimError:
    return type(error)("\n".join(f"{script.path}: change {number} at {change.at_s:g} s: {line}" for line in str(error).split("\n")))


def _played(rig: Rig, scenery: Scenery, script: Script) -> Iterator[tuple[ChangeSpec, RigState, RigState]]:
    """Each change of a script with the states before and after it."""
    state = RigState.at_start(rig, scenery)
    for number, change in enumerate(script.changes):
        former = state
        try:
            state = state.after(change)
        except HilsimError as error:
            raise _placed_error(error, script, number, change) from error
        yield change, former, state


def follow(later: list[LaterLidar], base: LidarEmulator, former: RigState, state: RigState, number: int, at_ns: int) -> None:
    """Add to ``later`` what a lidar becomes where a state follows another, if it changes at all."""
    if not is_changed(former, state, number):
        return
    before = later[-1].lidar if later else base
    at_ns = max(at_ns, later[-1].begin_ns) if later else at_ns
    later.append(before.followed_by(lidar_after(base, before, state, number), at_ns))


def is_changed(former: RigState, state: RigState, number: int) -> bool:
    """Whether a lidar is another one, or sees another world, in a state than in the one before."""
    return (
        former.settings[number] != state.settings[number]
        or (number in former.dark) != (number in state.dark)
        or (number not in state.dark and former.worlds.get(number, former.worlds[_SHARED]) is not state.worlds.get(number, state.worlds[_SHARED]))
    )


def lidar_after(base: LidarEmulator, before: LidarEmulator, state: RigState, number: int) -> LidarEmulator:
    """A lidar in a state, made from what it was before, and from what it was at the start (``base``) when its lasers fire again."""
    return state.lidar(number, replace(before, overlay=base.overlay)).with_plan_of(before)
