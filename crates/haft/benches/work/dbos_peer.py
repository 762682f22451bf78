"""The peer: steps that do nothing, in a durable workflow of DBOS on the same server.

    dbos_peer.py DATABASE PROCESSES STEPS

Each process runs a workflow of its own with its share of the steps, 64 at once: DBOS does not spread the steps of one
workflow over processes. Prints how many steps a second all of them did together, from when all were ready.
"""

import asyncio
import subprocess
import sys
import time

WIDTH = 64


def work(database: str, steps: int) -> None:
    from dbos import DBOS

    DBOS(config={"name": "peer", "system_database_url": database, "log_level": "ERROR", "run_admin_server": False})

    @DBOS.step()
    async def nothing() -> str:
        return "done"

    @DBOS.workflow()
    async def flow(count: int) -> int:
        done = 0
        while done < count:
            at_once = min(WIDTH, count - done)
            done += len(await asyncio.gather(*(nothing() for _ in range(at_once))))
        return done

    async def both() -> None:
        assert await flow(128) == 128
        print("ready", flush=True)
        sys.stdin.readline()
        assert await flow(steps) == steps
        print("done", flush=True)

    DBOS.launch()
    asyncio.run(both())
    DBOS.destroy()


def main() -> None:
    database, processes, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    share = steps // processes
    # One makes the tables; several at once would meet there.
    workers = []
    for _ in range(processes):
        command = [sys.executable, __file__, database, str(share)]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        wait(worker, "ready")
        workers.append(worker)
    begun = time.monotonic()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        wait(worker, "done")
    print(share * processes / (time.monotonic() - begun))
    for worker in workers:
        worker.stdin.close()
        worker.wait()


def wait(worker: subprocess.Popen, word: str) -> None:
    for line in worker.stdout:
        if line.strip() == word:
            return
    sys.exit(f"a worker ended before it was {word}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        work(sys.argv[1], int(sys.argv[2]))
    else:
        main()
