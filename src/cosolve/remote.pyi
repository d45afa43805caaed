"""Subsystems that run elsewhere: in another process, on another machine, on MPI ranks, in programs of their own."""

from .participants.compiled_client import build_participant_library as build_participant_library
from .participants.participant_program import ParticipantProgram as ParticipantProgram
from .precice.subsystems import Participants as Participants
from .process.isolated import Isolated as Isolated
from .process.ranks import Ranks as Ranks, on_ranks as on_ranks
from .process.remote import Remote as Remote
from .process.static_program import StaticProgram as StaticProgram
from .process.system_files import subsystem_costs as subsystem_costs
from .process.system_files import load_on_ranks as load_on_ranks
