"""The eight thrusters of a BlueROV2 Heavy, in place of the six that isaac-auv-env has.

Placed beside warpauv_env.py by apply_bluerov_patches, which has it import from here. How a thruster
turns a command into force stays that of the original; only where the thrusters sit and where they push
is new. config/bluerov2_heavy.yaml has the same geometry in z-down axes (von Benzon et al., J. Mar. Sci.
Eng. 10 (2022) 1898); axis_sanity_sweep compares the two by the motion that results.
"""

from .thruster_dynamics import ConversionFunctionBasic, DynamicsFirstOrder

__all__ = [
    "THRUSTERS",
    "ConversionFunctionBasic",
    "DynamicsFirstOrder",
    "get_thruster_com_and_orientations",
]

# Position in metres from the centre of mass, and the direction that a positive command pushes to.
# Body axes of the simulation: x forward, y left, z up. A plain literal: the sweep reads it as text.
THRUSTERS = (
    ((0.156, -0.111, -0.085), (0.7071, 0.7071, 0.0)),
    ((0.156, 0.111, -0.085), (0.7071, -0.7071, 0.0)),
    ((-0.156, -0.111, -0.085), (-0.7071, 0.7071, 0.0)),
    ((-0.156, 0.111, -0.085), (-0.7071, -0.7071, 0.0)),
    ((0.120, -0.218, 0.0), (0.0, 0.0, 1.0)),
    ((0.120, 0.218, 0.0), (0.0, 0.0, -1.0)),
    ((-0.120, -0.218, 0.0), (0.0, 0.0, -1.0)),
    ((-0.120, 0.218, 0.0), (0.0, 0.0, 1.0)),
)


def quaternion(direction):
    """The rotation (w, x, y, z) that turns the x axis to `direction`, the shortest way."""
    x, y, z = direction
    length = (x * x + y * y + z * z) ** 0.5
    x, y, z = x / length, y / length, z / length
    if x < -0.999999:
        return (0.0, 0.0, 0.0, 1.0)
    # Half way between the axis and the direction: the cross product is (0, -z, y), the dot x.
    norm = (2.0 * (1.0 + x)) ** 0.5
    return ((1.0 + x) / norm, 0.0, -z / norm, y / norm)


def get_thruster_com_and_orientations(device):
    """Positions (8, 3) and orientations (8, 4) as the environment wants them."""
    import torch

    positions = [position for position, _ in THRUSTERS]
    orientations = [quaternion(direction) for _, direction in THRUSTERS]
    return (
        torch.tensor(positions, dtype=torch.float32, device=device, requires_grad=False),
        torch.tensor(orientations, dtype=torch.float32, device=device, requires_grad=False),
    )
