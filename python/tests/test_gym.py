"""An agent as the controller of a flow."""

import threading

import gymnasium
import numpy
import pytest
from gymnasium.utils.env_checker import check_env

import weir
import weir.gym

LAB = """\
format = 1
name = "agent"
[run]
duration = "4 s"
[dumbbell]
rate = "10 Mbit/s"
rtt = "40 ms"
loss = 0.002
[traffic.bulk]
cc = "cubic"
"""


def environment(**changes):
    return weir.gym.ControllerEnv(weir.Lab.parse(LAB), "bulk", capacity_mbps=10, **changes)


def episode(env, seed, actions):
    """All that an episode tells: observations, rewards and information."""
    told, over = [env.reset(seed=seed)], False
    for action in actions:
        if over:
            break
        observation, reward, terminated, over, info = env.step([action])
        assert not terminated
        told.append((observation, reward, info))
    return told, over


def test_it_keeps_the_rules_of_gymnasium():
    env = environment()
    check_env(env, skip_render_check=True)
    env.close()


def test_an_episode_follows_from_seed_and_actions():
    env, other = environment(), environment()
    actions = numpy.random.default_rng(7).uniform(-1, 1, 200)
    first, over = episode(env, 5, actions)
    again, _ = episode(other, 5, actions)
    assert over and len(first) > 20
    numpy.testing.assert_equal(first, again)
    different, _ = episode(env, 6, actions)
    with pytest.raises(AssertionError):
        numpy.testing.assert_equal(first, different)


def test_seeds_of_later_episodes_follow_from_the_first():
    def seeds(env):
        env.reset(seed=3)
        return [env.reset()[1]["seed"] for _ in range(3)]

    env, other = environment(), environment()
    assert seeds(env) == seeds(other) and len(set(seeds(env))) == 3
    env.close()
    other.close()


def test_observation_and_reward_are_those_that_the_class_states():
    env = environment(delay_weight=0.5, loss_weight=2.0)
    env.reset(seed=1)
    grown = [env.step([1.0]) for _ in range(8)]
    for observation, reward, _, _, info in grown:
        delay, delivered, lost, marked, window = map(float, observation)
        assert delay >= 1 and 0 <= lost <= 1 and marked == 0 and 2**window == pytest.approx(info["window"], rel=1e-5)
        assert reward == pytest.approx(delivered / 10 - 0.5 * (delay - 1) - 2.0 * lost, rel=1e-4)
    windows = [info["window"] for *_, info in grown]
    assert windows[1] == 2 * windows[0]
    # A window of more than the link and its buffer hold: the link is full, the round-trip time long.
    assert grown[-1][0][1] > 8 and grown[-1][0][0] > 2
    env.close()


def test_an_episode_ends_with_its_run_and_leaves_no_thread():
    before = threading.active_count()
    env = environment()
    _, over = episode(env, 1, [0.0] * 1000)
    assert over
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step([0.0])
    env.reset(seed=2)
    env.close()
    assert threading.active_count() == before


def test_wrong_labs_and_actions_are_refused():
    two = weir.Lab.parse(LAB).set("traffic.bulk.flows", 2)
    env = weir.gym.ControllerEnv(two, "bulk", capacity_mbps=10)
    with pytest.raises(ValueError, match="one flow"):
        env.reset()
        env.step([0.0])
    with pytest.raises(ValueError, match="one run"):
        weir.gym.ControllerEnv(weir.Lab.parse(LAB).set("run.repeats", 2), "bulk", capacity_mbps=10)
    with pytest.raises(weir.LabError):
        weir.gym.ControllerEnv(weir.Lab.parse(LAB), "bulks", capacity_mbps=10)
    env = environment()
    env.reset()
    with pytest.raises(ValueError, match="number"):
        env.step([float("nan")])
    env.close()
