"""The round of work as a client on the official Python SDK makes it: have a pod, run a job, pull
its results, stop. Usage: mcp_loop.py PROGRAM CONFIG MODE; prints one JSON line with what it saw.

The SDK checks every structured answer against the tool's output schema by itself and raises on a
mismatch, so each call here is also a check of that.
"""

import asyncio
import json
import os
import sys
import time

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

CEILING_SEC = 90


class Round:
    def __init__(self, client):
        self.client = client
        self.seen = {}

    async def call(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments)
        if result.is_error:
            raise SystemExit(f"{tool} failed: {result.content[0].text}")
        answer = result.structured_content
        self.seen[tool] = answer.get("status") or answer.get("state")
        return answer

    async def until(self, tool, done, **arguments):
        end = time.monotonic() + CEILING_SEC
        while not done(answer := await self.call(tool, **arguments)):
            if time.monotonic() > end:
                raise SystemExit(f"{tool} goes on saying {answer}")
            await asyncio.sleep(0.1)
        return answer

    async def go(self):
        listed = await self.client.list_tools()
        self.seen["tools"] = len(listed.tools)
        await self.until("ensure_pod", lambda pod: pod["status"] == "running")
        job = await self.call(
            "run_job",
            name="python",
            command="mkdir -p results && echo 42 > results/answer",
            max_runtime_sec=60,
        )
        live = ("starting", "running", "unknown")
        ended = await self.until(
            "job_status", lambda job: job["state"] not in live, job_id=job["job_id"]
        )
        pulled = await self.call("sync_logs", subdir="results")
        with open(os.path.join(pulled["to"], "answer"), encoding="utf-8") as file:
            self.seen["answer"] = file.read().strip()
        stopped = await self.call("stop_pod", vehicle="rover")
        refused = await self.client.call_tool("terminate_pod", {"vehicle": "rover", "confirm": "x"})
        self.seen["refused"] = json.loads(refused.content[0].text)["kind"]
        self.seen["is_error"] = refused.is_error
        assert ended["exit_code"] == 0, ended
        assert pulled["complete"], pulled
        assert stopped["observed"] == "EXITED", stopped


async def main(program, config, mode):
    parameters = StdioServerParameters(
        command=program,
        args=["mcp", "--config", config],
        env={"PATH": os.environ["PATH"], "HOME": os.path.dirname(config)},
    )
    async with Client(stdio_client(parameters), mode=mode) as client:
        work = Round(client)
        await work.go()
    print(json.dumps(work.seen))


asyncio.run(main(*sys.argv[1:]))
