"""Profile of this machine: what it can do, measured once and used by every prediction.

A `Trial` measures one ability, such as copying memory or encoding gradients; the pillars define the
trials of their own work. The `Profile` keeps the figures in the user's cache folder until they no
longer fit: another processor, another version of a package, or predictions that were wrong three
times. `talka profile` runs all trials; otherwise the first plan that needs one runs it.
"""

from talka.profile.memory import MEMORY
from talka.profile.profile import Figures, Profile, this_machine
from talka.profile.trial import Trial

__all__ = ["MEMORY", "Figures", "Profile", "Trial", "this_machine"]
