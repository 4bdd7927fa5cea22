"""``dpsvi play ENVIRONMENT``: train an actor-critic, and write a page that shows it playing."""

from __future__ import annotations

from argparse import Namespace

from dpsvi import engines
from dpsvi.commands.arguments import collective, seed, setting
from dpsvi.commands.inputs import refused_as
from dpsvi.commands.outputs import emit
from dpsvi.errors import ModelFormatError, UsageError, check_number
from dpsvi.files.launcher import launched_rank, launched_size


def add_arguments(parser) -> None:
    """Arguments of the command."""
    from dpsvi.rl import environments
    from dpsvi.rl.algorithms import ALGORITHMS

    parser.add_argument(
        "environment", metavar="ENVIRONMENT",
        help=f"one of {', '.join(environments.names())}, or gymnasium:ID or atari:NAME",
    )  # fmt: skip
    parser.add_argument(
        "--moves",
        type=int,
        default=1_000_000,
        metavar="N",
        help="moves of all agents together [%(default)s]",
    )
    parser.add_argument("--algorithm", choices=sorted(ALGORITHMS), help="how agents learn [hsa2c]")
    parser.add_argument(
        "--hidden", type=_widths, metavar="N,N", help="units of the dense layers [64,64; Atari 256]"
    )
    parser.add_argument(
        "--engine",
        choices=engines.names(),
        help="what carries out the steps [mpi under mpiexec or srun, else threads]",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="P",
        help="threads of a process; -1: one a core [%(default)s]",
    )
    parser.add_argument(
        "--local-steps", type=int, metavar="B", help="steps of a thread between two exchanges"
    )
    parser.add_argument("--target", type=float, metavar="SCORE", help="end at this mean return")
    parser.add_argument(
        "--seed", type=seed, default=0, metavar="S", help="seed of all that is random [%(default)s]"
    )
    parser.add_argument(
        "--set", type=setting, action="append", default=[], metavar="NAME=VALUE",
        help="any parameter of dpsvi.rl.ActorCritic, the value as JSON",
    )  # fmt: skip
    parser.add_argument("--out", metavar="DIR", help="run folder: model, settings, log, page")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a run that is in the folder"
    )
    parser.add_argument(
        "--checkpoint-seconds", type=float, default=60.0, metavar="SEC",
        help="seconds between two checkpoints in the folder, 0 for none [%(default)s]",
    )  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint")


def _widths(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def run(args) -> int:
    """Train, evaluate, and write the folder; one that was interrupted is written, too.

    Under ``mpiexec`` every rank trains; rank 0 alone evaluates, writes and prints.
    """
    if args.resume and (args.out is None or not args.checkpoint_seconds):
        raise UsageError(
            "--resume needs --out, the folder of the run that goes on, and --checkpoint-seconds "
            "above 0"
        )
    if collective(args):
        from dpsvi.cluster.ranks.world import world

        world()  # from here on a rank that fails can end the others
    agent = _make_agent(args)
    with refused_as(UsageError):
        check_number("--moves", args.moves, low=1, integer=True)
        agent._check()
    if launched_rank() != 0:
        return _train(agent, args)
    if args.out is None:
        code = _train(agent, args)
        result = _summary(agent, args)
    else:
        code, result = _in_folder(agent, args)
    emit(args, result, _describe(result))
    return code


def resume(args, path, settings: dict) -> int:
    """Go on with the agent of a run folder, for ``dpsvi resume``.

    Parameters
    ----------
    args : argparse.Namespace
        Of that command: what is given counts instead of a setting.
    path : path
        The file of the settings, for messages.
    settings : dict

    Raises
    ------
    ModelFormatError
        The settings are none of an agent.
    UsageError
        An option is given that only fits have.
    """
    from dpsvi.rl import ActorCritic
    from dpsvi.rl.actor_critic import as_tuple

    for name, kind in (("environment", str), ("moves", int)):
        if type(settings.get(name)) is not kind:
            raise ModelFormatError(f"{path}: has no entry {name!r} that is a {kind.__name__}")
    used = {
        "command", "run", "out", "json", "debug", "quiet", "threads", "engine", "local_steps",
        "checkpoint_seconds",
    }  # fmt: skip
    for name in sorted(vars(args).keys() - used):
        if getattr(args, name) not in (None, False):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for fits, {args.out} holds a run of `dpsvi play`")
    known = ActorCritic().get_params().keys() - {"environment", "cluster", "callbacks"}
    params = {name: as_tuple(settings[name]) for name in sorted(known & settings.keys())}
    if params.get("engine") in engines.names() and not engines.get(params["engine"]).simulated:
        del params["engine"]  # whatever this launch calls for
    given = {
        "engine": args.engine, "n_jobs": args.threads, "local_steps": args.local_steps,
        "checkpoint_seconds": args.checkpoint_seconds,
    }  # fmt: skip
    params |= {name: value for name, value in given.items() if value is not None}
    again = Namespace(
        environment=settings["environment"], moves=settings["moves"], engine=params.get("engine"),
        threads=None, algorithm=None, hidden=None, local_steps=None, target=None,
        seed=params.get("random_state"), out=args.out, overwrite=False, resume=True,
        set=[*params.items(), ("verbose", int(not args.quiet))], json=args.json,
        checkpoint_seconds=params.get("checkpoint_seconds", 60.0),
    )  # fmt: skip
    return run(again)


def _make_agent(args):
    from dpsvi.rl import ActorCritic

    given = {
        "engine": args.engine or engines.called_for(launched_size()), "n_jobs": args.threads,
        "algorithm": args.algorithm, "hidden": args.hidden, "local_steps": args.local_steps,
        "target": args.target, "random_state": args.seed, "verbose": 1, **dict(args.set),
    }  # fmt: skip
    if args.out is not None and args.checkpoint_seconds:
        given.update(checkpoint_dir=args.out, checkpoint_seconds=args.checkpoint_seconds)
    known = ActorCritic().get_params().keys() - {"environment", "cluster", "callbacks"}
    for name in given:
        if name not in known:
            raise UsageError(f"--set: ActorCritic has no {name!r} to set, it has {sorted(known)}")
    given = {name: value for name, value in given.items() if value is not None}
    return ActorCritic(args.environment, **given)


def _train(agent, args) -> int:
    """Exit code: 0, or that of a signal by which training was ended."""
    if args.resume and collective(args):
        from dpsvi.cluster.ranks.world import in_turn

        with in_turn():  # rank 0 may have to bring the folder back
            pass
    try:
        (agent.resume if args.resume else agent.fit)(args.moves)
    except KeyboardInterrupt as interrupt:
        if not hasattr(agent, "parameters_"):
            raise
        return getattr(interrupt, "code", 130)
    return 0


def _in_folder(agent, args) -> tuple[int, dict]:
    from dpsvi.commands.run_folder import RunFolder
    from dpsvi.errors import resolve_jobs
    from dpsvi.files.io import plain_params, write_json
    from dpsvi.rl.page import write_page

    with RunFolder(args.out, args.overwrite, args.resume) as folder:
        config = {"command": "play", "moves": args.moves, **plain_params(agent)}
        threads = resolve_jobs(agent.n_jobs)
        folder.write_settings(config, "moves", args.seed, threads, launched_size())

        def note(entry, agent):
            folder.metric(
                entry["updates"], entry["moves"], entry["seconds"], "score", entry["score"],
                "evaluation",
            )  # fmt: skip

        agent.set_params(callbacks=[note])
        code = _train(agent, args)
        agent.set_params(callbacks=None)
        result = _summary(agent, args)
        agent.save(folder.path)
        write_page(folder.path / "index.html", agent, result)
        write_json(folder.path / "summary.json", result)
        if code == 0:
            folder.drop_checkpoints()
    return code, {**result, "folder": str(args.out)}


def _summary(agent, args) -> dict:
    score = agent.evaluate(100)
    seconds = agent.history_[-1]["seconds"] if agent.history_ else 0.0
    return {
        "environment": args.environment, "algorithm": agent.algorithm, "moves": agent.n_moves_,
        "seconds": seconds, "score": float(score.mean()), "least": float(score.min()),
        "simulated": engines.get(agent.engine).simulated,
    }  # fmt: skip


def _describe(result) -> str:
    text = (
        f"{result['environment']}: mean return {result['score']:.4g} of 100 greedy episodes "
        f"(least {result['least']:.4g}) after {result['moves']:,} moves in "
        f"{result['seconds']:.1f} {'simulated ' * result['simulated']}seconds"
    )
    return text + (f"\n{result['folder']}/index.html shows it" if "folder" in result else "")
