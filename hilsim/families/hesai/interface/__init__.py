"""Control interface of a Hesai: functions of its state, without a clock or a socket."""
