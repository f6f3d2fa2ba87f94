#!/usr/bin/env python3
"""A small real training on a CPU: a linear policy learns to balance CartPole by the cross-entropy
method. Stands for a training of your own: it prints a log that podtether reads, and writes its
checkpoints where they survive a stop.

usage: train.py [--seed N] [--iterations N] [--spread X] [--out FOLDER]
"""

import argparse
import json
import os
import time

import gymnasium as gym
import numpy as np

POPULATION = 32
ELITE = 6


def episode(env, weights, seed):
    """The reward of one episode under a linear policy."""
    observation, _ = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        action = int(weights[:4] @ observation + weights[4] > 0)
        observation, reward, ended, cut, _ = env.step(action)
        total, over = total + reward, ended or cut
    return total


def report(iteration, iterations, rewards, steps, took):
    """The lines that rsl_rl prints, which podtether reads: from the title to the ETA."""
    print("#" * 80)
    print(f" Learning iteration {iteration}/{iterations} ".center(80))
    print(f"{'Mean reward:':>40} {np.mean(rewards):.2f}")
    # CartPole gives a reward of 1 for every step.
    print(f"{'Mean episode length:':>40} {np.mean(rewards):.2f}")
    print("-" * 80)
    print(f"{'Total timesteps:':>40} {steps}")
    print(f"{'Iteration time:':>40} {took:.2f}s")
    print(f"{'ETA:':>40} {took * (iterations - iteration - 1):.1f}s", flush=True)


def save(path, **arrays):
    """A checkpoint that is there whole or not at all: a job may be ended at any moment."""
    part = path + ".part.npz"
    np.savez(part, **arrays)
    os.replace(part, path)


def main():
    parser = argparse.ArgumentParser(description="Trains a policy for CartPole.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--spread", type=float, default=1.0, help="of the first population")
    parser.add_argument("--out", default="runs")
    options = parser.parse_args()
    if options.iterations < 1 or options.seed < 0 or not 0 < options.spread <= 10:
        parser.error("--iterations is 1 or more, --seed 0 or more, --spread above 0 and up to 10")

    name = time.strftime("%Y-%m-%d_%H-%M-%S", time.gmtime())
    run = os.path.join(options.out, name)
    os.makedirs(run)
    print(f"run folder: {name}", flush=True)
    random = np.random.default_rng(options.seed)
    env = gym.make("CartPole-v1")
    mean, spread, steps = np.zeros(5), options.spread * np.ones(5), 0
    for iteration in range(options.iterations):
        begun = time.monotonic()
        population = mean + spread * random.standard_normal((POPULATION, 5))
        seeds = random.integers(2**31, size=POPULATION)
        rewards = np.array([episode(env, w, int(s)) for w, s in zip(population, seeds)])
        best = population[np.argsort(rewards)[-ELITE:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
        steps += int(rewards.sum())
        report(iteration, options.iterations, rewards, steps, time.monotonic() - begun)
        save(os.path.join(run, f"model_{iteration}.npz"), mean=mean, spread=spread)
    final = float(np.mean([episode(env, mean, 10_000 + i) for i in range(10)]))
    with open(os.path.join(run, "result.json"), "w", encoding="utf-8") as file:
        json.dump({"seed": options.seed, "iterations": options.iterations, "reward": final}, file)
    print(f"the policy balances for {final:.1f} of 500 steps", flush=True)


if __name__ == "__main__":
    main()
