"""The smallest useful server on the official Python SDK: two tools, stdio. A peer to measure against."""

from mcp.server import MCPServer

server = MCPServer("two-tools")


@server.tool()
def pod_status(vehicle: str = "hippocampus") -> str:
    """Tells how the vehicle's pod is."""
    return f"{vehicle}: no pod"


@server.tool()
def stop_pod(vehicle: str) -> str:
    """Stops the vehicle's pod."""
    return f"{vehicle}: stopped"


if __name__ == "__main__":
    server.run()
