/// Acts as a user's program on hosts of a test: it trains until a worker is lost, has new workers
/// take the places of the lost ones, continues, and compares the result with an undisturbed run.
///
///   cluster_driver RANKS load FILE | recover
///
/// Prints on standard output, a line each: "training" once steps run; "failed: ..." with the step's
/// error; "not replaced: ..." when no worker came, as it tries again; then the place of each rank;
/// at last "equal" or "different", bit by bit. The environment says where its ranks are.
#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "stagecraft/tests/integration/models.h"

namespace stagecraft::tests {
namespace {

/// Counts updates before any fault may happen, which a checkpoint keeps, and after the repair.
constexpr int kBefore = 2, kAfter = 3;
/// Limits attempts to replace one rank: a link that is down refuses at once or after some seconds.
constexpr int kAttempts = 50;

void say(const std::string& line) {
  std::cout << line << std::endl;
}

StepResult next_step(Trainer& trainer) {
  return step_of(trainer, trainer.steps()).get();
}

/// Returns the error of the step that failed.
std::string train_until_lost(Trainer& trainer) {
  try {
    while (true) {
      (void)next_step(trainer);
    }
  } catch (const Error& error) {
    return error.what();
  }
}

void replace(const Cluster& cluster, Rank rank) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    try {
      cluster.replace(rank);
      return;
    } catch (const Error& error) {
      say(fmt::format("not replaced: {}", error.what()));
    }
  }
  throw std::runtime_error("nobody takes the place");
}

void replace_lost(const Cluster& cluster, Trainer& trainer) {
  for (const RankStatus& status : trainer.status()) {
    if (!status.answers) {
      replace(cluster, status.rank);
    }
  }
}

void tell_places(const Cluster& cluster) {
  for (const WorkerPlace& place : cluster.workers()) {
    say(fmt::format(
        "rank {}: incarnation {} on {}", place.rank.value, place.incarnation, place.host));
  }
}

StateDict unbroken(const Program& program,
                   const Schedule& schedule,
                   int ranks,
                   std::int64_t steps) {
  Trainer trainer(Cluster::local(ranks), program, schedule, AdamW{.lr = 1e-2}, {.seed = 5});
  while (trainer.steps() < steps) {
    (void)next_step(trainer);
  }
  return trainer.state_dict();
}

int run(int ranks, const std::string& file) {
  const Program program = make_program({.stages = ranks, .tied = true});
  const Schedule schedule = make_schedule("1f1b", program);
  const Cluster cluster = Cluster::from_env();
  Trainer trainer(
      cluster, program, schedule, AdamW{.lr = 1e-2}, {.seed = 5, .mirror = file.empty()});
  while (trainer.steps() < kBefore) {
    (void)next_step(trainer);
  }
  if (!file.empty()) {
    trainer.save(file);
  }
  say("training");
  say("failed: " + train_until_lost(trainer));
  replace_lost(cluster, trainer);
  tell_places(cluster);
  if (file.empty()) {
    (void)trainer.recover();
  } else {
    trainer.load(file);
  }
  const std::int64_t end = trainer.steps() + kAfter;
  while (trainer.steps() < end) {
    (void)next_step(trainer);
  }
  const bool equal = same_bits(trainer.state_dict(), unbroken(program, schedule, ranks, end));
  say(equal ? "equal" : "different");
  return equal ? 0 : 1;
}

}  // namespace
}  // namespace stagecraft::tests

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    return stagecraft::tests::run(std::stoi(words.at(0)), words.at(1) == "load" ? words.at(2) : "");
  } catch (const std::exception& error) {
    std::cerr << "cluster_driver: " << error.what() << '\n';
    return 1;
  }
}
